"""Memory inside a batch: every event in its order, exactly or by a few sweeps, many at once.

A batch has one *half-event* per event and endpoint. Just before its event a half-event's node has a memory
that follows from the node's memory at its half-event before, and from the mail that reached the node since.
Nothing else links half-events, so all whose links are settled can be computed at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pres.errors import OptionError
from pres.events import EventStream
from pres.incidence import incidences
from pres.models.letters import Letters, letters_of, one_per_event
from pres.nn.gather import Picked
from pres.nn.memory import Mail

if TYPE_CHECKING:
    from pres.models.mdgnn import MDGNN
    from pres.models.states import States


@dataclass(frozen=True, eq=False)
class HalfEvents:
    """The half-events of a batch, sorted by node and then by event, and what each of them follows from.

    A half-event is *moved* if something in the batch came before it at its node; the others are as the batch
    found them.
    """

    node: Tensor  # [h]
    event: Tensor  # [h] counted from the batch's first
    of_src: Tensor  # [b] the half-event of each event's source,
    of_dst: Tensor  # [b] and of its destination
    before: Tensor  # [h] the node's half-event before; -1 if there is none
    letters: Letters  # [m] at most one per event and recipient, sorted by recipient and then by event
    own: Tensor  # [m] the half-event of the letter's own endpoint,
    partner: Tensor  # [m] and of the other
    moved: Tensor  # [v] the half-events that are moved
    read: Tensor  # [v, slots] the letters that each of those has in its mailbox, the newest first; -1: none
    stored: Tensor  # [v, slots] where older mail in its mailbox is; -1: none

    @property
    def last(self) -> Tensor:
        """The last half-event of each node of the batch, in the nodes' order."""
        following = torch.ones_like(self.node, dtype=torch.bool)
        following[:-1] = self.node[1:] != self.node[:-1]
        return following.nonzero().squeeze(1)

    def levels(self) -> Tensor:
        """Return the level `[v]` of each moved half-event: 1 above all that it follows from, from 1."""
        level = torch.zeros(len(self.node) + 1, dtype=torch.int64, device=self.node.device)  # the last: none
        letter = torch.where(self.read >= 0, self.read, 0)
        follows = torch.cat(
            [self.before[self.moved].unsqueeze(1), self.own[letter], self.partner[letter]], dim=1
        )
        absent = torch.cat([self.before[self.moved].unsqueeze(1) < 0, self.read < 0, self.read < 0], dim=1)
        follows = follows.masked_fill(absent, len(self.node))
        while True:
            higher = level[follows].amax(dim=1) + 1 if len(follows) else level[:0]
            if torch.equal(higher, level[self.moved]):
                return higher
            level[self.moved] = higher


@dataclass(frozen=True, eq=False)
class MemoryInOrder:
    """The memory of a batch's nodes just before each of their events."""

    halves: HalfEvents
    memory: Tensor  # [h, d]
    last_update: Tensor  # [h] the time each is of


class InOrder:
    """Computes memory inside batches; the levels of a batch are found once, and kept.

    With levels the memories are those of a pass that takes one event at a time. A sweep instead recomputes
    all of them from those of the sweep before: the first finds the memory that the batch began with (which is
    what a standard batch uses for all of its events), as many as there are levels, and one, are exact.
    """

    def __init__(self) -> None:
        self._levels: dict[tuple[int, int], Tensor] = {}

    @torch.no_grad()
    def memory(
        self, model: MDGNN, batch: EventStream, states: States | None = None, sweeps: int | None = None
    ) -> MemoryInOrder:
        """Return the memory just before each event of the batch: exactly, or after so many sweeps.

        ``states`` may hold the memory of the batch's nodes at its beginning, among others'.
        """
        halves = half_events(model, batch)
        nodes, place = torch.unique_consecutive(halves.node, return_inverse=True)
        if states is None:
            states = model.measure(nodes)
        place = states.places_of(nodes)[place]
        memory, last_update = states.kept[place].detach().clone(), states.last_update[place]
        mail = Reading(model, batch, halves)
        last_update[halves.moved] = mail.newest_t
        if sweeps is None:
            for some in self._by_level(batch, halves):
                memory[halves.moved[some]] = mail.update(memory, last_update, some)
        else:
            everything = torch.arange(len(halves.moved), device=memory.device)
            for _ in range(sweeps - 1):
                swept = mail.update(memory, last_update, everything)
                if torch.equal(swept, memory[halves.moved]):
                    break  # it is exact: further sweeps would find the same
                memory[halves.moved] = swept
        return MemoryInOrder(halves, memory, last_update)

    def _by_level(self, batch: EventStream, halves: HalfEvents) -> list[Tensor]:
        """Return the moved half-events level by level, as places among them."""
        key = (batch.offset, len(batch))
        if key not in self._levels:
            self._levels[key] = halves.levels().to(torch.int32)
        level = self._levels[key].to(halves.node.device)
        if not len(level):
            return []
        order = torch.argsort(level, stable=True)
        return list(torch.split(order, torch.bincount(level)[1:].tolist()))

    def absorb(
        self, model: MDGNN, batch: EventStream, states: States | None = None, sweeps: int | None = None
    ) -> None:
        """Take in a batch as if its events came in their order; see `MDGNN.absorb`.

        Each node keeps its memory just before its last event, and the mail of that event: the last update is
        left to the next batch, where its loss reaches it.
        """
        found = self.memory(model, batch, states, sweeps)
        halves, letters = found.halves, found.halves.letters
        last = halves.last
        model.memory.commit(halves.node[last], found.memory[last], found.last_update[last])
        recipients, place, counts = torch.unique_consecutive(
            letters.to, return_inverse=True, return_counts=True
        )
        ends = counts.cumsum(0)
        from_end = ends[place] - 1 - torch.arange(len(place), device=place.device)
        newest = (from_end < model.memory.slots).nonzero().squeeze(1)  # the others would be lost at once
        rank = (counts.clamp(max=model.memory.slots)[place] - 1 - from_end)[newest]
        kept = letters[newest]
        own, partner = found.memory[halves.own[newest]], found.memory[halves.partner[newest]]
        content = torch.cat([own, partner, model.about(batch, kept).to(own.dtype)], dim=1)
        model.memory.deliver(kept.to, content, batch.offset + kept.at, batch.t[kept.at], rank)
        # In order no update is lost: counts are those of a batch that held the newest letter's event alone.
        newest_of_each = letters[ends - 1]
        own_events = newest_of_each.is_own.long()
        model.memory.tally(recipients, own_events, torch.ones_like(own_events), batch.t[newest_of_each.at])
        model.memory.last_event[halves.node[last]] = batch.t[halves.event[last]]


def half_events(model: MDGNN, batch: EventStream) -> HalfEvents:
    """Return the half-events of a batch, and what each follows from under the model's mail."""
    b, slots = len(batch), model.memory.slots
    neighbourly = model.index if model.deliver_to == "neighbours" else None
    cutoffs = None
    if neighbourly is not None:
        if slots == 1 or model.aggregate == "mean":
            raise OptionError(
                "memory in order needs a mailbox of several slots and aggregate='last' in a model that sends "
                "mail to neighbours."
            )
        cutoffs = neighbourly.cutoffs(batch, "fresh")  # with each event a batch of its own, "batch" is that
    letters = one_per_event(letters_of(batch, neighbourly, cutoffs, model.neighbours), b)
    num_nodes = len(model.memory.last_update)
    entries = incidences(batch.src, batch.dst, num_nodes)
    at = torch.arange(b, device=batch.src.device)
    of_src, of_dst = (torch.searchsorted(entries.keys, end * b + at) for end in (batch.src, batch.dst))
    first = torch.ones_like(entries.nodes, dtype=torch.bool)
    first[1:] = entries.nodes[1:] != entries.nodes[:-1]
    places = torch.arange(len(first), device=first.device)
    before = torch.where(first, -1, places - 1)
    keys = letters.to * b + letters.at
    begin = torch.searchsorted(keys, entries.nodes * b)
    end = torch.searchsorted(keys, entries.keys)  # letters of earlier events than the half-event's own
    moved = (end > begin).nonzero().squeeze(1)
    slot = torch.arange(slots, device=first.device)
    read = end[moved].unsqueeze(1) - 1 - slot
    inside = (end - begin)[moved].clamp(max=slots).unsqueeze(1)
    older = slot - inside  # counted from the newest mail in the stored mailbox
    received = model.memory.mails_received[entries.nodes[moved]].unsqueeze(1)
    stored = torch.where((older >= 0) & (older < received), (received - 1 - older) % slots, -1)
    return HalfEvents(
        node=entries.nodes,
        event=entries.events,
        of_src=of_src,
        of_dst=of_dst,
        before=before,
        letters=letters,
        own=torch.searchsorted(entries.keys, letters.own * b + letters.at),
        partner=torch.searchsorted(entries.keys, letters.partner * b + letters.at),
        moved=moved,
        read=torch.where(slot < inside, read, -1),
        stored=stored,
    )


class Reading:
    """The mail of the moved half-events: all that does not change from one sweep to the next."""

    def __init__(self, model: MDGNN, batch: EventStream, halves: HalfEvents) -> None:
        self.model, self.halves = model, halves
        memory = model.memory
        node = halves.node[halves.moved].unsqueeze(1)
        self.inside, self.letter = halves.read >= 0, halves.read.clamp(min=0)
        slot, at = halves.stored.clamp(min=0), halves.letters.at[self.letter]
        self.mask = self.inside | (halves.stored >= 0)
        self.event = torch.where(self.inside, batch.offset + at, memory.mail_event[node, slot])
        self.t = torch.where(self.inside, batch.t[at], memory.mail_t[node, slot])
        self.about = model.about(batch, halves.letters)
        self.newest_t = batch.t[at[:, 0]]  # the first slot is a letter of the batch, and none is newer
        # Mail from before the batch stays as it is; without any there is nothing to look up.
        self.stored = memory.mail[node, slot] if memory.slots > 1 else None

    def update(self, memory: Tensor, last_update: Tensor, some: Tensor) -> Tensor:
        """Return the memory `[w, d]` of some moved half-events, from that of all half-events."""
        halves, state = self.halves, self.model.memory
        moved = halves.moved[some]
        node, before = halves.node[moved], halves.before[moved]
        begun = (before >= 0).unsqueeze(1)
        previous = torch.where(begun, memory[before], state.memory[node])
        letter, inside, mask, t = self.letter[some], self.inside[some], self.mask[some], self.t[some]
        content = torch.cat(
            [memory[halves.own[letter]], memory[halves.partner[letter]], self.about[letter].to(memory.dtype)],
            dim=2,
        )
        if self.stored is not None:
            content = torch.where(inside.unsqueeze(2), content, self.stored[some])
        if state.slots == 1:
            since = torch.where(begun, last_update[before].unsqueeze(1), state.last_update[node].unsqueeze(1))
            difference = t - since
        else:
            difference = self.newest_t[some].unsqueeze(1) - t
        mail = Mail(
            Picked.all_of(content), self.event[some], t, mask, state.count[node], state.partner_count[node]
        )
        messages = self.model.message(mail, difference.masked_fill(~mask, 0))
        updated: Tensor = self.model.updater(previous, messages, mask)
        return updated
