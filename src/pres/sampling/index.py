"""The temporal index: the neighbours of any node before any time, by index arithmetic alone."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pres.data.incidence import BLOCK, NO_KEY, IndexArrays, empty, first_of_equal, incidences, whole_blocks
from pres.data.stream import EventStream
from pres.errors import OptionError, check_choice
from pres.sampling.rng import below, uniform

_SEARCHED_AT_ONCE = 1 << 20  # keys that a binary search finds its way in without landmarks
Visibility = Literal["fresh", "batch"]
Strategy = Literal["recent", "uniform"]
Direction = Literal["both", "out", "in"]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Up to ``k`` neighbours for each of ``q`` queries, the most recent first.

    Where ``mask`` is False there was no such neighbour, and the other fields are 0.
    """

    nodes: Tensor  # [q, k] int64, the other endpoint
    events: Tensor  # [q, k] int64, the event that made it a neighbour
    t: Tensor  # [q, k], the time of that event
    mask: Tensor  # [q, k] bool

    def __len__(self) -> int:
        return len(self.mask)


class TemporalIndex:
    """Every node's events in time order, ready for queries "the neighbours of v before event c".

    A query is a node and a *cutoff*: the position in the stream of the first event it must not see.
    `cutoffs` gives it for the events of a batch, `cutoff_at` for any time; under both no query
    sees an event at or after its own time.

    Args:
        events: The whole stream (not a slice, so that positions are those of its events).
        direction: Whose events make a neighbour: ``"both"`` endpoints', ``"out"`` only the source sees
            the destination, ``"in"`` only the destination sees the source. By default ``"out"`` for
            a directed stream, otherwise ``"both"``.
    """

    def __init__(self, events: EventStream, direction: Direction | None = None) -> None:
        if events.offset:
            raise OptionError("a TemporalIndex is built from the whole stream, not from a slice of it.")
        usual: Direction = "out" if events.directed else "both"
        self.direction: Direction = direction or usual
        check_choice("direction", self.direction, ("both", "out", "in"))
        self.num_events, self.num_nodes = len(events), events.num_nodes
        ready = events.index if self.direction == usual else None
        arrays = index_arrays(events, self.direction) if ready is None else ready
        self._t = events.t
        self._keys, self._landmarks, self._neighbour, self._time, self._start, self._first_of_equal = arrays
        self._first_landmarks = self._landmarks[::BLOCK].contiguous()

    def to(self, device: torch.device | str) -> TemporalIndex:
        """Return the index with its tensors on ``device``."""
        moved = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(moved, name, value.to(device))
        return moved

    def cutoffs(
        self, batch: EventStream, visibility: Visibility = "fresh", batch_start: int | None = None
    ) -> Tensor:
        """Return the cutoff `[b]` of each event of a batch (a slice of the indexed stream).

        ``"fresh"`` shows everything strictly before the event's time, ``"batch"`` of that only what lies in
        earlier batches. For a part of a temporal batch, ``batch_start`` says where the batch began.
        """
        check_slice(batch, self._t, "the index")
        fresh = self._first_of_equal[batch.offset : batch.offset + len(batch)]
        if visibility == "fresh":
            return fresh.clone()
        check_choice("visibility", visibility, ("fresh", "batch"))
        return fresh.clamp(max=batch.offset if batch_start is None else batch_start)

    def cutoff_at(self, t: Tensor) -> Tensor:
        """Return the cutoffs of queries at times ``t``: everything strictly earlier is visible."""
        return first_at(self._t, t)

    def counts(self, nodes: Tensor, cutoffs: Tensor) -> Tensor:
        """Return how many events `[q]` of each node lie before its cutoff."""
        nodes, cutoffs = self._checked(nodes, cutoffs)
        return self._end(nodes, cutoffs) - self._start[nodes]

    def recent(self, nodes: Tensor, cutoffs: Tensor, k: int) -> Neighbours:
        """Return the ``k`` most recent neighbours of each node before its cutoff."""
        nodes, cutoffs = self._checked(nodes, cutoffs)
        check_k(k)
        back = torch.arange(1, k + 1, device=nodes.device)
        slots = self._end(nodes, cutoffs).unsqueeze(1) - back
        return self._gather(nodes, slots, slots >= self._start[nodes].unsqueeze(1))

    def uniform(self, nodes: Tensor, cutoffs: Tensor, k: int, seed: int = 0) -> Neighbours:
        """Return ``k`` neighbours drawn from all before the cutoff without replacement, or all if fewer.

        The draw is a function of seed, node and cutoff.
        """
        nodes, cutoffs = self._checked(nodes, cutoffs)
        check_k(k)
        first = self._start[nodes]
        ranks, mask = drawn_ranks(self._end(nodes, cutoffs) - first, k, seed, nodes, cutoffs)
        return self._gather(nodes, first.unsqueeze(1) + ranks, mask)

    def before(self, events: Tensor) -> Tensor:
        """Return the cutoffs of queries at the times of events `[q]`: they see all strictly earlier."""
        return self._first_of_equal[events]

    def _checked(self, nodes: Tensor, cutoffs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the queries as int64; a cutoff that is no position in the stream would show the future."""
        device = self._t.device
        nodes, cutoffs = torch.as_tensor(nodes, device=device), torch.as_tensor(cutoffs, device=device)
        if nodes.ndim != 1 or nodes.shape != cutoffs.shape:
            raise OptionError(
                f"nodes {list(nodes.shape)} and cutoffs {list(cutoffs.shape)}: give one of each."
            )
        if nodes.is_floating_point() or cutoffs.is_floating_point():
            raise OptionError("nodes and cutoffs are integers; index.cutoff_at(t) turns times into cutoffs.")
        nodes, cutoffs = nodes.long(), cutoffs.long()  # keys do not fit 32 bits
        if device.type != "cpu":  # a look at the values would wait for the device
            return nodes, cutoffs.clamp(0, self.num_events)
        for name, given, most in (("node", nodes, self.num_nodes - 1), ("cutoff", cutoffs, self.num_events)):
            low, high = (int(bound) for bound in given.aminmax()) if len(given) else (0, 0)
            if low < 0 or high > most:
                wrong = low if low < 0 else high
                raise OptionError(
                    f"{name} {wrong} is not between 0 and {most:,}. A cutoff is a position in the stream: "
                    "index.cutoff_at(t) finds it for a time."
                )
        return nodes, cutoffs

    def _end(self, nodes: Tensor, cutoffs: Tensor) -> Tensor:
        """Return the number of keys `[q]` before that of each node and cutoff.

        A binary search in more keys than the cache holds waits for memory at each step. Three levels of
        landmarks wait twice: each is one block of neighbouring keys, compared as a whole.
        """
        wanted = nodes * self.num_events + cutoffs
        if len(self._keys) < _SEARCHED_AT_ONCE:
            return torch.searchsorted(self._keys, wanted)
        place = torch.searchsorted(self._first_landmarks, wanted)
        for level in (self._landmarks, self._keys):
            block = place.sub_(1).clamp_(min=0)
            before = level.view(-1, BLOCK).index_select(0, block) < wanted.unsqueeze(1)
            place = before.sum(1).add_(block, alpha=BLOCK)
        return place

    def _gather(self, nodes: Tensor, slots: Tensor, mask: Tensor) -> Neighbours:
        absent = ~mask
        flat = slots.masked_fill_(absent, len(self._neighbour) - 1).flatten()
        keys, neighbours, t = (
            values.index_select(0, flat).view_as(slots)
            for values in (self._keys, self._neighbour, self._time)
        )
        events = keys.sub_((nodes * self.num_events).unsqueeze(1)).masked_fill_(absent, 0)
        return Neighbours(neighbours, events, t, mask)


def index_arrays(events: EventStream, direction: str) -> IndexArrays:
    """Return the arrays of an index, made in memory."""
    entries = incidences(events.src, events.dst, events.num_nodes, direction)
    nodes = torch.arange(events.num_nodes + 1, device=events.src.device)
    # One entry follows the last, at which slots without a neighbour point: no key, and zeros.
    keys = _in_blocks(entries.keys, 1)
    neighbour = _with_one_more(events.src + events.dst, entries.events)
    neighbour[:-1] -= entries.nodes
    return IndexArrays(
        keys=keys,
        landmarks=_in_blocks(keys[::BLOCK], 0),
        neighbour=neighbour,
        time=_with_one_more(events.t, entries.events),
        start=torch.searchsorted(entries.keys, nodes * len(events)),
        first_of_equal=first_of_equal(events.t),
    )


def _with_one_more(values: Tensor, at: Tensor) -> Tensor:
    """Return the values at some positions, and 0 behind them."""
    result = empty(len(at) + 1, values.dtype, values.device)
    torch.index_select(values, 0, at, out=result[:-1])
    result[-1] = 0
    return result


def _in_blocks(keys: Tensor, further: int) -> Tensor:
    """Return keys with at least so many further ones behind them, which are none, up to whole blocks."""
    result = empty(whole_blocks(len(keys) + further), keys.dtype, keys.device)
    result[: len(keys)] = keys
    result[len(keys) :] = NO_KEY
    return result


def first_at(times: Tensor, t: Tensor) -> Tensor:
    """Return the position of the first of increasing ``times`` `[n]` that does not lie before ``t`` `[q]`."""
    t = torch.as_tensor(t, device=times.device)
    if t.is_floating_point() and bool(t.isnan().any()):
        raise OptionError("a query's time is NaN.")
    if times.is_floating_point():
        t = t.double()
    elif t.is_floating_point():
        # An integer is below t exactly if it is below the next integer; infinities become just outside.
        t = t.double().clamp(float(times[0]), float(times[-1]) + 1).ceil().long()
    return torch.searchsorted(times, t)


def check_slice(batch: EventStream, t: Tensor, whose: str) -> None:
    """Raise unless ``batch`` is cut from the stream whose times are ``t``."""
    stop = batch.offset + len(batch)
    if stop > len(t):
        raise OptionError(
            f"the batch ends at event {stop:,}, but {whose} knows only {len(t):,} events. Build it from the "
            "whole stream and cut batches from that stream or its split."
        )
    if t.device.type != "cpu" or len(batch) == 0:
        return
    there = t.data_ptr() + batch.offset * t.element_size()
    if batch.t.data_ptr() != there and bool(t[batch.offset] != batch.t[0]):
        raise OptionError(f"the batch is not cut from the stream that {whose} was built from.")


def check_k(k: int) -> None:
    """Raise unless ``k`` neighbours can be asked for."""
    if k < 1:
        raise OptionError(f"k={k}: ask for at least one neighbour.")


def drawn_ranks(
    available: Tensor, k: int, seed: int, nodes: Tensor, cutoffs: Tensor
) -> tuple[Tensor, Tensor]:
    """Return ``k`` ranks `[q, k]` below ``available`` `[q]`, falling, and a mask where there are fewer."""
    ranks = _subsets(available, k, seed, nodes, cutoffs).sort(dim=1, descending=True).values
    mask = ranks < available.unsqueeze(1)
    if k > 1:  # the ranks beyond what is available sorted to the front: move them to the back
        order = mask.to(torch.int8).argsort(dim=1, descending=True, stable=True)
        ranks, mask = ranks.gather(1, order), mask.gather(1, order)
    return ranks, mask


def _subsets(available: Tensor, k: int, seed: int, *names: Tensor) -> Tensor:
    """Return ``k`` distinct ranks `[q, k]` below ``max(available, k)``, every subset equally likely.

    Floyd's algorithm, all queries at once: the i-th draw is from 0 … top, and top itself is taken
    when the draw was there already.
    """
    column = torch.arange(k, device=available.device)
    top = available.clamp(min=k).unsqueeze(1) - k + column
    chosen = below(top + 1, uniform(seed, *(name.unsqueeze(1) for name in names), column))
    for i in range(1, k):
        taken = (chosen[:, :i] == chosen[:, i : i + 1]).any(dim=1)
        chosen[:, i] = torch.where(taken, top[:, i], chosen[:, i])
    return chosen
