"""Sequential memory: inside a batch every event in its order, as many at once as possible.

Nothing but what `HalfEvents` says links the memories between a batch's events, so all whose links are settled
can be computed at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.models.half_events import HalfEvents, half_events
from pres.models.reading import Contents, Reading
from pres.models.states import States, corrected, joined
from pres.nn.gather import rows

if TYPE_CHECKING:
    from pres.models.base import MDGNN


@dataclass(frozen=True, eq=False)
class SequentialMemory:
    """The memory of a batch's nodes just before each of their events.

    It holds while the model's memory is as the batch found it.
    """

    model: MDGNN
    batch: EventStream
    halves: HalfEvents
    contents: Contents
    last_update: Tensor  # [h] the time that the memory of each half-event is of

    @property
    def memory(self) -> Tensor:
        """The memory `[h, d]` just before each half-event."""
        return self.contents.memory

    def measure(self, nodes: Tensor, received: Tensor) -> States:
        """Return the memory of nodes `[u]`, each as soon as it has so many letters `[u]` of the batch.

        They come in the order of `HalfEvents.state_keys`: nodes without letters first, which are measured
        from the mail that the batch found; the others are moved by the letters. Gradients reach the last
        update of each.
        """
        return joined(self._measured(nodes, received))

    def _measured(self, nodes: Tensor, received: Tensor) -> Iterator[States]:
        still = int((received == 0).sum())
        if still:
            yield self.model.measure(nodes[:still])
        if still < len(nodes):
            yield self._moved(nodes[still:], received[still:])

    def _moved(self, nodes: Tensor, received: Tensor) -> States:
        """Return the memory of nodes with letters. A correction is told that no event was left out."""
        model, halves = self.model, self.halves
        moments = halves.after(nodes, received, model.mailboxes)
        reading = Reading(model, self.batch, halves, moments, self.contents.recipients)
        previous, previous_update = reading.previous(self.contents.memory, self.last_update)
        begun, before = moments.before >= 0, moments.before.clamp(min=0)
        count = halves.letters.is_own[moments.read[:, 0]].long()
        last_event = self.batch.t[halves.event[before]]
        return corrected(
            model.correction,
            nodes=moments.node,
            previous=previous.detach(),
            measured=reading.update(self.contents, self.last_update),
            previous_update=previous_update,
            last_update=reading.newest_t,
            pending=torch.ones_like(begun),
            count=count,
            partner_count=torch.ones_like(count),
            last_event=torch.where(begun, last_event, model.mailboxes.last_event[moments.node]),
        )


class SequentialPass:
    """Computes sequential memory; the levels of a batch are found once, and kept.

    A level holds the half-events that wait for none but those of lower levels. So the memories are those of a
    pass that takes one event at a time.
    """

    def __init__(self) -> None:
        self._levels: dict[tuple[int, int], Tensor] = {}

    @torch.no_grad()
    def memory(self, model: MDGNN, batch: EventStream, states: States | None = None) -> SequentialMemory:
        """Return the memory just before each event of the batch.

        Args:
            model: The model, its memory as the batch finds it.
            batch: The next events.
            states: The memory of the batch's nodes at its beginning, among others', if that is known.
        """
        halves = half_events(model, batch)
        nodes, place = torch.unique_consecutive(halves.node, return_inverse=True)
        if states is None:
            states = model.measure(nodes)
        place = states.places_of(nodes)[place]
        memory, last_update = states.kept.detach()[place], states.last_update[place]
        contents = Contents(model, batch, halves, memory)
        if len(halves.moved):
            mail = Reading(model, batch, halves, halves.moments, contents.recipients)
            last_update[halves.moved] = mail.newest_t
            for some in self._by_level(batch, halves):
                contents.write(halves.moved[some], mail.update(contents, last_update, some))
        return SequentialMemory(model, batch, halves, contents, last_update)

    def _by_level(self, batch: EventStream, halves: HalfEvents) -> list[Tensor]:
        """Return the moved half-events level by level, as places among them."""
        key = (batch.offset, len(batch))
        if key not in self._levels:
            self._levels[key] = halves.levels().to(torch.int32)
        level = self._levels[key].to(halves.node.device)
        order = torch.argsort(level, stable=True)
        return list(torch.split(order, torch.bincount(level)[1:].tolist()))

    def absorb(self, found: SequentialMemory) -> None:
        """Take in a batch as if its events came in their order; see `MDGNN.absorb`.

        Each node keeps its memory just before its last event, and the mail of that event: the last update is
        left to the next batch, where its loss reaches it.
        """
        state, batch, halves, letters = found.model.mailboxes, found.batch, found.halves, found.halves.letters
        last = halves.last
        recipients, place, counts = torch.unique_consecutive(
            letters.to, return_inverse=True, return_counts=True
        )
        ends = counts.cumsum(0)
        from_end = ends[place] - 1 - torch.arange(len(place), device=place.device)
        newest = (from_end < state.slots).nonzero().squeeze(1)  # the others would be lost at once
        rank = (counts.clamp(max=state.slots)[place] - 1 - from_end)[newest]
        kept, content = letters[newest], rows(found.contents.table, halves.about[newest])
        state.commit(halves.node[last], found.memory[last], found.last_update[last])
        state.deliver(kept.to, content, batch.offset + kept.at, batch.t[kept.at], rank)
        # In order no update is lost: counts are those of a batch that held the newest letter's event alone.
        newest_of_each = letters[ends - 1]
        own_events = newest_of_each.is_own.long()
        state.tally(recipients, own_events, torch.ones_like(own_events), batch.t[newest_of_each.at])
        state.last_event[halves.node[last]] = batch.t[halves.event[last]]
