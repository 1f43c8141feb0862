"""Mailboxes in a scan: which mails each holds before an event is index arithmetic."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.models.scanned import Scanned, Window, held
from pres.nn.mailbox_reading import Reading, age_rows, ages_of
from pres.nn.mailbox_scan import Chains, MailboxScan
from pres.nn.message import EventMessage
from pres.nn.node_encoding import NodeEncoding
from pres.nn.ops import Slots, rows
from pres.nn.scan_mailboxes import ScanMailboxes
from pres.nn.scan_memory import ScanMemory
from pres.sampling import TemporalIndex


@dataclass(frozen=True, eq=False)
class MailWindow(Window):
    """A window whose events send mail: each of its endpoints, to itself and to its neighbours.

    A node gets one mail of an event: as an endpoint its own, as a neighbour of both the destination's. So the
    mail of an entry is what its node sends. Mails are sorted by recipient and then by event.
    """

    stream: EventStream  # all events
    mail_keys: Tensor  # [m] recipient * w + event, increasing
    mail: Tensor  # [m] the entry that each is of

    @classmethod
    def sending(
        cls, stream: EventStream, start: int, stop: int, index: TemporalIndex, neighbours: int
    ) -> MailWindow:
        """Return the window of a batch, with the mail that goes to so many neighbours of an endpoint.

        They are those from before the event's time: there are no batches that could hide some.
        """
        window = Window.of(stream, start, stop)
        keys, event, events = window.keys, window.event, window.events
        node = rows(window.node, window.chain)
        by_dst = (node != rows(events.src, event)).long()
        found = index.recent(node, rows(index.cutoffs(events, "fresh"), event), neighbours)
        filled = found.mask.flatten().nonzero().squeeze(1)
        sender, to = torch.div(filled, neighbours, rounding_mode="floor"), rows(found.nodes.flatten(), filled)
        sent = (to * len(events) + rows(event, sender)) * 4 + rows(by_dst, sender)
        sent = _sorted(torch.cat([keys * 4 + 2, sent]))
        mail_keys, kind = sent >> 2, sent & 3
        last = torch.ones_like(kind, dtype=torch.bool)
        last[:-1] = mail_keys[1:] != mail_keys[:-1]
        kept = last.nonzero().squeeze(1)
        mail_keys, kind = rows(mail_keys, kept), rows(kind, kept)
        entry = torch.zeros(2 * len(events), dtype=torch.int64, device=event.device)
        entry[2 * event + by_dst] = torch.arange(len(event), device=event.device)
        at = mail_keys - torch.div(mail_keys, max(len(events), 1), rounding_mode="floor") * len(events)
        own = kind == 2  # they are as many as the entries, and in their order
        mail = torch.where(own, own.cumsum(0) - 1, rows(entry, 2 * at + kind.clamp(max=1)))
        fields = {name: getattr(window, name) for name in Window.__dataclass_fields__}
        return cls(**fields, stream=stream, mail_keys=mail_keys, mail=mail)

    @cached_property
    def inside(self) -> Tensor:
        """How many mails of the window have reached the node of each entry `[h]`, its own included."""
        first = torch.searchsorted(self.mail_keys, self.node * len(self.events))
        return torch.searchsorted(self.mail_keys, self.keys) - rows(first, self.chain) + 1

    def scanned(
        self, memory: ScanMemory, message: nn.Module, updater: nn.Module, node_encoding: NodeEncoding
    ) -> ScannedMail:
        """Return the memory inside the window, which memory must stand at the beginning of."""
        assert isinstance(memory, ScanMailboxes) and isinstance(updater, MailboxScan)
        assert isinstance(message, EventMessage)
        (begin, last_event), time = memory.read(self.node), message.time
        places, stored = self._stored(memory)
        stored_mails, stored_events = memory.read_mails(stored)
        events = torch.arange(len(self.events), device=begin.device) + self.events.offset
        states, mails = updater(
            begin,
            node_encoding(self.node),
            message.features(events, begin.dtype),
            time(self.since_last(last_event)),
            stored_mails,
            time(ages_of(begin.device) * time.scale),
            Chains(self.first, self.chain, self.other, self.event),
            self._reading(places, stored_events, time.scale, updater.heads),
        )
        return ScannedMail(self, memory, begin, states, mails)

    def _stored(self, memory: ScanMailboxes) -> tuple[Tensor, Tensor]:
        """Return which mails from before the window are read, and where they are in memory `[p]`.

        The former are numbers `[c, slots]` below ``p`` of each node's, the newest first; -1 where there is
        none that any entry reads.
        """
        place, there = memory.newest(self.node)
        back = torch.arange(memory.slots, device=place.device)
        there = there & (back < (memory.slots - rows(self.inside, self.first)).unsqueeze(1))
        number = torch.where(there, there.flatten().cumsum(0).view_as(place) - 1, -1)
        return number, rows(place.flatten(), there.flatten().nonzero().squeeze(1))

    def _reading(self, places: Tensor, stored: Tensor, unit: float, heads: int) -> Reading:
        """Return what each entry's node reads: its newest mails, up to its own of the entry's event.

        Stored mails are at ``places`` `[c, slots]`, see `_stored`, and are of the events ``stored`` `[p]`.
        """
        h, k = len(self.keys), places.shape[1]
        slot, inside = torch.arange(k, device=places.device), self.inside.unsqueeze(1)
        newest = torch.searchsorted(self.mail_keys, self.keys).unsqueeze(1)
        older = rows(places.flatten(), self.chain.unsqueeze(1) * k + (slot - inside).clamp(min=0))
        mail = torch.where(older >= 0, h + older, -1)
        if h:
            mail = torch.where(slot < inside, rows(self.mail, (newest - slot).clamp(min=0)), mail)
        slots = Slots.of(mail >= 0)
        mail = slots.pack(mail)
        t = rows(self.events.t, self.event)
        age = rows(t, slots.query) - rows(torch.cat([t, rows(self.stream.t, stored)]), mail)
        return Reading(heads, slots, mail, age_rows(age / unit), h)


@dataclass(frozen=True, eq=False)
class ScannedMail(Scanned):
    """The memory of a window's nodes, and the mails that they send."""

    mails: Tensor  # [h, d] of each entry

    @torch.no_grad()
    def commit(self) -> None:
        """Let memory and mailboxes hold what they are to hold when the window is taken in."""
        super().commit()
        window, memory = self.window, self.memory
        assert isinstance(window, MailWindow) and isinstance(memory, ScanMailboxes)
        w = max(len(window.events), 1)
        to = torch.div(window.mail_keys, w, rounding_mode="floor")
        at = window.mail_keys - to * w
        known = (at < held(len(window.events), window.events.t)).nonzero().squeeze(1)
        to = rows(to, known)
        _, group, counts = torch.unique_consecutive(to, return_inverse=True, return_counts=True)
        left = rows(counts.cumsum(0), group) - torch.arange(len(to), device=to.device)  # 1 at a node's newest
        newest = (left <= memory.slots).nonzero().squeeze(1)  # the others have no slot any more
        known, rank = rows(known, newest), rows(rows(counts, group) - left, newest)
        mails = rows(self.mails, rows(window.mail, known))
        memory.write_mails(rows(to, newest), rank, window.events.offset + rows(at, known), mails)


def _sorted(keys: Tensor) -> Tensor:
    """Return integers in increasing order; NumPy's vectorised sort is several times faster on the CPU."""
    if keys.device.type != "cpu":
        return torch.sort(keys).values
    keys.numpy().sort()
    return keys
