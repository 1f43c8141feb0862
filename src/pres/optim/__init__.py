"""Optimisers: torch's Adam as training uses it, and Muon."""

from pres.optim.adam import Adam
from pres.optim.muon import Muon

__all__ = ["Adam", "Muon"]
