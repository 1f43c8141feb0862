"""Temporal neighbours, negatives, temporal batches, pending sets and levels."""

from pres.sampling.batches import TemporalBatches, prefetch
from pres.sampling.growing import grown
from pres.sampling.index import Neighbours, TemporalIndex
from pres.sampling.negatives import Negatives, NegativeSampler
from pres.sampling.pending import PendingLoad, PendingProfile, levels, pending_sets

__all__ = [
    "NegativeSampler",
    "Negatives",
    "Neighbours",
    "PendingLoad",
    "PendingProfile",
    "TemporalBatches",
    "TemporalIndex",
    "grown",
    "levels",
    "pending_sets",
    "prefetch",
]
