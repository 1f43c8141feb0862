"""The state of all nodes: their memory, and the mail that has not reached it yet."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.nn.allocation import lengthened, zeros_when_used
from pres.nn.ops import Picked, Slots


class MemoryStore(nn.Module):
    """State of all nodes, the only reader and writer of it: rows go in and come out by node.

    This one keeps rows in buffers; a store that keeps them elsewhere replaces the methods.

    Args:
        num_nodes: Number of nodes.
        dim: Size of a memory.
        start: The time before which nothing happened.
    """

    times: tuple[str, ...] = ("start", "last_event")  # buffers that hold times

    def __init__(self, num_nodes: int, dim: int, start: Tensor) -> None:
        super().__init__()
        if dim < 1:
            raise OptionError(f"a memory of size {dim}: it must be at least 1.")
        self.num_nodes, self.dim = num_nodes, dim
        self.register_buffer("start", start.clone())
        self.register_buffer("events", torch.zeros((), dtype=torch.int64))
        self.register_buffer("memory", zeros_when_used(num_nodes, dim))
        self.register_buffer("last_event", start.repeat(num_nodes))
        self.start: Tensor
        self.events: Tensor
        self.memory: Tensor
        self.last_event: Tensor  # when the node itself last had an event; mail of a neighbour's is none

    @property
    def device(self) -> torch.device:
        """Where rows come out and go in."""
        return self.memory.device

    @property
    def dtype(self) -> torch.dtype:
        """The type of a memory's values."""
        return self.memory.dtype

    @property
    def position(self) -> int:
        """How many events of the stream were taken in so far."""
        return int(self.events)

    def advance(self, position: int) -> None:
        """Note that the first ``position`` events were taken in."""
        self.events.fill_(position)

    def read_memory(self, nodes: Tensor) -> Tensor:
        """Return the memories `[n, dim]` of nodes `[n]`."""
        return self.memory.index_select(0, nodes)

    def reset(self) -> None:
        """Forget everything, as before the first event."""
        for name, buffer in self.named_buffers():
            if name in self.times:
                buffer.copy_(self.start)
            elif buffer.ndim > 1 and buffer.is_floating_point():
                buffer[buffer.flatten(1).any(1)] = 0  # written to only where needed: see `zeros_when_used`
            else:
                buffer.zero_()

    def add_nodes(self, count: int) -> None:
        """Make room for further nodes, which nothing has happened to."""
        for name, buffer in self.named_buffers():
            if buffer.ndim:
                further = (
                    self.num_nodes + count - len(buffer)
                )  # where it failed before, some have them already
                setattr(self, name, lengthened(buffer, further, self.start if name in self.times else 0))
        self.num_nodes += count

    def grow(self, events: EventStream) -> None:
        """Make room for a stream's new nodes."""
        if events.num_nodes > self.num_nodes:
            self.add_nodes(events.num_nodes - self.num_nodes)

    def snapshot(self) -> dict[str, Tensor]:
        """Return a copy of the whole state."""
        return {name: buffer.clone() for name, buffer in self.named_buffers()}

    def restore(self, snapshot: dict[str, Tensor]) -> None:
        """Go back to an earlier snapshot."""
        for name, buffer in self.named_buffers():
            buffer.copy_(snapshot[name])

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Follow `to` and its kin, but never round a time: `float()` on float64 seconds would."""
        times = {name: getattr(self, name) for name in self.times}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, before in times.items():
            setattr(self, name, before.to(self.device))
        return self


@dataclass(frozen=True, eq=False)
class NodeRows:
    """What a `Memory` holds of some nodes, but for their mail."""

    memory: Tensor  # [n, dim]
    last_update: Tensor  # [n] the time that the memory is of
    last_event: Tensor  # [n] when the node itself last had an event
    received: Tensor  # [n] mails so far


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


class Memory(MemoryStore):
    """State of every node where mail moves memory.

    Args:
        num_nodes: Number of nodes.
        dim: Size of a memory.
        feature_dim: Number of numbers in a mail beside two memories.
        slots: Mails kept per node, the newest ones.
        start: The time before which nothing happened; nodes count as updated then.
    """

    times: tuple[str, ...] = ("start", "last_event", "last_update", "mail_t")

    def __init__(self, num_nodes: int, dim: int, feature_dim: int, slots: int, start: Tensor) -> None:
        super().__init__(num_nodes, dim, start)
        if slots < 1:
            raise OptionError(f"a mailbox of {slots} slots: it must have at least 1.")
        self.slots, self.mail_dim = slots, 2 * dim + feature_dim
        self.register_buffer("last_update", start.repeat(num_nodes))
        self.register_buffer("mail", zeros_when_used(num_nodes, slots, self.mail_dim))
        self.register_buffer("mail_event", torch.zeros(num_nodes, slots, dtype=torch.int64))
        self.register_buffer("mail_t", start.repeat(num_nodes, slots))
        self.register_buffer("mails_received", torch.zeros(num_nodes, dtype=torch.int64))
        self.last_update: Tensor
        self.mail: Tensor
        self.mail_event: Tensor
        self.mail_t: Tensor
        self.mails_received: Tensor

    def read(self, nodes: Tensor) -> NodeRows:
        """Return the rows of nodes `[n]`."""
        buffers = self.memory, self.last_update, self.last_event, self.mails_received
        return NodeRows(*(buffer.index_select(0, nodes) for buffer in buffers))

    def received(self, nodes: Tensor) -> Tensor:
        """Return how many mails each of nodes `[n]` got so far."""
        return self.mails_received.index_select(0, nodes)

    def read_mail(self, nodes: Tensor) -> Mail:
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

    def read_mailboxes(self, nodes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return contents `[n, slots, mail_dim]`, events and times `[n, slots]` of mail to nodes `[n]`."""
        mail, event, t = (each.index_select(0, nodes) for each in (self.mail, self.mail_event, self.mail_t))
        return mail, event, t

    @torch.no_grad()
    def write(self, nodes: Tensor, memory: Tensor, last_update: Tensor) -> None:
        """Write the memories `[n, dim]` of distinct nodes and the times they are of."""
        self.memory.index_copy_(0, nodes, memory.detach().to(self.memory.dtype))
        self.last_update.index_copy_(0, nodes, last_update)

    @torch.no_grad()
    def write_mail(
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
