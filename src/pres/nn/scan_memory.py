"""The memory of all nodes where a scan moves it."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from pres.errors import OptionError
from pres.nn.allocation import zeros_when_used
from pres.nn.memory import MemoryStore


class ScanRows(NamedTuple):
    """What a `ScanMemory` holds of some nodes, but for their mail."""

    memory: Tensor  # [n, dim]
    last_event: Tensor  # [n] of the events that memory holds


class ScanMemory(MemoryStore):
    """State of every node: its memory, the time of its last event, and its newest mails if events send any.

    It holds a little less than was taken in: the last events are scanned again with the next ones, so that
    what they do to memory is learned (see `pres.models.scanned`).

    Args:
        num_nodes: Number of nodes.
        dim: Size of a memory and of a mail.
        start: The time before which nothing happened; nodes count as updated then.
        slots: Mails kept per node, the newest ones; 0 where events send none.
    """

    def __init__(self, num_nodes: int, dim: int, start: Tensor, slots: int = 0) -> None:
        super().__init__(num_nodes, dim, start)
        if slots < 0:
            raise OptionError(f"a mailbox of {slots} slots: it must have 0 or more.")
        self.slots = slots
        if slots:
            self.register_buffer("mail", zeros_when_used(num_nodes, slots, dim))
            self.register_buffer("mail_event", torch.zeros(num_nodes, slots, dtype=torch.int64))
            self.register_buffer("received", torch.zeros(num_nodes, dtype=torch.int64))
        self.mail: Tensor
        self.mail_event: Tensor
        self.received: Tensor  # mails so far; the i-th, from 0, lies in slot i modulo `slots`

    def read(self, nodes: Tensor) -> ScanRows:
        """Return the rows of nodes `[n]`."""
        return ScanRows(self.memory.index_select(0, nodes), self.last_event.index_select(0, nodes))

    @torch.no_grad()
    def write(self, nodes: Tensor, memory: Tensor, last_event: Tensor) -> None:
        """Write the memories `[u, dim]` of distinct nodes and the times of their last events."""
        self.memory.index_copy_(0, nodes, memory.detach().to(self.memory.dtype))
        self.last_event.index_copy_(0, nodes, last_event)

    def newest(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Return where the mails `[v, slots]` of nodes `[v]` are among all, the newest first, and if any is.

        `read_mails` reads the mails at such places.
        """
        back = torch.arange(1, self.slots + 1, device=nodes.device)
        number = self.received.index_select(0, nodes).unsqueeze(1) - back
        return (nodes * self.slots).unsqueeze(1) + number % self.slots, number >= 0

    def read_mails(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mails `[p, dim]` at places `[p]`, and the event `[p]` of each."""
        mails, events = self.mail.view(-1, self.dim), self.mail_event.view(-1)
        return mails.index_select(0, places), events.index_select(0, places)

    @torch.no_grad()
    def write_mails(self, nodes: Tensor, rank: Tensor, event: Tensor, mail: Tensor) -> None:
        """Put the mails `[m, dim]` of events `[m]` into the mailboxes of nodes `[m]`.

        ``rank`` `[m]` tells which of a node's new mails each is, counted from 0. A node may get as many as it
        has slots; of more the first are left out.
        """
        number = self.received.index_select(0, nodes) + rank
        place = nodes * self.slots + number % self.slots
        self.mail.view(-1, self.dim).index_copy_(0, place, mail.to(self.mail.dtype))
        self.mail_event.view(-1).index_copy_(0, place, event)
        self.received.scatter_reduce_(0, nodes, number + 1, "amax")
