"""Ways to take in a batch, run beside the exact one: what each makes of its nodes' memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from pres.events import EventStream
from pres.incidence import incidences
from pres.models import MDGNN, States
from pres.models.scratch import scratch_of
from pres.sampling import TemporalBatches
from pres.smoothing import Filter
from pres.theory.exact import exact_copy, nodes_of


@dataclass(frozen=True, eq=False)
class Way:
    """So many sweeps inside a batch, 1 as the standard has it; or the standard with a filter."""

    sweeps: int = 1
    filter: Filter | None = None


@dataclass(frozen=True, eq=False)
class Truth:
    """The exact memory of the nodes of one batch."""

    start: Tensor  # [u, d] just before the batch
    end: Tensor  # [u, d] after it
    repeated: Tensor  # [u] bool: whether the node has more than one event in it


@torch.no_grad()
def resynchronised(
    model: MDGNN, batches: TemporalBatches, ways: Sequence[Way], on_batch: Callable[[], object]
) -> Iterator[tuple[Truth, list[Tensor]]]:
    """Yield, for each batch, the truth and the memory `[u, d]` that each way makes of it.

    Every way begins every batch with the exact memory. The standard's update is the measurement that a filter
    corrects, and a transition that its trackers observe.
    """
    copied = exact_copy(model)
    for batch in batches:
        nodes, begin = nodes_of(batch), copied.memory.snapshot()
        start = copied.measure(nodes).memory
        updated: dict[int, tuple[States, Tensor]] = {}
        for sweeps in {way.sweeps for way in ways}:
            copied.absorb(batch, sweeps=sweeps)
            updated[sweeps] = copied.measure(nodes), copied.mailboxes.partner_count[nodes]
            copied.memory.restore(begin)
        copied.absorb(batch, sweeps=None)
        found = [
            updated[way.sweeps][0].memory
            if way.filter is None
            else _corrected(way.filter, *updated[way.sweeps])
            for way in ways
        ]
        yield Truth(start, copied.measure(nodes).memory, _repeated(batch, nodes)), found
        on_batch()


def _corrected(filter_: Filter, states: States, partner_count: Tensor) -> Tensor:
    """Return the corrected memory of nodes that all have mail; the filter observes the transition."""
    elapsed = states.last_update - states.previous_update
    arguments = states.nodes, states.previous, states.measured
    corrected: Tensor = filter_(*arguments, elapsed, states.count, partner_count)
    filter_.observe(*arguments, corrected, elapsed, states.count)
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
        start = copied.measure(nodes).memory
        copied.absorb(batch, sweeps=None)
        found.append(Truth(start, copied.measure(nodes).memory, _repeated(batch, nodes)))
        on_batch()
    return found


@torch.no_grad()
def carried(
    model: MDGNN, batches: TemporalBatches, way: Way, on_batch: Callable[[], object]
) -> Iterator[Tensor]:
    """Yield the memory `[u, d]` of each batch's nodes after it, by a way that goes on from its own memory.

    That is what training has: the filter corrects the memory that is kept, and observes the transitions of
    nodes when they have their next event.
    """
    copied = scratch_of(model)
    copied.correction = way.filter
    copied.memory.reset()
    for batch in batches:
        nodes = nodes_of(batch)
        states = copied.measure(nodes)
        copied.absorb(batch, states, way.sweeps)
        if way.filter is not None:
            at = states.pending
            elapsed = (states.last_update - states.previous_update)[at]
            memories = states.previous[at], states.measured[at], states.kept[at]
            way.filter.observe(nodes[at], *memories, elapsed, states.count[at])
        yield copied.measure(nodes).kept
        on_batch()
