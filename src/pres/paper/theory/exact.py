"""The exact memory, as one event after the other makes it: along a stream, and between a batch's events."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from pres.data.incidence import distinct
from pres.data.stream import EventStream
from pres.models import MDGNN
from pres.models.scratch import scratch_of
from pres.models.sequential import sequential_memory
from pres.sampling import TemporalBatches

AT_ONCE = 4_096  # memories computed together: a mailbox of ten mails each is large


def exact_copy(model: MDGNN) -> MDGNN:
    """Return a copy that shares the weights, with an empty memory of its own and nothing that corrects it."""
    copied = scratch_of(model)
    copied.smoothing = None  # the truth needs none
    copied.memory.reset()
    return copied


def replay_exactly(model: MDGNN, batches: TemporalBatches) -> Iterator[tuple[MDGNN, EventStream]]:
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
