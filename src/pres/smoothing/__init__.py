"""Methods that smooth a memory trained in large batches: the interface that training calls, and PRES."""

from pres.smoothing.base import Role, Smoothing, SmoothingSettings, Update
from pres.smoothing.coherence import batch_coherence_loss, coherence_loss, movement
from pres.smoothing.pres import PRES, PRESSmoothing
from pres.smoothing.trackers import Trackers

__all__ = [
    "PRES",
    "PRESSmoothing",
    "Role",
    "Smoothing",
    "SmoothingSettings",
    "Trackers",
    "Update",
    "batch_coherence_loss",
    "coherence_loss",
    "movement",
]
