"""The exact memory, as one event after the other makes it: along a stream, and between a batch's events."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch
from torch import Tensor

from pres.events import EventStream
from pres.incidence import distinct
from pres.models import MDGNN
from pres.models.in_order import Reading
from pres.models.scratch import scratch_of
from pres.sampling import TemporalBatches

AT_ONCE = 4_096  # memories computed together: a mailbox of ten mails each is large


def exact_copy(model: MDGNN) -> MDGNN:
    """Return a copy that shares the weights, with an empty memory of its own and nothing that corrects it."""
    copied = scratch_of(model)
    copied.correction = None  # the truth needs no filter
    copied.memory.reset()
    return copied


def replay_exactly(model: MDGNN, batches: TemporalBatches) -> Iterator[tuple[MDGNN, EventStream]]:
    """Yield a copy of ``model`` with each batch, its memory the exact one just before the batch."""
    copied = exact_copy(model)
    for batch in batches:
        yield copied, batch
        copied.absorb(batch, sweeps=None)


def nodes_of(batch: EventStream) -> Tensor:
    """Return the distinct nodes of a batch, increasing."""
    return distinct(torch.cat([batch.src, batch.dst]))


class MemoryInside:
    """The exact memory of a batch's nodes before and after each of its events.

    Args:
        model: A model without a correction, its memory the exact one just before the batch.
        batch: The next events.
    """

    def __init__(self, model: MDGNN, batch: EventStream) -> None:
        self.model, self.batch = model, batch
        with torch.no_grad():
            self.start = model.measure(nodes_of(batch))
            self.found = model.in_order.memory(model, batch, self.start)
        self.halves = self.found.halves
        letters = self.halves.letters
        self._letters = letters.to * len(batch) + letters.at  # increasing
        self._events = self.halves.node * len(batch) + self.halves.event  # increasing

    def before(self, event: Tensor) -> tuple[Tensor, Tensor]:
        """Return the memory of the sources and of the destinations `[q, d]` just before events `[q]`."""
        memory = self.found.memory
        return memory[self.halves.of_src[event]], memory[self.halves.of_dst[event]]

    @torch.no_grad()
    def after(self, nodes: Tensor, event: Tensor) -> Tensor:
        """Return the memory `[q, d]` of nodes `[q]` just after events `[q]`, their own or others'."""
        memory = self.start.kept[torch.searchsorted(self.start.nodes, nodes)]
        asked = nodes * len(self.batch) + event
        letter = torch.searchsorted(self._letters, asked, right=True) - 1  # the newest by then, of this node?
        moved = (letter >= 0) & (self.halves.letters.to[letter.clamp(min=0)] == nodes)
        needed, place = torch.unique(letter[moved], return_inverse=True)
        if len(needed):
            parts = [self._after_letters(some) for some in torch.split(needed, AT_ONCE)]
            memory[moved] = torch.cat(parts)[place]
        return memory

    def _after_letters(self, letter: Tensor) -> Tensor:
        """Return the memory `[w, d]` of the recipients of letters `[w]` as soon as they have them."""
        halves, state = self.halves, self.model.memory
        to, at = halves.letters.to[letter], halves.letters.at[letter]
        b, slots = len(self.batch), torch.arange(state.slots, device=to.device)
        own = torch.searchsorted(self._events, to * b + at, right=True) - 1  # the node's last event by then
        own = torch.where((own >= 0) & (halves.node[own.clamp(min=0)] == to), own, -1)
        inside = (letter - torch.searchsorted(self._letters, to * b) + 1).unsqueeze(1)  # letters so far
        read = letter.unsqueeze(1) - slots
        older, received = slots - inside, state.mails_received[to].unsqueeze(1)
        asked = replace(
            halves,
            node=torch.cat([halves.node, to]),
            event=torch.cat([halves.event, at]),
            before=torch.cat([halves.before, own]),
            moved=len(halves.node) + torch.arange(len(to), device=to.device),
            read=torch.where(slots < inside, read, -1),
            stored=torch.where((older >= 0) & (older < received), (received - 1 - older) % state.slots, -1),
        )
        reading = Reading(self.model, self.batch, asked)
        everything = torch.arange(len(to), device=to.device)
        return reading.update(self.found.memory, self.found.last_update, everything)
