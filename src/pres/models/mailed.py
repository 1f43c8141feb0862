"""The mail of a window's events: which mails each mailbox holds before an event is index arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from pres.data.incidence import sorted_keys
from pres.data.stream import EventStream
from pres.nn.encoding import TimeEncoding
from pres.nn.mailbox_scan import AGES, MailboxScan, Reading, age_rows, ages_of
from pres.nn.ops import Picked, rows
from pres.nn.scan import Chains
from pres.nn.scan_memory import ScanMemory
from pres.sampling import TemporalIndex


@dataclass(frozen=True, eq=False)
class WindowMail:
    """The mails of a window: each endpoint of an event sends one, to itself and to its neighbours.

    A node gets one mail of an event: as an endpoint its own, as a neighbour of both the destination's. So the
    mail of an entry is what its node sends. Mails are sorted by recipient and then by event.
    """

    stream: EventStream  # all events
    events: EventStream  # of the window
    chains: Chains  # of these
    keys: Tensor  # [m] recipient * w + event, increasing
    entry: Tensor  # [m] the entry that each is of

    @classmethod
    def of(
        cls, stream: EventStream, events: EventStream, chains: Chains, index: TemporalIndex, neighbours: int
    ) -> WindowMail:
        """Return the mail of events that goes to so many neighbours of an endpoint.

        They are those from before the event's time: there are no batches that could hide some.
        """
        event, w = chains.event, len(events)
        node = rows(chains.node, chains.chain)
        by_dst = (node != rows(events.src, event)).long()
        found = index.recent(node, rows(index.cutoffs(events, "fresh"), event), neighbours)
        filled = found.mask.flatten().nonzero().squeeze(1)
        sender, to = torch.div(filled, neighbours, rounding_mode="floor"), rows(found.nodes.flatten(), filled)
        # Of several mails of an event to one node the last is kept: its own (2), the destination's (1), or
        # the source's (0).
        sent = (to * w + rows(event, sender)) * 4 + rows(by_dst, sender)
        sent = sorted_keys(torch.cat([chains.keys * 4 + 2, sent]))
        last = torch.ones_like(sent, dtype=torch.bool)
        last[:-1] = sent[1:] >> 2 != sent[:-1] >> 2
        sent = rows(sent, last.nonzero().squeeze(1))
        keys, kind = sent >> 2, sent & 3
        entry = torch.zeros(2 * w, dtype=torch.int64, device=event.device)
        entry[2 * event + by_dst] = torch.arange(len(chains), device=event.device)
        own = kind == 2  # they are as many as the entries, and in their order
        of_other = rows(entry, 2 * (keys % max(w, 1)) + kind.clamp(max=1))
        return cls(stream, events, chains, keys, torch.where(own, own.cumsum(0) - 1, of_other))

    @cached_property
    def newest(self) -> Tensor:
        """Where the mail of each entry `[h]` to its own node is, the newest that the node has then."""
        return torch.searchsorted(self.keys, self.chains.keys)

    @cached_property
    def inside(self) -> Tensor:
        """How many mails of the window have reached the node of each entry `[h]`, its own included."""
        first = torch.searchsorted(self.keys, self.chains.node * len(self.events))
        return self.newest - rows(first, self.chains.chain) + 1

    def scanned(
        self,
        updater: MailboxScan,
        memory: ScanMemory,
        time: TimeEncoding,
        *known: Tensor | Picked,
    ) -> tuple[Tensor, Tensor]:
        """Return the memory `[h, d]` after each entry, and its mail `[h, d]`.

        Args:
            updater: What moves memory.
            memory: The memory of all nodes, as before the window.
            time: What encodes ages.
            known: What the updater is given first: of chains, events, and times since events before.
        """
        places, stored = self._stored(memory)
        mails, events = memory.read_mails(stored)
        reading = self._reading(places, events, time.scale, updater.heads)
        ages = time(ages_of(mails.device) * time.scale)
        found: tuple[Tensor, Tensor] = updater(*known, mails, ages, self.chains, reading)
        return found

    def _stored(self, memory: ScanMemory) -> tuple[Tensor, Tensor]:
        """Return which mails from before the window are read, and where they are in memory `[p]`.

        The former are numbers `[c, slots]` below ``p`` of each node's, the newest first; -1 where there is
        none that any entry reads.
        """
        place, there = memory.newest(self.chains.node)
        back = torch.arange(memory.slots, device=place.device)
        there = there & (back < (memory.slots - rows(self.inside, self.chains.first)).unsqueeze(1))
        number = torch.where(there, there.flatten().cumsum(0).view_as(place) - 1, -1)
        return number, rows(place.flatten(), there.flatten().nonzero().squeeze(1))

    def _reading(self, places: Tensor, stored: Tensor, unit: float, heads: int) -> Reading:
        """Return what each entry's node reads: its newest mails, up to its own of the entry's event.

        Stored mails are at ``places`` `[c, slots]`, see `_stored`, and are of the events ``stored`` `[p]`.
        """
        chains, k = self.chains, places.shape[1]
        h, slot, inside = len(chains), torch.arange(k, device=places.device), self.inside.unsqueeze(1)
        older = rows(places.flatten(), chains.chain.unsqueeze(1) * k + (slot - inside).clamp(min=0))
        mail = torch.where(older >= 0, h + older, -1)
        if h:
            mail = torch.where(
                slot < inside, rows(self.entry, (self.newest.unsqueeze(1) - slot).clamp(min=0)), mail
            )
        filled = mail >= 0
        mail = torch.where(filled, mail, torch.arange(h, device=mail.device).unsqueeze(1))
        t = rows(self.events.t, chains.event)
        age = age_rows((t.unsqueeze(1) - rows(torch.cat([t, rows(self.stream.t, stored)]), mail)) / unit)
        return Reading(heads, mail, torch.where(filled, age, AGES), h)

    @torch.no_grad()
    def deliver(self, memory: ScanMemory, mails: Tensor, stop: int) -> None:
        """Put the mails of all events before the window's ``stop`` into memory, of ``mails`` `[h, d]`."""
        w = max(len(self.events), 1)
        to = torch.div(self.keys, w, rounding_mode="floor")
        at = self.keys - to * w
        known = (at < stop).nonzero().squeeze(1)
        to = rows(to, known)
        _, group, counts = torch.unique_consecutive(to, return_inverse=True, return_counts=True)
        left = rows(counts.cumsum(0), group) - torch.arange(len(to), device=to.device)  # 1 at a node's newest
        newest = (left <= memory.slots).nonzero().squeeze(1)  # the others have no slot any more
        known, rank = rows(known, newest), rows(rows(counts, group) - left, newest)
        event = self.events.offset + rows(at, known)
        memory.write_mails(rows(to, newest), rank, event, rows(mails, rows(self.entry, known)))
