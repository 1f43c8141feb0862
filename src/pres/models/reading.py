"""The mail of nodes at places inside a batch, and what an update makes of it."""

from __future__ import annotations

import torch
from torch import Tensor

from pres.data.incidence import distinct
from pres.data.stream import EventStream
from pres.models.base import MDGNN
from pres.models.incidences import BatchIncidences, Versions
from pres.models.routing import RawMessages
from pres.nn.memory import Mail
from pres.nn.ops import Picked, Slots, rows


class Contents:
    """What mail holds inside a batch: that about each incidence, then what its recipients had before.

    Args:
        model: The model, its memory as the batch found it.
        batch: The events.
        halves: Their incidences.
        memory: The memory `[h, d]` just before each of them.
    """

    def __init__(self, model: MDGNN, batch: EventStream, incidences: BatchIncidences, memory: Tensor) -> None:
        state = model.mailboxes
        self.dim, self.other = state.dim, incidences.other
        self.memory = memory
        always = torch.ones_like(incidences.node, dtype=torch.bool)
        about = RawMessages(
            incidences.node, incidences.node, incidences.node[incidences.other], incidences.event, always
        )
        beside = model.about(batch, about).to(memory.dtype)
        own = torch.cat([memory, rows(memory, incidences.other), beside], dim=1)
        # One mail takes the place of another, so nothing is left of older ones where there is one slot.
        self.recipients = incidences.node[:0] if state.slots == 1 else distinct(incidences.raw_messages.to)
        older, event, t = state.read_mailboxes(self.recipients)
        self.older_event, self.older_t = event.flatten(), t.flatten()
        self.table = torch.cat([own, older.flatten(0, 1).to(own.dtype)]) if len(older) else own

    def write(self, moved: Tensor, memory: Tensor) -> None:
        """Let some incidences have other memories; without gradients."""
        self.memory[moved] = memory
        self.table[moved, : self.dim] = memory
        self.table[self.other[moved], self.dim : 2 * self.dim] = memory


class Reading:
    """The mail of moments: all of it that does not follow from the memories inside the batch."""

    def __init__(
        self,
        model: MDGNN,
        batch: EventStream,
        incidences: BatchIncidences,
        versions: Versions,
        contents: Contents,
    ) -> None:
        self.model, self.versions, state = model, versions, model.mailboxes
        self.stored = state.read(versions.node)  # as the batch found it
        raw_message = versions.read.clamp(min=0)
        at = incidences.raw_messages.at[raw_message]
        self.content, self.event, self.t = incidences.about[raw_message], batch.offset + at, batch.t[at]
        self.mask = versions.read >= 0
        self.newest_t = batch.t[at[:, 0]]  # the first slot is a raw message of the batch, and none is newer
        if state.slots > 1:  # else the raw message has taken the place of older mail
            inside, node, slot = self.mask, versions.node.unsqueeze(1), versions.stored.clamp(min=0)
            older = torch.searchsorted(contents.recipients, node) * state.slots + slot
            self.content = torch.where(inside, self.content, len(incidences.node) + older)
            self.event = torch.where(inside, self.event, contents.older_event[older])
            self.t = torch.where(inside, self.t, contents.older_t[older])
            self.mask = inside | (versions.stored >= 0)

    def previous(
        self, memory: Tensor, last_update: Tensor, some: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Return the memory `[w, d]` that moments had at their incidence before, and the time it is of."""
        every = self.versions.before, self.stored.last_update, self.stored.memory
        before, stored_update, stored = every if some is None else (part[some] for part in every)
        begun, before = before >= 0, before.clamp(min=0)
        since = torch.where(begun, last_update[before], stored_update)
        found = rows(memory, before)
        if self.model.mailboxes.slots > 1:  # else who has a raw message has had an event
            found = torch.where(begun.unsqueeze(1), found, stored)
        return found, since

    def update(self, contents: Contents, last_update: Tensor, some: Tensor | None = None) -> Tensor:
        """Return the memory `[w, d]` of (some) moments, from that of all incidences."""
        every = self.content, self.event, self.t, self.mask, self.newest_t
        content, event, t, mask, newest_t = every if some is None else (part[some] for part in every)
        slots = Slots.one_each(len(mask), mask.device) if self.model.mailboxes.slots == 1 else Slots.of(mask)
        content, event, t = (slots.pack(part) for part in (content, event, t))
        mail = Mail(Picked(contents.table, content), event, t, newest_t, slots)
        return self.model.updated(*self.previous(contents.memory, last_update, some), mail)
