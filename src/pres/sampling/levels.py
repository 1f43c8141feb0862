"""Levels: the order in which the events of a batch can be applied exactly, as many at once as possible."""

from __future__ import annotations

import torch
from torch import Tensor

from pres.data.incidence import distinct, incidences
from pres.data.stream import EventStream
from pres.errors import OptionError


def levels(events: EventStream, edges: Tensor) -> Tensor:
    """Return the level `[n]` of each event in its batch, counted from 0.

    An event's level is one above the highest of the events just before it, in stream order, at either
    of its nodes in its batch. No two events of a level share a node, and the highest level plus one is the
    length of the batch's longest chain. All batches are worked at once, one step per level.
    """
    edges = edges.to(events.src.device)
    check_edges(edges, len(events))
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


def check_edges(edges: Tensor, num_events: int) -> None:
    """Raise unless ``edges`` cut exactly so many events into batches."""
    fits = len(edges) > 0 and int(edges[0]) == 0 and int(edges[-1]) == num_events
    if not fits or bool((edges[1:] < edges[:-1]).any()):
        raise OptionError(f"the edges do not cut {num_events:,} events: they rise from 0 to that number.")


def _successors(events: EventStream, edges: Tensor) -> Tensor:
    """Return the next event `[n, 2]` of the same batch at the source and at the destination, -1 if none."""
    n = len(events)
    batch = torch.bucketize(torch.arange(n, device=edges.device), edges, right=True)
    entries = incidences(events.src, events.dst, events.num_nodes)
    this, following = entries.events[:-1], entries.events[1:]
    linked = (entries.nodes[1:] == entries.nodes[:-1]) & (batch[this] == batch[following])
    this, following, node = this[linked], following[linked], entries.nodes[:-1][linked]
    successors = torch.full((n, 2), -1, dtype=torch.int64, device=edges.device)
    successors[this, (events.src[this] != node).long()] = following
    return successors
