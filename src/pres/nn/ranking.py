"""Which values there are, and where each of them is: one sort for both."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Ranking:
    """The distinct values of a tensor, in increasing order, and all positions sorted by their value.

    The positions of the i-th value are ``order[starts[i] : starts[i + 1]]``, in increasing order.
    """

    values: Tensor  # [u]
    place: Tensor  # as the tensor: which of the distinct values is at each position
    order: Tensor  # [n] positions in the flattened tensor
    starts: Tensor  # [u]

    def of_places(self) -> Ranking:
        """Return the ranking of ``place``, which is that of the tensor but for the values."""
        return replace(self, values=torch.arange(len(self.values), device=self.values.device))


def ranking(given: Tensor) -> Ranking:
    """Return the ranking of integers of any shape, none negative."""
    flat = given.flatten()
    n = len(flat)
    if n == 0:
        return Ranking(flat, given, flat, flat)
    bits = n.bit_length()
    if flat.device.type == "cpu" and int(flat.max()).bit_length() + bits < 64:
        # Value and position in one number: NumPy's vectorised sort is several times faster than an argsort.
        keys = torch.arange(n).add_(flat, alpha=1 << bits)
        keys.numpy().sort()
        ordered = keys >> bits
        order = keys.bitwise_and_((1 << bits) - 1)
    else:
        ordered, order = torch.sort(flat, stable=True)
    first = torch.ones_like(ordered, dtype=torch.bool)
    torch.ne(ordered[1:], ordered[:-1], out=first[1:])
    starts = first.nonzero().squeeze(1)
    place = torch.empty_like(order).scatter_(0, order, first.cumsum(0).sub_(1))
    return Ranking(ordered.index_select(0, starts), place.view_as(given), order, starts)
