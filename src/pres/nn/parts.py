"""Consecutive parts of an axis: several batches in one tensor, and each of them again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import torch
from torch import Tensor

from pres.nn.ranking import Ranking, ranking


class Parts:
    """An axis cut into consecutive parts.

    Args:
        lengths: How long each is.
        device: Where tensors are made.
    """

    def __init__(self, lengths: Sequence[int], device: torch.device) -> None:
        self.lengths, self.device = list(lengths), device

    @classmethod
    def of_numbers(cls, numbers: Tensor, count: int) -> Parts:
        """Return ``count`` parts from the part `[n]` that each position is in, which never decreases."""
        return cls(torch.bincount(numbers, minlength=count).tolist(), numbers.device)

    def __len__(self) -> int:
        return len(self.lengths)

    @cached_property
    def starts(self) -> Tensor:
        """Where each part begins `[parts]`."""
        return torch.tensor([0, *self.lengths[:-1]], device=self.device).cumsum(0)

    @cached_property
    def number(self) -> Tensor:
        """The part `[n]` that each position is in."""
        lengths = torch.tensor(self.lengths, device=self.device)
        which = torch.arange(len(self), device=self.device)
        return which.repeat_interleave(lengths, output_size=sum(self.lengths))

    def split(self, values: Tensor) -> tuple[Tensor, ...]:
        """Return each part of values `[n, ...]`."""
        return torch.split(values, self.lengths) if len(self) > 1 else (values,)


@dataclass(frozen=True, eq=False)
class Rankings:
    """The ranking of every part of a tensor, one after another."""

    all: Ranking  # values, places and positions are those of each part
    positions: Parts  # of the tensor
    values: Parts  # of the distinct values

    def each(self) -> list[Ranking]:
        """Return that of each part."""
        if len(self.positions) == 1:
            return [self.all]
        found, of_positions, of_values = self.all, self.positions.split, self.values.split
        fields = of_values(found.values), of_positions(found.place), of_positions(found.order)
        return [Ranking(*those) for those in zip(*fields, of_values(found.starts), strict=True)]


def rankings(given: Tensor, parts: Parts) -> Rankings:
    """Return the ranking of each part of integers `[n]`, none negative, by one sort for all."""
    if len(parts) == 1:
        found = ranking(given)
        return Rankings(found, parts, Parts([len(found.values)], parts.device))
    found, number, values = _ranked(given, parts.number, len(parts))
    of_each = Ranking(
        values=found.values,
        place=found.place,
        # A part's positions are sorted among themselves.
        order=found.order - parts.starts.index_select(0, parts.number),
        starts=found.starts - parts.starts.index_select(0, number),
    )
    return Rankings(of_each, parts, values)


def distinct_of_each(given: Tensor, number: Tensor | None, count: int) -> tuple[Tensor, Parts, Tensor]:
    """Return the distinct values of each of ``count`` parts, one part's after another's, and their parts.

    With them comes which of its part's values is at each position of ``given`` `[n]`, integers of which none
    is negative. The part of each is its ``number`` `[n]`, in any order; None: there is one part.
    """
    if number is None:
        found = ranking(given)
        return found.values, Parts([len(found.values)], given.device), found.place
    found, _, values = _ranked(given, number, count)
    return found.values, values, found.place


def _ranked(given: Tensor, number: Tensor, count: int) -> tuple[Ranking, Tensor, Parts]:
    """Return the values and places of each part, with positions among all, and which part a value is of."""
    stride = int(given.max()) + 1 if len(given) else 1
    found = ranking(number * stride + given)
    part = torch.div(found.values, stride, rounding_mode="floor")
    values = Parts.of_numbers(part, count)
    own_values, place = found.values - part * stride, found.place - values.starts.index_select(0, number)
    return replace(found, values=own_values, place=place), part, values
