"""Memory by a scan: the chains of all events of a batch at once, and the memory before each of them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from pres.data.incidence import incidences
from pres.data.stream import EventStream
from pres.models.states import States
from pres.nn.message import EventMessage
from pres.nn.node_encoding import NodeEncoding
from pres.nn.ops import rows
from pres.nn.scan_memory import ScanMemory
from pres.nn.scan_updater import ScanUpdater

RESCANNED = 200  # events before a batch that are scanned with it, so that gradients reach what they did


def held(position: int, t: Tensor) -> int:
    """Return how many events memory holds when ``position`` events of a stream with times ``t`` are in.

    The next window begins there: with the last `RESCANNED` events, and with all at the time of the last, as
    an event to come at that time must not see them.
    """
    if position == 0:
        return 0
    tied = int(torch.searchsorted(t, t[position - 1 : position]))
    return max(0, min(position - RESCANNED, tied))


@dataclass(frozen=True, eq=False)
class Window:
    """Events that are scanned together, as chains: one per node, with an entry for each event of the node.

    Entries are sorted by node and then by event. Neither weights nor memory matter to it.
    """

    events: EventStream
    batch: EventStream  # the new ones among them, which are the last
    keys: Tensor  # [h] node * w + event, increasing
    event: Tensor  # [h] of each entry, counted from the window's first
    chain: Tensor  # [h] of each entry
    other: Tensor  # [h] the entry of its event's other endpoint; itself for a self-loop
    node: Tensor  # [c] of each chain
    first: Tensor  # [c] the first entry of each chain

    @classmethod
    def of(cls, stream: EventStream, start: int, stop: int) -> Window:
        """Return the window of a batch, the events of a stream from ``start`` to ``stop``."""
        events = stream[held(start, stream.t) : stop]
        keys, node, event = incidences(events.src, events.dst, stream.num_nodes)
        w = len(events)
        at = torch.arange(w, device=node.device)
        of_src, of_dst = (torch.searchsorted(keys, end * w + at) for end in (events.src, events.dst))
        other = torch.empty_like(node)
        other[of_src], other[of_dst] = of_dst, of_src
        begins = torch.ones_like(node, dtype=torch.bool)
        begins[1:] = node[1:] != node[:-1]
        first = begins.nonzero().squeeze(1)
        return cls(
            events=events,
            batch=stream[start:stop],
            keys=keys,
            event=event,
            chain=begins.cumsum(0) - 1,
            other=other,
            node=rows(node, first),
            first=first,
        )

    @cached_property
    def last(self) -> Tensor:
        """The last entry `[c]` of each chain."""
        return torch.cat([self.first[1:], self.first.new_tensor([len(self.keys)])[: len(self.first)]]) - 1

    def cut(self, at: Tensor, staleness: int) -> Tensor:
        """Return the first event `[q]` that predictions of events ``at`` `[q]` do not see.

        Both count from the window's first. It is the first of each group of so many events of the batch, or
        the first event at the same time as the predicted one, if that is earlier; with a staleness of 0 it is
        the latter for all.
        """
        t = self.events.t
        tied = torch.searchsorted(t, rows(t, at))
        if staleness == 0:
            return tied
        old = len(self.events) - len(self.batch)
        return torch.minimum(at - (at - old) % staleness, tied)

    def version(self, nodes: Tensor, places: Tensor) -> Tensor:
        """Return the last entry `[q]` of each of nodes `[q]` before events ``places`` `[q]`; -1 if none."""
        w = len(self.events)
        entry = torch.searchsorted(self.keys, nodes * w + places) - 1
        if not len(self.keys):
            return entry
        own = rows(self.keys, entry.clamp(min=0)) >= nodes * w
        return torch.where(own, entry, -1)

    def since_last(self, last_event: Tensor) -> Tensor:
        """Return the time `[h]` since each entry's last event; ``last_event`` `[c]` is before each chain."""
        t = rows(self.events.t, self.event)
        before = torch.cat([t[:1], t[:-1]]).index_copy(0, self.first, last_event)
        return t - before

    def scanned(
        self, memory: ScanMemory, message: nn.Module, updater: nn.Module, node_encoding: NodeEncoding
    ) -> Scanned:
        """Return the memory inside the window, which memory must stand at the beginning of."""
        assert isinstance(message, EventMessage) and isinstance(updater, ScanUpdater)
        begin, last_event = memory.read(self.node)
        about = message(self.events.offset + self.event, self.since_last(last_event), begin.dtype)
        states = updater(begin, node_encoding(self.node), about, self.first, self.chain, self.other)
        return Scanned(self, memory, begin, states)

    def state_keys(self, nodes: Tensor, entries: Tensor) -> Tensor:
        """Return a number `[q]` for each memory: that of an entry, or after all these that of a node."""
        return torch.where(entries >= 0, entries, len(self.keys) + nodes)

    def of_state_keys(self, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return whether there is an entry, the nodes, and the entries."""
        h = len(self.keys)
        inside = keys < h
        if not h:
            return inside, keys, torch.full_like(keys, -1)
        chain = rows(self.chain, keys.clamp(max=h - 1))
        return inside, torch.where(inside, rows(self.node, chain), keys - h), torch.where(inside, keys, -1)


@dataclass(frozen=True, eq=False)
class Scanned:
    """The memory of a window's nodes, as long as that of all nodes stands at the window's beginning."""

    window: Window
    memory: ScanMemory
    begin: Tensor  # [c, d] before each chain
    states: Tensor  # [h, d] after each entry

    @property
    def end(self) -> Tensor:
        """The memory `[c, d]` after each chain."""
        return rows(self.states, self.window.last)

    def updated_memory(self, nodes: Tensor, entries: Tensor) -> States:
        """Return the memory of nodes `[u]` after their entries `[u]`; nodes without one (-1) come last."""
        window, inside = self.window, int((entries >= 0).sum())
        entries, outside = entries[:inside], nodes[inside:]
        stored = self.memory.read(outside)
        found = torch.cat([rows(self.states, entries), stored.memory.to(self.states.dtype)])
        within = rows(window.events.t, rows(window.event, entries))
        last_event = torch.cat([within, stored.last_event])
        moved = torch.arange(len(nodes), device=nodes.device) < inside
        return States(
            nodes=nodes,
            previous=torch.cat([rows(self.begin, rows(window.chain, entries)), found[inside:]]),
            measured=found,
            corrected=found,
            kept=found,
            memory=found,
            previous_update=last_event,
            last_update=last_event,
            pending=moved,
            last_event=last_event,
        )

    def updated_memory_all(self, nodes: Tensor) -> States:
        """Return the memory of distinct, increasing nodes `[u]` after the whole window, in their order."""
        window = self.window
        entries = window.version(nodes, torch.full_like(nodes, len(window.events)))
        order = torch.argsort((entries < 0).long(), stable=True)
        found = self.updated_memory(rows(nodes, order), rows(entries, order))
        back = torch.argsort(order)
        return States(**{name: rows(value, back) for name, value in vars(found).items()})

    @torch.no_grad()
    def commit(self) -> None:
        """Let memory hold what it is to hold when the window is taken in."""
        window = self.window
        position = window.events.offset + len(window.events)
        place = held(len(window.events), window.events.t)
        entry = window.version(window.node, torch.full_like(window.node, place))
        begun = (entry >= 0).nonzero().squeeze(1)
        entry = rows(entry, begun)
        last_event = rows(window.events.t, rows(window.event, entry))
        self.memory.write(rows(window.node, begun), rows(self.states, entry), last_event)
        self.memory.advance(position)
