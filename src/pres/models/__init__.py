"""TGN, JODIE and APAN, and the frame they share."""

from pres.models.apan import APAN
from pres.models.base import MDGNN
from pres.models.jodie import JODIE
from pres.models.options import time_units
from pres.models.sample import Subgraph
from pres.models.states import States
from pres.models.tgn import TGN

__all__ = ["APAN", "JODIE", "MDGNN", "TGN", "States", "Subgraph", "time_units"]
