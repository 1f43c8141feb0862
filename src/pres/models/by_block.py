"""Memory inside a batch that moves block after block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pres.events import EventStream
from pres.models.half_events import HalfEvents
from pres.models.reading import Contents, Reading
from pres.nn.gather import rows

if TYPE_CHECKING:
    from pres.models.mdgnn import MDGNN


@dataclass(frozen=True, eq=False)
class Known:
    """Memories of a batch's nodes that were measured already."""

    keys: Tensor  # [q] `HalfEvents.state_keys`, increasing
    memory: Tensor  # [q, d]
    last_update: Tensor  # [q] the times it is of


class ByBlock:
    """Moves memory inside a batch block after block, as standard batches of a block each would.

    Args:
        model: The model, its memory as the batch found it.
        batch: The events.
        halves: Their half-events.
        contents: Where the memory just before each block is written, for all of its half-events.
        last_update: Likewise the times `[h]` it is of.
        size: Events of a block.
    """

    def __init__(
        self,
        model: MDGNN,
        batch: EventStream,
        halves: HalfEvents,
        contents: Contents,
        last_update: Tensor,
        size: int,
    ) -> None:
        self.model, self.halves, self.contents, self.last_update = model, halves, contents, last_update
        self.size, self.done = size, 0
        number = torch.div(halves.event, size, rounding_mode="floor")
        # A node's half-events of one block are alike: they are neighbours here, and the first stands for all.
        begins = torch.ones_like(number, dtype=torch.bool)
        begins[1:] = (halves.node[1:] != halves.node[:-1]) | (number[1:] != number[:-1])
        first = begins.nonzero().squeeze(1)
        received = halves.received(halves.node[first], number[first] * size)
        self.moved, self.still = (
            at.squeeze(1) for at in ((received > 0).nonzero(), (received == 0).nonzero())
        )
        self.node = halves.node[first]
        self.keys = halves.state_keys(self.node, received)
        moments = halves.after(self.node[self.moved], received[self.moved], model.memory)
        self.mail = Reading(model, batch, halves, moments, contents.recipients)
        self.stands_for = begins.cumsum(0) - 1  # [h] the place of each half-event's first among all firsts
        blocks = int(number.max()) + 1 if len(number) else 0
        self._moved, self._still = (_by_number(number[first][at], blocks) for at in (self.moved, self.still))
        self._everyone = _by_number(number, blocks)
        self._memory = contents.memory.new_empty(len(first), contents.memory.shape[1])
        self._time = last_update.new_empty(len(first))

    def left(self, stop: int) -> range:
        """Return the blocks that begin before place ``stop`` and are not done."""
        return range(self.done, min(-(-stop // self.size), len(self._everyone)))

    @torch.no_grad()
    def advance(self, stop: int, known: Known | None = None) -> None:
        """Go on with all blocks that begin before place ``stop``; what is ``known`` is not measured again."""
        for block in self.left(stop):
            still, moved = self.still[self._still[block]], self._moved[block]
            if known is not None:
                still = still[self._unknown(still, known)]
                moved = moved[self._unknown(self.moved[moved], known)]
            if len(still):  # nothing of the batch has reached them: they are as it found them
                states = self.model.measure(self.node[still])
                self._write(still, states.kept, states.last_update)
            if len(moved):
                updated = self.mail.update(self.contents, self.last_update, moved)
                self._write(self.moved[moved], updated, self.mail.newest_t[moved])
            everyone = self._everyone[block]
            place = self.stands_for[everyone]
            self.contents.write(everyone, rows(self._memory, place))
            self.last_update[everyone] = self._time[place]
            self.done += 1

    def _unknown(self, firsts: Tensor, known: Known) -> Tensor:
        """Take what is known of first half-events `[q]`, and return which of them are not."""
        keys = self.keys[firsts]
        place = torch.searchsorted(known.keys, keys).clamp(max=len(known.keys) - 1)
        there = known.keys[place] == keys
        found, place = firsts[there], place[there]
        self._write(found, rows(known.memory, place), known.last_update[place])
        return ~there

    def _write(self, firsts: Tensor, memory: Tensor, last_update: Tensor) -> None:
        self._memory[firsts], self._time[firsts] = memory.to(self._memory.dtype), last_update


def _by_number(number: Tensor, count: int) -> list[Tensor]:
    """Return the places of 0, of 1, …: so many numbers."""
    sizes = torch.bincount(number, minlength=count).tolist()
    return list(torch.split(torch.argsort(number, stable=True), sizes))
