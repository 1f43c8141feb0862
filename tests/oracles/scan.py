"""Chains, one row after another."""

from __future__ import annotations

import torch
from torch import Tensor


def states_one_by_one(keep: Tensor, add: Tensor, initial: Tensor, first: list[int]) -> Tensor:
    """Return the states `[m, d]` after each row; chains begin at the rows ``first``."""
    states: list[Tensor] = []
    for row in range(len(add)):
        before = initial[first.index(row)] if row in first else states[-1]
        states.append(keep[row] * before + add[row])
    return torch.stack(states) if states else add
