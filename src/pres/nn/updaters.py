"""Messages into new memories."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pres.errors import OptionError
from pres.nn.attention import LinearAttention
from pres.nn.cells import GRUInTurns, gru
from pres.nn.gather import Picked
from pres.nn.slots import Asked, Slots


class InTurns:
    """An updater that moves memories in turns, each when what it needs of those before is known.

    It ends in a gated cell, whose gradient is made once for all turns.
    """

    def __init__(self, updater: GRUUpdater | MailboxAttention) -> None:
        assert updater.cell is not None
        self._input = updater.input_of
        self._cell = GRUInTurns(updater.cell, isinstance(updater, GRUUpdater) and updater.repeated)

    def __call__(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return new memories as the updater does, without gradients: `all` has them."""
        return self._cell.move(self._input(memory, messages, slots), memory)

    def all(self) -> Tensor:
        """Return the memories of all turns so far, one after another."""
        return self._cell.all()


def in_turns(updater: nn.Module, device: torch.device) -> InTurns | None:
    """Return an updater that is to move memories in turns; None if its own call is to be made each time."""
    ours = type(updater) is GRUUpdater or type(updater) is MailboxAttention  # others have a way of their own
    if not isinstance(updater, GRUUpdater | MailboxAttention) or not ours or "forward" in vars(updater):
        return None
    if updater.cell is None:
        return None
    called = (updater._forward_hooks, updater._forward_pre_hooks, updater._compiled_call_impl)
    if any(called) or torch.is_autocast_enabled(device.type):  # precision is chosen operation by operation
        return None
    return InTurns(updater)


class GRUUpdater(nn.Module):
    """``s' = GRU(message, s)``: the memory update of TGN.

    Args:
        message_dim: Size of a message.
        memory_dim: Size of a memory.
        repeated: Whether a message begins with the memory it moves, as an `IdentityMessage` does to its node.
    """

    def __init__(self, message_dim: int, memory_dim: int, repeated: bool = False) -> None:
        super().__init__()
        self.cell, self.repeated = nn.GRUCell(message_dim, memory_dim), repeated

    @property
    def of_messages(self) -> list[Tensor]:
        """The weights whose first columns read a message."""
        return [self.cell.weight_ih]

    def forward(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return new memories `[w, d]` from old ones and messages `[w, m]`, one to each."""
        return gru(self.cell, self.input_of(memory, messages, slots), memory, self.repeated)

    def input_of(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return what the cell moves memories by `[w, m]`."""
        return _side_by_side(messages)


class RNNUpdater(nn.Module):
    """``s' = tanh(W message + U s)``: the memory update of JODIE, as published and as TGL has it.

    Args:
        message_dim: Size of a message.
        memory_dim: Size of a memory.
    """

    def __init__(self, message_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.cell = nn.RNNCell(message_dim, memory_dim)

    @property
    def of_messages(self) -> list[Tensor]:
        """The weights whose first columns read a message."""
        return [self.cell.weight_ih]

    def forward(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return new memories `[w, d]` from old ones and messages `[w, m]`, one to each."""
        moved: Tensor = self.cell(_side_by_side(messages), memory)
        return moved


def _side_by_side(messages: Sequence[Picked]) -> Tensor:
    """Return messages `[w, m]` of one slot each, part by part."""
    return torch.cat([part.copied() for part in messages], dim=1)


class MailboxAttention(LinearAttention):
    """``s' = GRU(attention(s, mailbox), s)``: the memory update of APAN, with a gate.

    Without the gate it is TGL's: ``s' = relu(dropout(W norm(attention(s, mailbox) + s)))``.

    Args:
        message_dim: Size of a message.
        memory_dim: Size of a memory.
        heads: Attention heads.
        dropout: Of attention weights; without a gate also of the new memory.
        gate: Whether a gated cell moves the memory.
    """

    def __init__(
        self, message_dim: int, memory_dim: int, heads: int = 2, dropout: float = 0.1, gate: bool = True
    ) -> None:
        if heads < 1 or memory_dim % heads:
            raise OptionError(f"heads={heads} must divide memory_dim={memory_dim}.")
        super().__init__(memory_dim, message_dim, memory_dim, heads, dropout)
        self.cell = nn.GRUCell(memory_dim, memory_dim) if gate else None
        self.norm = None if gate else nn.LayerNorm(memory_dim)
        self.out = None if gate else nn.Linear(memory_dim, memory_dim)

    @property
    def of_messages(self) -> list[Tensor]:
        """The weights whose first columns read a message."""
        return [self.key.weight, self.value.weight]

    def forward(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return new memories `[w, d]` from old ones, and messages `[s, m]` in the slots of mailboxes."""
        read = self.input_of(memory, messages, slots)
        if self.cell is not None:
            return gru(self.cell, read, memory)
        assert self.norm is not None and self.out is not None
        return torch.relu(self.dropout(self.out(self.norm(read + memory))))

    def input_of(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return what moves memories `[w, d]`."""
        return self.read(self.query(memory), messages, Asked(slots))
