"""Index arithmetic on tensors: distinct values and their places, rows, slots of queries."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

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


def differentiable_gradients(
    plain: Callable[..., Tensor], given: Sequence[Tensor], needed: Sequence[bool], of_result: Tensor
) -> list[Tensor | None]:
    """Return the gradients of what ``plain`` makes of tensors, as autograd has them; None if not needed."""
    given = [value.view_as(value) for value in given]  # one may depend on another: not here
    wanted = [value for value, need in zip(given, needed, strict=True) if need]
    found = iter(torch.autograd.grad(plain(*given), wanted, of_result, create_graph=True))
    return [next(found) if need else None for need in needed]
