"""The memory of all nodes, and the mail that has not reached it yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from pres.errors import OptionError
from pres.nn.allocation import zeros_when_used
from pres.nn.gather import Picked
from pres.nn.slots import Slots


@dataclass(frozen=True, eq=False)
class Mail:
    """The mail of nodes that have some: what their last events need to become messages.

    ``content`` is ``[own memory, partner's, own code, partner's]`` just before the event, and the numeric
    features where their mean is kept; else they are looked up by the event.
    """

    content: Picked  # [s, mail_dim]
    event: Tensor  # [s] int64
    t: Tensor  # [s]
    newest_t: Tensor  # [w] the time of each node's newest mail
    slots: Slots  # of the nodes' mailboxes


class Memory(nn.Module):
    """State of every node: its memory, when that was last updated, its mailbox and its last event's time.

    Args:
        num_nodes: Number of nodes.
        dim: Size of a memory.
        feature_dim: Number of numbers in a mail beside two memories.
        slots: Mails kept per node, the newest ones.
        start: The time before which nothing happened; nodes count as updated then.
    """

    def __init__(self, num_nodes: int, dim: int, feature_dim: int, slots: int, start: Tensor) -> None:
        super().__init__()
        if dim < 1 or slots < 1:
            raise OptionError(f"a memory of size {dim} with {slots} slots for mail: both must be at least 1.")
        self.dim, self.slots, self.mail_dim = dim, slots, 2 * dim + feature_dim
        self.register_buffer("start", start.clone())
        self.register_buffer("position", torch.zeros((), dtype=torch.int64))
        self.register_buffer("memory", zeros_when_used(num_nodes, dim))
        self.register_buffer("last_update", start.repeat(num_nodes))
        self.register_buffer("mail", zeros_when_used(num_nodes, slots, self.mail_dim))
        self.register_buffer("mail_event", torch.zeros(num_nodes, slots, dtype=torch.int64))
        self.register_buffer("mail_t", start.repeat(num_nodes, slots))
        self.register_buffer("mails_received", torch.zeros(num_nodes, dtype=torch.int64))
        self.register_buffer("last_event", start.repeat(num_nodes))
        self.start: Tensor
        self.position: Tensor  # events of the stream taken in so far
        self.memory: Tensor
        self.last_update: Tensor
        self.mail: Tensor
        self.mail_event: Tensor
        self.mail_t: Tensor
        self.mails_received: Tensor
        self.last_event: Tensor  # when the node itself last had an event; mail of a neighbour's is none

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Follow `to` and its kin, but never round a time: `float()` on float64 seconds would."""
        times = {name: getattr(self, name) for name in ("start", "last_update", "mail_t", "last_event")}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, before in times.items():
            setattr(self, name, before.to(self.memory.device))
        return self

    def reset(self) -> None:
        """Forget everything, as before the first event."""
        for large in (self.memory, self.mail):  # written to only where something was: see `zeros_when_used`
            large[large.flatten(1).any(1)] = 0
        for zeroed in (self.position, self.mail_event, self.mails_received):
            zeroed.zero_()
        self.last_update.fill_(self.start)
        self.mail_t.fill_(self.start)
        self.last_event.fill_(self.start)

    def blank(self) -> Memory:
        """Return the memory of one node that nothing has happened to."""
        return Memory(1, self.dim, self.mail_dim - 2 * self.dim, self.slots, self.start)

    def snapshot(self) -> dict[str, Tensor]:
        """Return a copy of the whole state."""
        return {name: buffer.clone() for name, buffer in self.named_buffers()}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        """Go back to an earlier snapshot."""
        for name, buffer in self.named_buffers():
            buffer.copy_(snapshot[name])

    def mail_of(self, nodes: Tensor) -> Mail:
        """Return the mail of distinct nodes `[w]`, all of which have some."""
        if self.slots == 1:
            place, slots = nodes, Slots.one_each(len(nodes), nodes.device)
            newest_t = t = self.mail_t.view(-1).index_select(0, nodes)
        else:
            received, slot = self.mails_received[nodes], torch.arange(self.slots, device=nodes.device)
            slots = Slots.of(slot < received.unsqueeze(1))
            place = slots.pack((nodes * self.slots).unsqueeze(1) + slot)
            newest_t, t = self.mail_t[nodes, (received - 1) % self.slots], self.mail_t.view(-1)[place]
        content = Picked(self.mail.view(-1, self.mail_dim), place)
        return Mail(content, self.mail_event.view(-1).index_select(0, place), t, newest_t, slots)

    @torch.no_grad()
    def commit(self, nodes: Tensor, memory: Tensor, last_update: Tensor) -> None:
        """Write the memories `[u, dim]` of distinct nodes and the times they are of."""
        self.memory.index_copy_(0, nodes, memory.detach().to(self.memory.dtype))
        self.last_update.index_copy_(0, nodes, last_update)

    @torch.no_grad()
    def deliver(
        self, nodes: Tensor, content: Tensor, event: Tensor, t: Tensor, rank: Tensor | None = None
    ) -> None:
        """Put mails into the mailboxes of nodes `[m]`; the oldest make room.

        A node may get several, but not more than it has slots; then ``rank`` `[m]` tells which comes after
        which, counted from 0 at each node.
        """
        received = self.mails_received.index_select(0, nodes)
        if rank is not None:
            received += rank
        place = nodes if self.slots == 1 else nodes * self.slots + received % self.slots
        self.mail.view(-1, self.mail_dim).index_copy_(0, place, content.detach().to(self.mail.dtype))
        self.mail_event.view(-1).index_copy_(0, place, event)
        self.mail_t.view(-1).index_copy_(0, place, t)
        if rank is None:
            self.mails_received.index_copy_(0, nodes, received.add_(1))
        else:
            self.mails_received.index_add_(0, nodes, torch.ones_like(nodes))

    @torch.no_grad()
    def write_last_event(self, nodes: Tensor, t: Tensor) -> None:
        """Write when distinct nodes `[v]` last had an event of their own."""
        self.last_event.index_copy_(0, nodes, t)
