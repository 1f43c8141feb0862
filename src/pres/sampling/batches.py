"""Temporal batches: consecutive slices of a stream, and their preparation ahead of use."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, TypeVar, cast, overload

import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import OptionError, check_choice

Ties = Literal["cut", "whole"]
T = TypeVar("T")


class TemporalBatches:
    """A stream cut into consecutive batches, each a slice of it (``batch.offset`` is its position).

    Args:
        events: The stream, or a part of it.
        size: Events per batch; the last may be smaller.
        window: Instead of ``size``: the length of a batch in the stream's unit of time, counted from
            the first event. Windows without events are left out.
        ties: ``"cut"`` cuts after exactly ``size`` events, as the field does; ``"whole"`` lets a batch
            grow until the next event has a later time.
    """

    def __init__(
        self,
        events: EventStream,
        size: int | None = None,
        *,
        window: float | None = None,
        ties: Ties = "cut",
    ) -> None:
        check_choice("ties", ties, ("cut", "whole"))
        if (size is None) == (window is None):
            raise OptionError("give either size= (events per batch) or window= (time per batch).")
        self.events = events
        if window is not None:
            self.edges = _window_edges(events.t, window)
        elif size is not None:
            if size < 1 or int(size) != size:
                raise OptionError(f"batch size {size}: a batch holds a whole number of events, at least one.")
            size = int(size)
            of_ties = ties == "whole"
            self.edges = _whole_tie_edges(events.t, size) if of_ties else _edges(len(events), size)
        self.bounds = self.edges.tolist()

    def __len__(self) -> int:
        return len(self.bounds) - 1

    @overload
    def __getitem__(self, key: int) -> EventStream: ...
    @overload
    def __getitem__(self, key: slice) -> list[EventStream]: ...
    def __getitem__(self, key: int | slice) -> EventStream | list[EventStream]:
        if isinstance(key, slice):
            return [self[i] for i in range(*key.indices(len(self)))]
        i = range(len(self))[key]
        return self.events[self.bounds[i] : self.bounds[i + 1]]

    def __repr__(self) -> str:
        sizes = torch.diff(self.edges)
        spread = f"{int(sizes.min()):,} to {int(sizes.max()):,} events each" if len(self) else "empty"
        return f"TemporalBatches of '{self.events.info.title}': {len(self):,} batches, {spread}"

    def __iter__(self) -> Iterator[EventStream]:
        return (self[i] for i in range(len(self)))


def _edges(n: int, size: int) -> Tensor:
    return torch.cat([torch.arange(0, n, size), torch.tensor([n])])


def _whole_tie_edges(t: Tensor, size: int) -> Tensor:
    edges = [0]
    while edges[-1] < len(t):
        last = t[min(edges[-1] + size, len(t)) - 1]
        edges.append(int(torch.searchsorted(t, last, right=True)))
    return torch.tensor(edges)


def _window_edges(t: Tensor, window: float) -> Tensor:
    if not window > 0:
        raise OptionError(f"window={window}: a window of time must be positive.")
    if len(t) == 0:
        return torch.tensor([0])
    elapsed = t - t[0]
    if float(window).is_integer() and not t.is_floating_point():
        number = torch.div(elapsed, int(window), rounding_mode="floor")  # exact for 64-bit times
    else:
        number = torch.div(elapsed.double(), window, rounding_mode="floor")
    first = (number[1:] != number[:-1]).nonzero().squeeze(1) + 1
    return torch.cat([torch.tensor([0]), first.cpu(), torch.tensor([len(t)])])


def prefetch(items: Iterable[T], depth: int = 1) -> Iterator[T]:
    """Yield ``items`` in order while a second thread already makes the next ``depth`` of them.

    An error in making an item is raised where that item would have been yielded. Leaving the loop
    early stops the thread.
    """
    if depth < 1:
        raise OptionError(f"depth={depth}: prepare at least one item ahead.")
    return _prefetch(iter(items), depth)


def _prefetch(iterator: Iterator[T], depth: int) -> Iterator[T]:
    end = object()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="pres-prefetch") as thread:
        ahead = deque(thread.submit(next, iterator, end) for _ in range(depth))
        try:
            while (item := ahead.popleft().result()) is not end:
                ahead.append(thread.submit(next, iterator, end))
                yield cast(T, item)
        finally:
            for future in ahead:
                future.cancel()
