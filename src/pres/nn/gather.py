"""Rows by position, with a gradient that is the same bits every time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from pres.nn.ranking import Ranking, ranking


def rows(values: Tensor, places: Tensor) -> Tensor:
    """Return `[..., d]`, the rows of ``values`` `[n, d]` at ``places`` `[...]`; or `[...]`, those of `[n]`.

    The backward pass adds in order. That of ``values[places]`` adds in parallel on the CPU, in whatever order
    threads arrive, so that two runs differ in their last bits; and it is slower to begin with.
    """
    if places.ndim == 1:
        return values.index_select(0, places)
    return values.index_select(0, places.flatten()).view(*places.shape, *values.shape[1:])


@dataclass(frozen=True, eq=False)
class Picked:
    """Rows of a table that slots read, some of them several times, not copied before they are needed."""

    table: Tensor  # [n, d]
    given: Tensor | None = None  # [s] the row that each slot reads; None: each its own, in order
    ranked: Ranking | None = None  # of the places, where it is known already

    @cached_property
    def place(self) -> Tensor:
        """The row `[s]` that each slot reads."""
        return torch.arange(len(self.table), device=self.table.device) if self.given is None else self.given

    @cached_property
    def by_place(self) -> Ranking:
        """The slots sorted by the row they read."""
        return ranking(self.place) if self.ranked is None else self.ranked

    def copied(self) -> Tensor:
        """Return the rows `[s, d]`."""
        return self.table if self.given is None else rows(self.table, self.given)

    def spread(self, values: Tensor) -> Tensor:
        """Return a table `[n, d]` of values at the distinct rows that are read, and of zeros elsewhere."""
        if len(values) == len(self.table):
            return values
        return values.new_zeros(self.table.shape).index_copy_(0, self.by_place.values, values)
