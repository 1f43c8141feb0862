"""PRES: a predict-correct filter for the memory of any model, and the coherence objective."""

from pres.smoothing.coherence import batch_coherence_loss, coherence_loss, movement
from pres.smoothing.config import PRES
from pres.smoothing.filter import EVENT, NEGATIVE, Filter
from pres.smoothing.gain import FixedGain, LearnedGain, PendingGain
from pres.smoothing.trackers import Trackers, Transitions

__all__ = [
    "EVENT",
    "NEGATIVE",
    "PRES",
    "Filter",
    "FixedGain",
    "LearnedGain",
    "PendingGain",
    "Trackers",
    "Transitions",
    "batch_coherence_loss",
    "coherence_loss",
    "movement",
]
