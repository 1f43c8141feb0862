"""Memory inside a batch: every event in its order, exactly or by a few sweeps, many at once.

Nothing but what `HalfEvents` says links the memories between a batch's events, so all whose links are settled
can be computed at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pres.events import EventStream
from pres.incidence import distinct
from pres.models.by_block import ByBlock
from pres.models.half_events import HalfEvents, Moments, half_events
from pres.models.letters import Letters
from pres.models.reading import Contents, Reading
from pres.models.states import States, corrected, joined
from pres.nn.gather import rows

if TYPE_CHECKING:
    from pres.models.mdgnn import MDGNN


@dataclass(frozen=True, eq=False)
class MemoryInOrder:
    """The memory of a batch's nodes just before each of their events.

    It holds while the model's memory is as the batch found it.
    """

    model: MDGNN
    batch: EventStream
    start: States | None  # of the batch's nodes, among others', as it found them, if that was needed
    halves: HalfEvents
    contents: Contents
    last_update: Tensor  # [h] the time that the memory of each half-event is of
    swept: bool  # whether that memory is more than what the batch found
    by_block: ByBlock | None  # what of it is left to do, if that is done block by block

    @property
    def memory(self) -> Tensor:
        """The memory `[h, d]` just before each half-event."""
        return self.contents.memory[: len(self.halves.node)]

    def measure(self, nodes: Tensor, received: Tensor, depth: int = 1) -> States:
        """Return the memory of nodes `[u]`, each as soon as it has so many letters `[u]` of the batch.

        They come in the order of `HalfEvents.state_keys`: nodes without letters first, which are measured
        from the mail that the batch found; the others are moved by the letters. Where memory moves by blocks,
        `ByBlock.measure` does it.

        Args:
            nodes: The nodes.
            received: How many letters each has.
            depth: Gradients reach the last so many updates of each; unless the memory is exact, each beyond
                the first is a further sweep too.
        """
        return joined(self._measured(nodes, received, depth))

    def _measured(self, nodes: Tensor, received: Tensor, depth: int = 1) -> Iterator[States]:
        still = int((received == 0).sum())
        if still:
            yield self.model.measure(nodes[:still])
        if still < len(nodes):
            moments = self.halves.after(nodes[still:], received[still:], self.model.mailboxes)
            yield self._moved(moments, self._contents(moments, depth - 1))

    def _moved(self, moments: Moments, contents: Contents) -> States:
        """Return the memory of moved nodes.

        Messages are timed by the gap since the node's event before. A filter is told what was left out: after
        one sweep all events of the batch so far but the last, and else nothing.
        """
        model, halves = self.model, self.halves
        reading = Reading(model, self.batch, halves, moments, contents.recipients)
        previous, previous_update = reading.previous(contents.memory, self.last_update)
        begun, before = moments.before >= 0, moments.before.clamp(min=0)
        newest = moments.read[:, 0]
        count = halves.letters.is_own[newest].long()
        partner_count = torch.ones_like(count)
        if not self.swept and model.correction is not None:
            first = halves.first(before)
            previous_update = torch.where(begun, self.last_update[first], previous_update)
            count = torch.where(begun, before - first + 1, 0)
            partner = halves.other[halves.about[newest]]
            partner_count = partner - halves.first(partner) + 1
        last_event = self.batch.t[halves.event[before]]
        return corrected(
            model.correction,
            nodes=moments.node,
            previous=previous.detach(),
            measured=reading.update(contents, self.last_update),
            previous_update=previous_update,
            last_update=reading.newest_t,
            pending=torch.ones_like(begun),
            count=count,
            partner_count=partner_count,
            last_event=torch.where(begun, last_event, model.mailboxes.last_event[moments.node]),
        )

    def _contents(self, moments: Moments, depth: int) -> Contents:
        """Return what the mail of moments holds, its memories within reach of gradients through ``depth``."""
        if depth < 1:
            return self.contents
        halves = self.halves
        follows, there = halves.follows(moments)
        needed = distinct(follows[there])
        is_moved = torch.zeros_like(halves.node, dtype=torch.bool)
        is_moved[halves.moved] = True
        moved, still = needed[is_moved[needed]], needed[~is_moved[needed]]
        memory = self.memory
        if len(moved):
            before = halves.moments[torch.searchsorted(halves.moved, moved)]
            updated = self._moved(before, self._contents(before, depth - 1)).measured  # as sweeps have it
            memory = memory.index_copy(0, moved, updated.to(memory.dtype))
        if len(still):  # its node as the batch found it
            memory = memory.index_copy(0, still, self.model.measure(halves.node[still]).kept.to(memory.dtype))
        return Contents(self.model, self.batch, halves, memory)


class InOrder:
    """Computes memory inside batches; the levels of a batch are found once, and kept.

    With levels the memories are those of a pass that takes one event at a time. A sweep instead recomputes
    all of them from those of the sweep before: the first finds the memory that the batch began with (which is
    what a standard batch uses for all of its events), as many as there are levels, and one, are exact.
    """

    def __init__(self) -> None:
        self._levels: dict[tuple[int, int], Tensor] = {}

    def forget(self) -> None:
        """Keep no levels: batches will be cut at other places."""
        self._levels.clear()

    @torch.no_grad()
    def memory(
        self,
        model: MDGNN,
        batch: EventStream,
        states: States | None = None,
        sweeps: int | None = None,
        block: int | None = None,
        sent: Letters | None = None,
        lazily: bool = False,
    ) -> MemoryInOrder:
        """Return the memory just before each event of the batch.

        Args:
            model: The model, its memory as the batch finds it.
            batch: The next events.
            states: The memory of the batch's nodes at its beginning, among others', if that is known.
            sweeps: None for the exact memory, else after so many sweeps.
            block: Instead, memory as just before each block of so many events, block after block: what
                standard batches of that size would make of it.
            sent: The batch's letters, if they are known.
            lazily: Leave blocks to `ByBlock.measure`, with the weights of that moment.
        """
        halves = half_events(model, batch, sent, block)
        if block is not None:  # blocks find everything in their turn
            by_block = ByBlock(model, batch, halves, block)
            if not lazily:
                by_block.finish()
            return MemoryInOrder(
                model, batch, states, halves, by_block.contents, by_block.last_update, True, by_block
            )
        nodes, place = torch.unique_consecutive(halves.node, return_inverse=True)
        if states is None:
            states = model.measure(nodes)
        place = states.places_of(nodes)[place]
        memory, last_update = states.kept.detach()[place], states.last_update[place]
        contents = Contents(model, batch, halves, memory)
        if len(halves.moved):
            mail = Reading(model, batch, halves, halves.moments, contents.recipients)
            last_update[halves.moved] = mail.newest_t
            if sweeps is None:
                for some in self._by_level(batch, halves):
                    contents.write(halves.moved[some], mail.update(contents, last_update, some))
            else:
                for _ in range(sweeps - 1):
                    swept = mail.update(contents, last_update)
                    if torch.equal(swept, memory[halves.moved]):
                        break  # it is exact: further sweeps would find the same
                    contents.write(halves.moved, swept)
        return MemoryInOrder(model, batch, states, halves, contents, last_update, sweeps != 1, None)

    def _by_level(self, batch: EventStream, halves: HalfEvents) -> list[Tensor]:
        """Return the moved half-events level by level, as places among them."""
        key = (batch.offset, len(batch))
        if key not in self._levels:
            self._levels[key] = halves.levels().to(torch.int32)
        level = self._levels[key].to(halves.node.device)
        order = torch.argsort(level, stable=True)
        return list(torch.split(order, torch.bincount(level)[1:].tolist()))

    def absorb(self, found: MemoryInOrder) -> None:
        """Take in a batch as if its events came in their order; see `MDGNN.absorb`.

        Each node keeps its memory just before its last event, and the mail of that event: the last update is
        left to the next batch, where its loss reaches it.
        """
        state, batch, halves, letters = found.model.mailboxes, found.batch, found.halves, found.halves.letters
        last = halves.last
        given = torch.arange(len(letters.to), device=last.device)
        if halves.blocks is not None:
            given = halves.blocks.kept
        recipients, place, counts = torch.unique_consecutive(
            letters.to[given], return_inverse=True, return_counts=True
        )
        ends = counts.cumsum(0)
        from_end = ends[place] - 1 - torch.arange(len(place), device=place.device)
        newest = (from_end < state.slots).nonzero().squeeze(1)  # the others would be lost at once
        rank = (counts.clamp(max=state.slots)[place] - 1 - from_end)[newest]
        kept, content = letters[given[newest]], rows(found.contents.table, halves.about[given[newest]])
        state.commit(halves.node[last], found.memory[last], found.last_update[last])
        state.deliver(kept.to, content, batch.offset + kept.at, batch.t[kept.at], rank)
        # In order no update is lost: counts are those of a batch that held the newest letter's event alone.
        newest_of_each = letters[given[ends - 1]]
        own_events = newest_of_each.is_own.long()
        state.tally(recipients, own_events, torch.ones_like(own_events), batch.t[newest_of_each.at])
        state.last_event[halves.node[last]] = batch.t[halves.event[last]]
