"""The memory of all nodes where a scan moves it by what their mailboxes hold."""

from __future__ import annotations

import torch
from torch import Tensor

from pres.errors import OptionError
from pres.nn.allocation import zeros_when_used
from pres.nn.scan_memory import ScanMemory


class ScanMailboxes(ScanMemory):
    """State of every node: its memory, the time of its last event, and a mailbox of its newest mails.

    Args:
        num_nodes: Number of nodes.
        dim: Size of a memory.
        slots: Mails kept per node, the newest ones.
        start: The time before which nothing happened.
    """

    def __init__(self, num_nodes: int, dim: int, slots: int, start: Tensor) -> None:
        super().__init__(num_nodes, dim, start)
        if slots < 1:
            raise OptionError(f"a mailbox of {slots} slots: it must have at least 1.")
        self.slots = slots
        self.register_buffer("mail", zeros_when_used(num_nodes, slots, dim))
        self.register_buffer("mail_event", torch.zeros(num_nodes, slots, dtype=torch.int64))
        self.register_buffer("received", torch.zeros(num_nodes, dtype=torch.int64))
        self.mail: Tensor
        self.mail_event: Tensor
        self.received: Tensor  # mails so far; the i-th, from 0, lies in slot i modulo `slots`

    def newest(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Return where the mails `[v, slots]` of nodes `[v]` are among all, the newest first, and if any is.

        `read_mails` reads the mails at such places.
        """
        back = torch.arange(1, self.slots + 1, device=nodes.device)
        number = self.received.index_select(0, nodes).unsqueeze(1) - back
        return (nodes * self.slots).unsqueeze(1) + number % self.slots, number >= 0

    def read_mails(self, places: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mails `[p, dim]` at places `[p]`, and the event `[p]` of each."""
        return self.mail.flatten(0, 1).index_select(0, places), self.mail_event.view(-1).index_select(
            0, places
        )

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
