"""Pending sets (Definitions 1 and 2 of the paper), what a batch loses by them, and levels.

Event e' is pending before e if both lie in one batch, share a node, and e' is strictly earlier.
A batch applies one update to a node of ``c`` events: ``c - 1`` updates are lost. Levels are an order in which
the events of a batch can be applied exactly, as many at once as possible. All batches are worked at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pres.data.incidence import check_key_range, distinct, incidences, run_starts
from pres.data.stream import EventStream
from pres.errors import OptionError


@dataclass(frozen=True)
class PendingLoad:
    """The pending load of a whole stream under one batching."""

    batches: int
    largest_batch: int
    events_with_pending: float  # share of events whose pending set is not empty
    mean_pending: float  # mean size of a pending set
    largest_pending: int
    lost_updates: float  # share of a sequential pass's updates that one update per batch leaves out
    longest_chain: int  # most events of one batch that must follow each other
    mean_level_width: float  # events per level: how parallel exact processing could be


@dataclass(frozen=True, eq=False)
class PendingProfile:
    """Pending sets of a stream cut at ``edges``, per event, per node and batch, and per batch."""

    edges: Tensor  # [batches + 1]
    sizes: Tensor  # [n] size of each event's pending set
    nodes: Tensor  # [p] for each node in each batch where it occurs: the node,
    batches: Tensor  # [p] the batch,
    updates: Tensor  # [p] and its number of events there, c
    levels: Tensor  # [n] level of each event in its batch, from 0

    @classmethod
    def of(cls, events: EventStream, edges: Tensor) -> PendingProfile:
        """Return the profile of ``events`` cut at ``edges`` (`TemporalBatches.edges`)."""
        edges = edges.to(events.src.device)
        _check_edges(edges, len(events))
        batch = _batch_of_events(edges)
        entries = incidences(events.src, events.dst, events.num_nodes)
        earlier, group = _earlier_in_group(entries.nodes, batch[entries.events], events.t[entries.events])
        sizes = torch.zeros_like(batch).index_add_(0, entries.events, earlier)
        sizes -= _earlier_with_both_nodes(events, batch)
        first = torch.ones_like(group, dtype=torch.bool)
        first[1:] = group[1:] != group[:-1]
        at = first.nonzero().squeeze(1)
        return cls(
            edges=edges,
            sizes=sizes,
            nodes=entries.nodes[at],
            batches=batch[entries.events[at]],
            updates=torch.diff(at, append=at.new_tensor([len(group)])),
            levels=levels(events, edges),
        )

    @property
    def per_batch(self) -> dict[str, Tensor]:
        """Per batch: events, total pending, lost updates and number of levels."""
        count = len(self.edges) - 1
        batch = _batch_of_events(self.edges)
        zeros = torch.zeros(count, dtype=torch.int64, device=self.sizes.device)
        return {
            "events": torch.diff(self.edges),
            "pending": zeros.index_add(0, batch, self.sizes),
            "lost_updates": zeros.index_add(0, self.batches, self.updates - 1),
            "levels": zeros.scatter_reduce(0, batch, self.levels + 1, "amax"),
        }

    def load(self) -> PendingLoad:
        """Return the totals over the stream."""
        per_batch = self.per_batch
        n = max(len(self.sizes), 1)
        return PendingLoad(
            batches=len(self.edges) - 1,
            largest_batch=_largest(per_batch["events"]),
            events_with_pending=float((self.sizes > 0).sum()) / n,
            mean_pending=float(self.sizes.sum()) / n,
            largest_pending=_largest(self.sizes),
            lost_updates=float(per_batch["lost_updates"].sum()) / max(int(self.updates.sum()), 1),
            longest_chain=_largest(per_batch["levels"]),
            mean_level_width=len(self.sizes) / max(int(per_batch["levels"].sum()), 1),
        )


def _largest(values: Tensor) -> int:
    return int(values.max()) if len(values) else 0


def pending_sets(batch: EventStream) -> tuple[Tensor, Tensor]:
    """Return the pending sets of one batch as ``(offsets [b + 1], members)``, positions in the batch.

    The pending set of event ``i`` is ``members[offsets[i]:offsets[i + 1]]``, in stream order.
    """
    n = len(batch)
    entries = incidences(batch.src, batch.dst, batch.num_nodes)
    earlier, group = _earlier_in_group(
        entries.nodes, torch.zeros_like(entries.nodes), batch.t[entries.events]
    )
    rows = torch.repeat_interleave(entries.events, earlier)
    within = torch.arange(len(rows), device=rows.device) - torch.repeat_interleave(
        earlier.cumsum(0) - earlier, earlier
    )
    members = entries.events[torch.repeat_interleave(group, earlier) + within]
    both = distinct(rows * n + members)  # an event that shares both nodes is one member
    rows, members = torch.div(both, max(n, 1), rounding_mode="floor"), both % max(n, 1)
    sizes = torch.bincount(rows, minlength=n)
    return torch.cat([sizes.new_zeros(1), sizes.cumsum(0)]), members


def levels(events: EventStream, edges: Tensor) -> Tensor:
    """Return the level `[n]` of each event in its batch, counted from 0.

    An event's level is one above the highest of the events just before it, in stream order, at either
    of its nodes in its batch. No two events of a level share a node, and the highest level plus one is the
    length of the batch's longest chain. All batches are worked at once, one step per level.
    """
    edges = edges.to(events.src.device)
    _check_edges(edges, len(events))
    successors = _successors(events, edges)
    waiting = torch.bincount(successors[successors >= 0], minlength=len(events))
    level = torch.zeros(len(events), dtype=torch.int64, device=events.src.device)
    ready = (waiting == 0).nonzero().squeeze(1)
    current = 0
    while len(ready):
        level[ready] = current
        following = successors[ready].flatten()
        following = following[following >= 0]
        waiting.index_add_(0, following, torch.full_like(following, -1))
        ready = distinct(following[waiting[following] == 0])
        current += 1
    return level


def _check_edges(edges: Tensor, num_events: int) -> None:
    """Raise unless ``edges`` cut exactly so many events into batches."""
    fits = len(edges) > 0 and int(edges[0]) == 0 and int(edges[-1]) == num_events
    if not fits or bool((edges[1:] < edges[:-1]).any()):
        raise OptionError(f"the edges do not cut {num_events:,} events: they rise from 0 to that number.")


def _successors(events: EventStream, edges: Tensor) -> Tensor:
    """Return the next event `[n, 2]` of the same batch at the source and at the destination, -1 if none."""
    n = len(events)
    batch = _batch_of_events(edges)
    entries = incidences(events.src, events.dst, events.num_nodes)
    this, following = entries.events[:-1], entries.events[1:]
    linked = (entries.nodes[1:] == entries.nodes[:-1]) & (batch[this] == batch[following])
    this, following, node = this[linked], following[linked], entries.nodes[:-1][linked]
    successors = torch.full((n, 2), -1, dtype=torch.int64, device=edges.device)
    successors[this, (events.src[this] != node).long()] = following
    return successors


def _batch_of_events(edges: Tensor) -> Tensor:
    return torch.repeat_interleave(torch.arange(len(edges) - 1, device=edges.device), torch.diff(edges))


def _earlier_in_group(key: Tensor, batch: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """Return how many entries of the same key and batch are strictly earlier, and where those entries start.

    Entries are sorted by key and then by time.
    """
    new_group = torch.ones_like(key, dtype=torch.bool)
    new_group[1:] = (key[1:] != key[:-1]) | (batch[1:] != batch[:-1])
    new_time = new_group.clone()
    new_time[1:] |= t[1:] != t[:-1]
    if len(key) == 0:
        return key, key
    group = run_starts(new_group)
    return run_starts(new_time) - group, group


def _earlier_with_both_nodes(events: EventStream, batch: Tensor) -> Tensor:
    """Return how many strictly earlier events of its batch have the same two nodes; 0 for a self-loop.

    An event that shares both nodes was counted once for each of them.
    """
    check_key_range(events.num_nodes, events.num_nodes)
    low, high = torch.minimum(events.src, events.dst), torch.maximum(events.src, events.dst)
    pair, order = torch.sort(low * events.num_nodes + high, stable=True)
    earlier, _ = _earlier_in_group(pair, batch[order], events.t[order])
    result = torch.zeros_like(batch)
    result[order] = earlier
    return result.masked_fill_(events.src == events.dst, 0)
