"""TGN, JODIE and APAN, and the frame they share."""

from pres.models.apan import APAN
from pres.models.jodie import JODIE
from pres.models.mdgnn import MDGNN
from pres.models.options import time_units
from pres.models.states import States
from pres.models.tgn import TGN
from pres.models.view import View

__all__ = ["APAN", "JODIE", "MDGNN", "TGN", "States", "View", "time_units"]
