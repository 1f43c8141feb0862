"""The exact memory, as one event after the other makes it, and standard memory with and without a filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pres.data.incidence import distinct, incidences
from pres.data.stream import EventStream
from pres.models import MDGNN, States
from pres.models.scratch import scratch_of
from pres.models.sequential import sequential_memory
from pres.smoothing import Smoothing, Update

AT_ONCE = 4_096  # memories computed together: a mailbox of ten mails each is large


def exact_copy(model: MDGNN) -> MDGNN:
    """Return a copy that shares the weights, with an empty memory of its own and nothing that corrects it."""
    copied = scratch_of(model)
    copied.smoothing = None  # the truth needs none
    copied.memory.reset()
    return copied


def replay_exactly(model: MDGNN, batches: Iterable[EventStream]) -> Iterator[tuple[MDGNN, EventStream]]:
    """Yield a copy of ``model`` with each batch, its memory the exact one just before the batch."""
    copied = exact_copy(model)
    for batch in batches:
        yield copied, batch
        sequential_memory(copied, batch).commit()


def nodes_of(batch: EventStream) -> Tensor:
    """Return the distinct nodes of a batch, increasing."""
    return distinct(torch.cat([batch.src, batch.dst]))


class MemoryInside:
    """The exact memory of a batch's nodes before and after each of its events.

    Args:
        model: A model without smoothing, its memory the exact one just before the batch.
        batch: The next events.
    """

    def __init__(self, model: MDGNN, batch: EventStream) -> None:
        self.model, self.batch = model, batch
        with torch.no_grad():
            self.start = model.updated_memory(nodes_of(batch))
            self.found = sequential_memory(model, batch, self.start)
        self.incidences = self.found.incidences

    def before(self, event: Tensor) -> tuple[Tensor, Tensor]:
        """Return the memory of the sources and of the destinations `[q, d]` just before events `[q]`."""
        memory = self.found.memory
        return memory[self.incidences.of_src[event]], memory[self.incidences.of_dst[event]]

    @torch.no_grad()
    def after(self, nodes: Tensor, event: Tensor) -> Tensor:
        """Return the memory `[q, d]` of nodes `[q]` just after events `[q]`, their own or others'."""
        memory = self.start.kept[torch.searchsorted(self.start.nodes, nodes)]
        version = self.incidences.version(nodes, event + 1)
        moved = version > 0
        asked = nodes * (int(version.max()) + 1) + version if len(nodes) else nodes
        needed, place = torch.unique(asked[moved], return_inverse=True)
        if len(needed):
            first = torch.empty_like(needed)
            first[place] = moved.nonzero().squeeze(1)  # any of those that ask for the same
            parts = [
                self.found.updated_memory(nodes[some], version[some]).memory
                for some in torch.split(first, AT_ONCE)
            ]
            memory[moved] = torch.cat(parts)[place]
        return memory


@dataclass(frozen=True, eq=False)
class Truth:
    """The exact memory of the nodes of one batch."""

    start: Tensor  # [u, d] just before the batch
    end: Tensor  # [u, d] after it
    repeated: Tensor  # [u] bool: whether the node has more than one event in it


@torch.no_grad()
def resynchronised(
    model: MDGNN,
    batches: Iterable[EventStream],
    filters: Sequence[Smoothing | None],
) -> Iterator[tuple[Truth, list[Tensor]]]:
    """Yield, for each batch, the truth and the memory `[u, d]` that it makes with each filter, or without.

    Every batch begins with the exact memory. The standard's update is the measurement that a filter corrects,
    and a transition that its trackers observe.
    """
    copied = exact_copy(model)
    for batch in batches:
        nodes, begin = nodes_of(batch), copied.memory.snapshot()
        start = copied.updated_memory(nodes).memory
        copied.update_state(batch)
        updated, mails = copied.updated_memory(nodes), copied.mailboxes.received(nodes)
        copied.memory.restore(begin)
        sequential_memory(copied, batch).commit()
        found = [
            updated.memory if filter_ is None else _corrected(filter_, updated, mails) for filter_ in filters
        ]
        yield Truth(start, copied.updated_memory(nodes).memory, _repeated(batch, nodes)), found


def _corrected(filter_: Smoothing, states: States, mails: Tensor) -> Tensor:
    """Return the corrected memory of nodes that all have mail; the filter observes the transition."""
    elapsed = states.last_update - states.previous_update
    arguments = states.nodes, states.previous, states.measured
    corrected = filter_.correct(*arguments, elapsed)
    everyone = torch.arange(len(mails), device=mails.device)
    filter_.observe(Update(*arguments, corrected, elapsed, mails), {"event": everyone})
    return corrected


def _repeated(batch: EventStream, nodes: Tensor) -> Tensor:
    """Return whether each of a batch's distinct nodes `[u]` has more than one event in it."""
    entries = incidences(batch.src, batch.dst, batch.num_nodes)
    return torch.bincount(torch.searchsorted(nodes, entries.nodes), minlength=len(nodes)) > 1


@torch.no_grad()
def carried(model: MDGNN, batches: Iterable[EventStream], filter_: Smoothing | None) -> Iterator[Tensor]:
    """Yield the memory `[u, d]` of each batch's nodes after it; each batch goes on from the one before.

    That is what training has: a filter corrects the memory that is kept, and observes the transitions of
    nodes when they have their next event.
    """
    copied = scratch_of(model)
    copied.smoothing = filter_
    copied.memory.reset()
    for batch in batches:
        nodes = nodes_of(batch)
        states = copied.updated_memory(nodes)
        update = None if filter_ is None else copied.pending_update({"event": nodes}, states)
        copied.update_state(batch, states)
        if filter_ is not None and update is not None:
            filter_.observe(*update)
        yield copied.updated_memory(nodes).kept
