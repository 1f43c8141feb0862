"""The memory of all nodes where a scan moves it: states alone, and no mail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

from pres.errors import OptionError
from pres.nn.allocation import zeros_when_used


class ScanMemory(nn.Module):
    """State of every node: its memory and the time of its last event.

    Memory holds a little less than was taken in: the last events are scanned again with the next ones, so
    that what they do to memory is learned (see `pres.models.scanned`).

    Args:
        num_nodes: Number of nodes.
        dim: Size of a memory.
        start: The time before which nothing happened; nodes count as updated then.
    """

    def __init__(self, num_nodes: int, dim: int, start: Tensor) -> None:
        super().__init__()
        if dim < 1:
            raise OptionError(f"a memory of size {dim}: it must be at least 1.")
        self.dim = dim
        self.register_buffer("start", start.clone())
        self.register_buffer("position", torch.zeros((), dtype=torch.int64))
        self.register_buffer("memory", zeros_when_used(num_nodes, dim))
        self.register_buffer("last_event", start.repeat(num_nodes))
        self.start: Tensor
        self.position: Tensor  # events of the stream taken in so far
        self.memory: Tensor
        self.last_event: Tensor  # of the events that memory holds

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Follow `to` and its kin, but never round a time: `float()` on float64 seconds would."""
        times = {name: getattr(self, name) for name in ("start", "last_event")}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, before in times.items():
            setattr(self, name, before.to(self.memory.device))
        return self

    def reset(self) -> None:
        """Forget everything, as before the first event."""
        self.memory[self.memory.any(1)] = 0  # written to only where something was: see `zeros_when_used`
        self.position.zero_()
        self.last_event.fill_(self.start)

    def blank(self) -> ScanMemory:
        """Return the memory of one node that nothing has happened to."""
        return ScanMemory(1, self.dim, self.start)

    def snapshot(self) -> dict[str, Tensor]:
        """Return a copy of the whole state."""
        return {name: buffer.clone() for name, buffer in self.named_buffers()}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        """Go back to an earlier snapshot."""
        for name, buffer in self.named_buffers():
            buffer.copy_(snapshot[name])

    @torch.no_grad()
    def commit(self, nodes: Tensor, memory: Tensor, last_event: Tensor) -> None:
        """Write the memories `[u, dim]` of distinct nodes and the times of their last events."""
        self.memory.index_copy_(0, nodes, memory.detach().to(self.memory.dtype))
        self.last_event.index_copy_(0, nodes, last_event)
