"""The memory of all nodes where a scan moves it: states alone, and no mail."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pres.nn.memory import MemoryStore


class ScanRows(NamedTuple):
    """What a `ScanMemory` holds of some nodes."""

    memory: Tensor  # [n, dim]
    last_event: Tensor  # [n] of the events that memory holds


class ScanMemory(MemoryStore):
    """State of every node: its memory and the time of its last event.

    Memory holds a little less than was taken in: the last events are scanned again with the next ones, so
    that what they do to memory is learned (see `pres.models.scanned`).

    Args:
        num_nodes: Number of nodes.
        dim: Size of a memory.
        start: The time before which nothing happened; nodes count as updated then.
    """

    def read(self, nodes: Tensor) -> ScanRows:
        """Return the rows of nodes `[n]`."""
        return ScanRows(self.memory.index_select(0, nodes), self.last_event.index_select(0, nodes))

    @torch.no_grad()
    def write(self, nodes: Tensor, memory: Tensor, last_event: Tensor) -> None:
        """Write the memories `[u, dim]` of distinct nodes and the times of their last events."""
        self.memory.index_copy_(0, nodes, memory.detach().to(self.memory.dtype))
        self.last_event.index_copy_(0, nodes, last_event)
