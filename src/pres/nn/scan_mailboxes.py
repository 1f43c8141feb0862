"""The memory of all nodes where a scan moves it by what their mailboxes hold."""

from __future__ import annotations

import torch
from torch import Tensor

from pres.allocation import zeros_when_used
from pres.errors import OptionError
from pres.nn.scan_memory import ScanMemory


class ScanMailboxes(ScanMemory):
    """State of every node: its memory, the time of its last event, and a mailbox of its newest mails.

    A mail is about an event and one of its endpoints, its sender. It keeps the two memories alone: codes,
    features and time follow from the event.

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
        self.register_buffer("mail", zeros_when_used(num_nodes, slots, 2 * dim))
        self.register_buffer("sent", torch.zeros(num_nodes, slots, dtype=torch.int64))
        self.register_buffer("received", torch.zeros(num_nodes, dtype=torch.int64))
        self.mail: Tensor  # the sender's memory and its partner's
        self.sent: Tensor  # twice the event, and 1 more if its destination is the sender
        self.received: Tensor  # mails so far; the i-th, from 0, lies in slot i modulo `slots`

    def reset(self) -> None:
        """Forget everything, as before the first event."""
        super().reset()
        self.mail[self.received > 0] = 0  # written to only where something was: see `zeros_when_used`
        self.sent.zero_()
        self.received.zero_()

    def blank(self) -> ScanMailboxes:
        """Return the memory of one node that nothing has happened to."""
        return ScanMailboxes(1, self.dim, self.slots, self.start)

    def newest(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Return where the mails `[v, slots]` of nodes `[v]` are among all, the newest first, and if any is.

        Places are those in ``sent.view(-1)`` and in ``mail.flatten(0, 1)``.
        """
        back = torch.arange(1, self.slots + 1, device=nodes.device)
        number = self.received.index_select(0, nodes).unsqueeze(1) - back
        return (nodes * self.slots).unsqueeze(1) + number % self.slots, number >= 0

    @torch.no_grad()
    def deliver(self, nodes: Tensor, rank: Tensor, sent: Tensor, content: Tensor) -> None:
        """Put mails into mailboxes of nodes `[m]`, at most so many to one as it has slots.

        Args:
            nodes: The recipients.
            rank: Which of the new mails each is for its recipient, counted from 0. Some may be left out.
            sent: Twice its event, and 1 more if the destination is the sender `[m]`.
            content: The sender's memory and its partner's `[m, 2 dim]`.
        """
        number = self.received.index_select(0, nodes) + rank
        place = nodes * self.slots + number % self.slots
        self.mail.view(-1, 2 * self.dim).index_copy_(0, place, content.to(self.mail.dtype))
        self.sent.view(-1).index_copy_(0, place, sent)
        self.received.scatter_reduce_(0, nodes, number + 1, "amax")
