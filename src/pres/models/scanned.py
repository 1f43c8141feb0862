"""Memory by a scan: the chains of all events of a batch at once, and the memory before each of them."""

from __future__ import annotations

from dataclasses import dataclass, fields

import torch
from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.models.mailed import WindowMail
from pres.models.states import States
from pres.nn.encoding import NodeEncoding
from pres.nn.mailbox_scan import MailboxScan
from pres.nn.message import EventMessage
from pres.nn.ops import rows
from pres.nn.scan import Chains
from pres.nn.scan_memory import ScanMemory
from pres.sampling import TemporalIndex

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
    """Events that are scanned together; neither weights nor memory matter to it."""

    events: EventStream
    batch: EventStream  # the new ones among them, which are the last
    chains: Chains
    mail: WindowMail | None  # where events send some

    @classmethod
    def of(
        cls,
        stream: EventStream,
        start: int,
        stop: int,
        index: TemporalIndex | None = None,
        neighbours: int = 0,
    ) -> Window:
        """Return the window of a batch, the events of a stream from ``start`` to ``stop``.

        With an index each endpoint sends mail, to itself and to so many neighbours.
        """
        events = stream[held(start, stream.t) : stop]
        chains = Chains.of(events.src, events.dst, stream.num_nodes)
        mail = None if index is None else WindowMail.of(stream, events, chains, index, neighbours)
        return cls(events, stream[start:stop], chains, mail)

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
        return self.chains.version(nodes, places)

    def state_keys(self, nodes: Tensor, entries: Tensor) -> Tensor:
        """Return a number `[q]` for each memory: that of an entry, or after all these that of a node."""
        return torch.where(entries >= 0, entries, len(self.chains) + nodes)

    def of_state_keys(self, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return whether there is an entry, the nodes, and the entries."""
        chains, h = self.chains, len(self.chains)
        inside = keys < h
        if not h:
            return inside, keys, torch.full_like(keys, -1)
        chain = rows(chains.chain, keys.clamp(max=h - 1))
        return inside, torch.where(inside, rows(chains.node, chain), keys - h), torch.where(inside, keys, -1)

    def scanned(
        self, memory: ScanMemory, message: nn.Module, updater: nn.Module, node_encoding: NodeEncoding
    ) -> Scanned:
        """Return the memory inside the window, which memory must stand at the beginning of."""
        assert isinstance(message, EventMessage)
        chains = self.chains
        (begin, last_event), encoding = memory.read(chains.node), node_encoding(chains.node)
        t = rows(self.events.t, chains.event)
        since = t - torch.cat([t[:1], t[:-1]]).index_copy(0, chains.first, last_event)
        events = self.events.offset + torch.arange(len(self.events), device=t.device)
        known = begin, encoding, *message(events, since, begin.dtype)
        if self.mail is None:
            return Scanned(self, memory, begin, updater(*known, chains), None)
        assert isinstance(updater, MailboxScan)
        return Scanned(self, memory, begin, *self.mail.scanned(updater, memory, message.time, *known))


@dataclass(frozen=True, eq=False)
class Scanned:
    """The memory of a window's nodes, as long as that of all nodes stands at the window's beginning."""

    window: Window
    memory: ScanMemory
    begin: Tensor  # [c, d] before each chain
    states: Tensor  # [h, d] after each entry
    mails: Tensor | None  # [h, d] of each entry, where events send some

    @property
    def end(self) -> Tensor:
        """The memory `[c, d]` after each chain."""
        return rows(self.states, self.window.chains.last)

    def updated_memory(self, nodes: Tensor, entries: Tensor) -> States:
        """Return the memory of nodes `[u]` after their entries `[u]`; nodes without one (-1) come last."""
        inside = int((entries >= 0).sum())
        entries, outside = entries[:inside], nodes[inside:]
        stored = self.memory.read(outside)
        found = torch.cat([rows(self.states, entries), stored.memory.to(self.states.dtype)])
        last_event = torch.cat([self._times(entries), stored.last_event])
        return States(
            nodes=nodes,
            previous=found,  # no mail is pending
            measured=found,
            corrected=found,
            kept=found,
            memory=found,
            previous_update=last_event,
            last_update=last_event,
            pending=torch.zeros_like(nodes, dtype=torch.bool),
            last_event=last_event,
        )

    def updated_memory_all(self, nodes: Tensor) -> States:
        """Return the memory of distinct, increasing nodes `[u]` after the whole window, in their order."""
        window = self.window
        entries = window.version(nodes, torch.full_like(nodes, len(window.events)))
        order = torch.argsort((entries < 0).long(), stable=True)
        found = self.updated_memory(rows(nodes, order), rows(entries, order))
        back = torch.argsort(order)
        return States(**{field.name: rows(getattr(found, field.name), back) for field in fields(States)})

    def _times(self, entries: Tensor) -> Tensor:
        """Return the times `[q]` of the events of entries `[q]`."""
        return rows(self.window.events.t, rows(self.window.chains.event, entries))

    @torch.no_grad()
    def commit(self) -> None:
        """Let memory hold what it is to hold when the window is taken in."""
        events, chains, memory = self.window.events, self.window.chains, self.memory
        stop = held(len(events), events.t)
        entry = chains.version(chains.node, torch.full_like(chains.node, stop))
        begun = (entry >= 0).nonzero().squeeze(1)
        entry = rows(entry, begun)
        memory.write(rows(chains.node, begun), rows(self.states, entry), self._times(entry))
        memory.advance(events.offset + len(events))
        if self.window.mail is not None and self.mails is not None:
            self.window.mail.deliver(memory, self.mails, stop)
