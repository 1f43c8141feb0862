"""Random numbers that are a function of what they are for, not of what was drawn before.

A draw is named by a seed and some integer counters (an event, a column, …). So the same question
has the same answer on any device, in any order of batches, and after any restart.
"""

from __future__ import annotations

import torch
from torch import Tensor

_ALL_BITS = (1 << 64) - 1
# The finaliser of SplitMix64 (Steele, Lea and Flood, 2014), as signed 64-bit constants.
_STEP = 0x9E3779B97F4A7C15 - (1 << 64)
_MIX = ((30, 0xBF58476D1CE4E5B9 - (1 << 64)), (27, 0x94D049BB133111EB - (1 << 64)))


def uniform(seed: int, *counters: Tensor) -> Tensor:
    """Return float64 numbers in [0, 1), one per element of the counters' common (broadcast) shape."""
    state = torch.tensor(_signed(seed), device=counters[0].device)
    for counter in counters:
        state = _absorb(state, counter)
    return _logical_shift(state, 11).double() * 2.0**-53


def derived(seed: int, counter: int) -> int:
    """Return another seed, for a purpose numbered ``counter``: what `uniform` makes its numbers from."""
    z = (seed + (counter + 1) * _STEP) & _ALL_BITS  # plain integers: a tensor of one takes far longer
    for shift, factor in _MIX:
        z = (z ^ (z >> shift)) * factor & _ALL_BITS
    return _signed(z ^ (z >> 31))


def below(limit: Tensor, u: Tensor) -> Tensor:
    """Return integers in [0, limit) from uniform numbers, for limits up to 2^53; 0 where ``limit`` is 0."""
    return (u * limit).long()


def _signed(seed: int) -> int:
    """Return any integer folded into 64 bits."""
    return (seed + (1 << 63)) % (1 << 64) - (1 << 63)


def _absorb(state: Tensor, counter: Tensor) -> Tensor:
    return _mix(state + (counter.long() + 1) * _STEP)


def _mix(z: Tensor) -> Tensor:
    for shift, factor in _MIX:
        z = (z ^ _logical_shift(z, shift)) * factor
    return z ^ _logical_shift(z, 31)


def _logical_shift(z: Tensor, bits: int) -> Tensor:
    """Return ``z >> bits`` as if it were unsigned."""
    return (z >> bits) & ((1 << (64 - bits)) - 1)
