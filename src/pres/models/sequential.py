"""Sequential memory: inside a batch every event in its order, as many at once as possible.

Nothing but what `BatchIncidences` says links the memories between a batch's events, so all whose links are
settled can be computed at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from pres.data.incidence import first_of_equal
from pres.data.stream import EventStream
from pres.models.base import MDGNN
from pres.models.checks import check_next
from pres.models.incidences import BatchIncidences, find_incidences
from pres.models.reading import Contents, Reading
from pres.models.sample import SubgraphInside
from pres.models.states import States, corrected, joined
from pres.nn.ops import rows


@dataclass(frozen=True, eq=False)
class SequentialMemory:
    """The memory of a batch's nodes just before each of their events.

    It holds while the model's memory is as the batch found it.
    """

    model: MDGNN
    batch: EventStream
    incidences: BatchIncidences
    contents: Contents
    last_update: Tensor  # [h] the time that the memory of each incidence is of

    @property
    def memory(self) -> Tensor:
        """The memory `[h, d]` just before each incidence."""
        return self.contents.memory

    def sample(
        self, part: EventStream, negatives: Tensor, seed: int = 0, strictly: bool = False
    ) -> SubgraphInside:
        """Return what predicting events of the batch needs to see, each as memory is just before it.

        Args:
            part: The batch, or a part of it.
            negatives: Other destinations `[p, count]`.
            seed: Of ``"uniform"`` neighbours.
            strictly: Whether that is just before the first event of the batch at its own time.
        """
        model, whole = self.model, self.batch
        check_next(part, whole.offset, model._t, model.memory)
        at = torch.arange(len(part), device=whole.t.device) + (part.offset - whole.offset)
        places = rows(first_of_equal(whole.t), at) if strictly else at
        found = model.sample_inside(whole, part, negatives, at, places, self.incidences, seed)
        return model.prepared(found)

    def states_of(self, subgraph: SubgraphInside) -> States:
        """Return the memory of the nodes of a subgraph that `sample` returned."""
        return self.updated_memory(subgraph.nodes, subgraph.version)

    def updated_memory(self, nodes: Tensor, version: Tensor) -> States:
        """Return the memory of nodes `[u]`, each as soon as it has so many raw messages `[u]` of the batch.

        They come in the order of `BatchIncidences.state_keys`: nodes without raw messages first, which are
        measured from the mail that the batch found; the others are moved by the raw messages. Gradients
        reach the last update of each.
        """
        return joined(self._measured(nodes, version))

    def _measured(self, nodes: Tensor, version: Tensor) -> Iterator[States]:
        still = int((version == 0).sum())
        if still:
            yield self.model.updated_memory(nodes[:still])
        if still < len(nodes):
            yield self._moved(nodes[still:], version[still:])

    def _moved(self, nodes: Tensor, version: Tensor) -> States:
        """Return the memory of nodes with raw messages."""
        model, incidences = self.model, self.incidences
        versions = incidences.after(nodes, version, model.mailboxes)
        reading = Reading(model, self.batch, incidences, versions, self.contents)
        previous, previous_update = reading.previous(self.contents.memory, self.last_update)
        begun, before = versions.before >= 0, versions.before.clamp(min=0)
        last_event = self.batch.t[incidences.event[before]]
        return corrected(
            model.smoothing,
            nodes=versions.node,
            previous=previous.detach(),
            measured=reading.update(self.contents, self.last_update),
            previous_update=previous_update,
            last_update=reading.newest_t,
            pending=torch.ones_like(begun),
            last_event=torch.where(begun, last_event, reading.stored.last_event),
        )

    @torch.no_grad()
    def commit(self) -> None:
        """Let the model's memory take in the batch as if its events came in their order.

        Each node keeps its memory just before its last event, and the mail of that event: the last update is
        left to the next batch, where its loss reaches it.
        """
        check_next(self.batch, self.batch.offset, self.model._t, self.model.memory)
        state, batch, incidences, raw_messages = (
            self.model.mailboxes,
            self.batch,
            self.incidences,
            self.incidences.raw_messages,
        )
        last = incidences.last
        _, place, counts = torch.unique_consecutive(raw_messages.to, return_inverse=True, return_counts=True)
        ends = counts.cumsum(0)
        from_end = ends[place] - 1 - torch.arange(len(place), device=place.device)
        newest = (from_end < state.slots).nonzero().squeeze(1)  # the others would be lost at once
        rank = (counts.clamp(max=state.slots)[place] - 1 - from_end)[newest]
        kept, content = raw_messages[newest], rows(self.contents.table, incidences.about[newest])
        state.write(incidences.node[last], self.memory[last], self.last_update[last])
        state.write_mail(kept.to, content, batch.offset + kept.at, batch.t[kept.at], rank)
        state.write_last_event(incidences.node[last], batch.t[incidences.event[last]])
        state.advance(batch.offset + len(batch))


@torch.no_grad()
def sequential_memory(model: MDGNN, batch: EventStream, states: States | None = None) -> SequentialMemory:
    """Return the memory just before each event of a batch.

    A level holds the incidences that wait for none but those of lower levels. So the memories are those of a
    pass that takes one event at a time.

    Args:
        model: The model, its memory as the batch finds it.
        batch: The next events.
        states: The memory of the batch's nodes at its beginning, among others', if that is known.
    """
    incidences = find_incidences(model, batch)
    nodes, place = torch.unique_consecutive(incidences.node, return_inverse=True)
    if states is None:
        states = model.updated_memory(nodes)
    place = states.places_of(nodes)[place]
    memory, last_update = states.kept.detach()[place], states.last_update[place]
    contents = Contents(model, batch, incidences, memory)
    if len(incidences.moved):
        mail = Reading(model, batch, incidences, incidences.versions, contents)
        last_update[incidences.moved] = mail.newest_t
        for some in _by_level(model, batch, incidences):
            contents.write(incidences.moved[some], mail.update(contents, last_update, some))
    return SequentialMemory(model, batch, incidences, contents, last_update)


def _by_level(model: MDGNN, batch: EventStream, incidences: BatchIncidences) -> list[Tensor]:
    """Return the moved incidences level by level, as places among them; levels are found once, and kept."""
    key = (batch.offset, len(batch))
    if key not in model.levels:
        model.levels[key] = incidences.levels().to(torch.int32)
    level = model.levels[key].to(incidences.node.device)
    order = torch.argsort(level, stable=True)
    return list(torch.split(order, torch.bincount(level)[1:].tolist()))
