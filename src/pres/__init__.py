"""Train memory-based dynamic graph neural networks on event streams, at large temporal batches."""

from pres import datasets, sampling
from pres.datasets import load
from pres.diagnosis import diagnose
from pres.errors import Notice, PresError
from pres.events import EventStream
from pres.io import read

__version__ = "0.1.0"

__all__ = ["EventStream", "Notice", "PresError", "datasets", "diagnose", "load", "read", "sampling"]
