"""Standard memory, with and without a filter, beside the exact one: what each makes of a batch's nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pres.data.incidence import incidences
from pres.data.stream import EventStream
from pres.models import MDGNN, States
from pres.models.scratch import scratch_of
from pres.models.sequential import sequential_memory
from pres.paper.theory.exact import exact_copy, nodes_of
from pres.sampling import TemporalBatches
from pres.smoothing import Smoothing, Update


@dataclass(frozen=True, eq=False)
class Truth:
    """The exact memory of the nodes of one batch."""

    start: Tensor  # [u, d] just before the batch
    end: Tensor  # [u, d] after it
    repeated: Tensor  # [u] bool: whether the node has more than one event in it


@torch.no_grad()
def resynchronised(
    model: MDGNN,
    batches: TemporalBatches,
    filters: Sequence[Smoothing | None],
    on_batch: Callable[[], object],
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
        on_batch()


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
def exactly(model: MDGNN, batches: TemporalBatches, on_batch: Callable[[], object]) -> list[Truth]:
    """Return the truth of every batch."""
    copied, found = exact_copy(model), []
    for batch in batches:
        nodes = nodes_of(batch)
        start = copied.updated_memory(nodes).memory
        sequential_memory(copied, batch).commit()
        found.append(Truth(start, copied.updated_memory(nodes).memory, _repeated(batch, nodes)))
        on_batch()
    return found


@torch.no_grad()
def carried(
    model: MDGNN, batches: TemporalBatches, filter_: Smoothing | None, on_batch: Callable[[], object]
) -> Iterator[Tensor]:
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
        on_batch()
