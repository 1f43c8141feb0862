"""Dropout that draws 16 bits for each value, four values at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pres.errors import OptionError

LEVELS = 2**16


class Dropout(nn.Module):
    """Sets values to 0 with a probability while training, and scales up the others.

    On the CPU, torch draws its random numbers one after another, and its own dropout spends a whole number on
    each value. A share ``p`` is met to 1 in 65,536.
    """

    def __init__(self, p: float) -> None:
        super().__init__()
        if not 0 <= p < 1:
            raise OptionError(f"dropout={p}: a share of 0 or more, below 1.")
        self.p = p

    def factors(self, *shape: int, like: Tensor) -> Tensor | None:
        """Return what to multiply values of a shape with, of the type and device of ``like``; None for 1."""
        dropped = min(round(self.p * LEVELS), LEVELS - 1)
        if not self.training or not dropped:
            return None
        size = torch.Size(shape).numel()
        bits = torch.empty(-(-size // 4), dtype=torch.int64, device=like.device).random_(-(2**63), None)
        kept = bits.view(torch.int16)[:size].view(shape) >= dropped - LEVELS // 2
        return kept.to(like.dtype).mul_(LEVELS / (LEVELS - dropped))

    def forward(self, values: Tensor) -> Tensor:
        """Return the values, some of them dropped."""
        factors = self.factors(*values.shape, like=values)
        return values if factors is None else values * factors
