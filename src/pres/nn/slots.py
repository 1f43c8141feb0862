"""Slots of queries, some of them empty: what the others hold lies packed, query by query."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from pres.nn.parts import Parts
from pres.nn.ranking import Ranking, ranking


@dataclass(frozen=True, eq=False)
class Slots:
    """Which of the ``k`` slots of each of ``q`` queries are filled.

    Nothing is computed for an empty one, early in a stream half of all: values of slots are *packed* `[s]`,
    those of the filled ones alone, a query's next to each other.
    """

    mask: Tensor  # [q, k] bool
    filled: Tensor  # [s] the filled ones, as positions among all q * k
    query: Tensor  # [s] whose each of them is
    starts: Tensor  # [q] where those of each query begin

    @classmethod
    def of(cls, mask: Tensor) -> Slots:
        """Return the slots that ``mask`` `[q, k]` says are filled."""
        filled, counts = mask.flatten().nonzero().squeeze(1), mask.sum(1)
        query = torch.div(filled, mask.shape[1], rounding_mode="floor")
        return cls(mask, filled, query, counts.cumsum(0) - counts)

    @classmethod
    def one_each(cls, queries: int, device: torch.device) -> Slots:
        """Return one filled slot for each query."""
        each = torch.arange(queries, device=device)
        return cls(torch.ones(queries, 1, dtype=torch.bool, device=device), each, each, each)

    def __len__(self) -> int:
        return len(self.filled)

    def pack(self, values: Tensor) -> Tensor:
        """Return the values `[..., s]` of the filled slots from those of all `[..., q, k]`."""
        flat = values.flatten(-2)
        return flat if self.full else flat.index_select(-1, self.filled)

    def pad(self, values: Tensor) -> Tensor:
        """Return values `[..., q, k]` of all slots from those of the filled ones `[..., s]`; 0 elsewhere."""
        if not self.full:
            everywhere = values.new_zeros(*values.shape[:-1], self.mask.numel())
            values = everywhere.index_copy_(-1, self.filled, values)
        return values.view(*values.shape[:-1], *self.mask.shape)

    @property
    def full(self) -> bool:
        """Whether no slot is empty."""
        return len(self.filled) == self.mask.numel()

    def held_by(self, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Return where the packed values of some queries `[p]` are, and where each query's then begin."""
        counts = self.mask.sum(1)[queries]
        starts = counts.cumsum(0) - counts
        moved = (self.starts[queries] - starts).repeat_interleave(counts)
        return torch.arange(len(moved), device=queries.device) + moved, starts

    def each(self, queries: Parts) -> tuple[Parts, list[Slots]]:
        """Return the parts of the packed slots that belong to parts of the queries, and the slots of each."""
        if len(queries) == 1:
            return Parts([len(self)], self.filled.device), [self]
        number, k = queries.number.index_select(0, self.query), self.mask.shape[1]
        slots, first = Parts.of_numbers(number, len(queries)), queries.starts.index_select(0, number)
        fields = (
            queries.split(self.mask),
            slots.split(self.filled - first * k),
            slots.split(self.query - first),
            queries.split(self.starts - slots.starts[queries.number]),
        )
        return slots, [Slots(*those) for those in zip(*fields, strict=True)]


@dataclass(frozen=True, eq=False)
class Asked:
    """Queries that may share their vectors: what their slots are, and who asks each of them."""

    slots: Slots
    asker: Tensor | None = None  # [q]; None: each has a vector of its own
    ranked: Ranking | None = None  # of the askers, where that is known already

    @cached_property
    def by_asker(self) -> Ranking:
        """The queries sorted by their asker."""
        assert self.asker is not None
        return ranking(self.asker) if self.ranked is None else self.ranked

    @cached_property
    def slots_by_asker(self) -> tuple[Tensor, Tensor]:
        """The filled slots `[s]` sorted by their asker, and where those of each that asks begin."""
        held, starts = self.slots.held_by(self.by_asker.order)
        return held, starts[self.by_asker.starts]

    @cached_property
    def of_slots(self) -> Tensor:
        """The asker `[s]` of each filled slot's query."""
        return self.slots.query if self.asker is None else self.asker.index_select(0, self.slots.query)

    def of_each(self, vectors: Tensor) -> Tensor:
        """Return the vectors `[..., q, d]` of the queries from those of the askers `[..., m, d]`."""
        return vectors if self.asker is None else vectors.index_select(-2, self.asker)
