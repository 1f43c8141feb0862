"""The temporal index of a stream that grows: sorted segments of its events, merged as they become many."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from pres.data.incidence import check_key_range, first_of_equal, incidences
from pres.data.room import Room
from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.sampling.index import Direction, Neighbours, TemporalIndex, check_k, check_slice, drawn_ranks

SMALL = 256  # events; a last segment of fewer takes in whatever comes


def grown(index: TemporalIndex, events: EventStream) -> TemporalIndex:
    """Return the index of a stream that ``index`` knows the beginning of; ``index`` stays as it is.

    It answers as an index of the whole stream does. Each event is sorted again only when its segment has
    doubled, so that appending costs O(log) per event in the long run, whatever the length of the stream.
    """
    first = index.num_events
    if events.offset or len(events) < first or events.num_nodes < index.num_nodes:
        raise OptionError("an index grows with the whole stream, which has more events than before.")
    check_slice(events[:first][-1:], index._t, "the index")
    check_key_range(events.num_nodes, len(events))
    if len(events) == first and events.num_nodes == index.num_nodes:
        return index
    if not first:
        return TemporalIndex(events, index.direction)
    base, segments, ties = (
        (index.base, list(index.segments), index.ties)
        if isinstance(index, GrownIndex)
        else (index, [], Room(index._first_of_equal))
    )
    begin = first
    while segments and len(segments[-1]) < max(2 * (len(events) - begin), SMALL):
        begin = segments.pop().begin
    if len(events) > first and base.num_events < 2 * (len(events) - begin):
        return TemporalIndex(events, index.direction)
    if len(events) > begin:
        segments.append(Segment.of(events, begin, index.direction))
    return GrownIndex(base, tuple(segments), events, _with_ties(ties, events, first))


@dataclass(frozen=True, eq=False)
class Segment:
    """Consecutive events of a stream, in the order of node and event."""

    begin: int  # the first of its events
    stop: int
    keys: Tensor  # [m] node * len + event, counted from the first
    neighbour: Tensor  # [m] the other endpoint
    t: Tensor  # [m]

    @classmethod
    def of(cls, events: EventStream, begin: int, direction: Direction) -> Segment:
        """Return the last segment of a stream."""
        part = events[begin:]
        found = incidences(part.src, part.dst, events.num_nodes, direction)
        other = (part.src + part.dst)[found.events] - found.nodes
        return cls(begin, len(events), found.keys, other, part.t[found.events])

    def __len__(self) -> int:
        return self.stop - self.begin

    def to(self, device: torch.device | str) -> Segment:
        """Return the segment with its tensors on ``device``."""
        moved = (values.to(device) for values in (self.keys, self.neighbour, self.t))
        return Segment(self.begin, self.stop, *moved)

    def span(self, nodes: Tensor, cutoffs: Tensor) -> tuple[Tensor, Tensor]:
        """Return where the entries of nodes `[q]` begin, and where those before their cutoffs end."""
        first = nodes * len(self)
        local = (cutoffs - self.begin).clamp_(0, len(self))
        return torch.searchsorted(self.keys, first), torch.searchsorted(self.keys, first + local)


class GrownIndex(TemporalIndex):
    """An index that has grown: one of the first events, and segments of those since; see `grown`."""

    def __init__(
        self, base: TemporalIndex, segments: tuple[Segment, ...], events: EventStream, ties: Room
    ) -> None:
        self.direction, self.base, self.segments, self.ties = base.direction, base, segments, ties
        self.num_events, self.num_nodes = len(events), events.num_nodes
        self._t, self._first_of_equal = events.t, ties.rows

    def to(self, device: torch.device | str) -> TemporalIndex:
        """Return the index with its tensors on ``device``."""
        moved = copy.copy(self)
        moved.base, moved.segments = self.base.to(device), tuple(part.to(device) for part in self.segments)
        moved._t, moved._first_of_equal = self._t.to(device), self._first_of_equal.to(device)
        moved.ties = self.ties if moved._t is self._t else Room(moved._first_of_equal)
        return moved

    def counts(self, nodes: Tensor, cutoffs: Tensor) -> Tensor:
        """Return how many events `[q]` of each node lie before its cutoff."""
        return self._spans(*self._checked(nodes, cutoffs))[1][-1]

    def recent(self, nodes: Tensor, cutoffs: Tensor, k: int) -> Neighbours:
        """Return the ``k`` most recent neighbours of each node before its cutoff."""
        nodes, cutoffs = self._checked(nodes, cutoffs)
        check_k(k)
        first, until = self._spans(nodes, cutoffs)
        ranks = until[-1].unsqueeze(1) - torch.arange(1, k + 1, device=nodes.device)
        return self._of_ranks(nodes, ranks, ranks >= 0, first, until)

    def uniform(self, nodes: Tensor, cutoffs: Tensor, k: int, seed: int = 0) -> Neighbours:
        """Return ``k`` neighbours drawn as `TemporalIndex.uniform` draws them."""
        nodes, cutoffs = self._checked(nodes, cutoffs)
        check_k(k)
        first, until = self._spans(nodes, cutoffs)
        ranks, mask = drawn_ranks(until[-1], k, seed, nodes, cutoffs)
        return self._of_ranks(nodes, ranks, mask, first, until)

    def _spans(self, nodes: Tensor, cutoffs: Tensor) -> tuple[Tensor, Tensor]:
        """Return where the entries of nodes begin in each part `[s, q]`, and how many there are up to it."""
        base = self.base
        known = nodes.clamp(max=base.num_nodes)  # where the last node's entries end, a later one has none
        first = base._start[known]
        found = [(first, base._end(known, cutoffs.clamp(max=base.num_events)))]
        found += [part.span(nodes, cutoffs) for part in self.segments]
        begins, ends = (torch.stack(each) for each in zip(*found, strict=True))
        return begins, (ends - begins).cumsum(0)

    def _of_ranks(
        self, nodes: Tensor, ranks: Tensor, mask: Tensor, first: Tensor, until: Tensor
    ) -> Neighbours:
        """Return the entries of nodes at ranks `[q, k]`, counted from each node's first."""
        found = torch.zeros_like(ranks), torch.zeros_like(ranks), self._t.new_zeros(ranks.shape)
        before = until - torch.diff(until, dim=0, prepend=torch.zeros_like(until[:1]))
        parts: list[TemporalIndex | Segment] = [self.base, *self.segments]
        for place, part in enumerate(parts):
            low, high = before[place].unsqueeze(1), until[place].unsqueeze(1)
            row, column = (mask & (ranks >= low) & (ranks < high)).nonzero(as_tuple=True)
            if not len(row):
                continue
            slots = first[place][row] + ranks[row, column] - before[place][row]
            read = _read(part, slots, nodes[row])
            for values, some in zip(found, read, strict=True):
                values[row, column] = some
        neighbours, at, t = found
        return Neighbours(neighbours, at, t, mask)


def _read(part: TemporalIndex | Segment, slots: Tensor, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return neighbours, events and times `[p]` of entries, which are of nodes `[p]`."""
    if isinstance(part, Segment):
        return part.neighbour[slots], part.keys[slots] - nodes * len(part) + part.begin, part.t[slots]
    return part._neighbour[slots], part._keys[slots] - nodes * part.num_events, part._time[slots]


def _with_ties(ties: Room, events: EventStream, first: int) -> Room:
    """Return the first event at the time of each, where those before event ``first`` are known."""
    if len(ties.rows) != first:  # it has grown with another view of the stream
        ties = Room(ties.rows[:first].clone())
    if len(events) > first:
        new = first_of_equal(events.t[first:]) + first
        ties.append(torch.where(events.t[first:] == events.t[first - 1], ties.rows[first - 1], new))
    return ties
