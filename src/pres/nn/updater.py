"""Messages into new memories."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pres.errors import OptionError
from pres.nn.attention import LinearAttention
from pres.nn.functional import gru_of_own_state
from pres.nn.ops import Asked, Picked, Slots


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
        self.widths = {"message": message_dim, "memory": memory_dim}

    @property
    def of_messages(self) -> list[Tensor]:
        """The weights whose first columns read a message."""
        return [self.cell.weight_ih]

    def forward(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return new memories `[w, d]` from old ones and messages `[w, m]`, one to each."""
        message = torch.cat([part.copied() for part in messages], dim=1)
        if self.repeated:
            return gru_of_own_state(self.cell, message, memory)
        moved: Tensor = self.cell(message, memory)
        return moved


class RNNUpdater(nn.Module):
    """``s' = tanh(W message + U s)``: the memory update of JODIE, as published and as TGL has it.

    Args:
        message_dim: Size of a message.
        memory_dim: Size of a memory.
    """

    def __init__(self, message_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.cell = nn.RNNCell(message_dim, memory_dim)
        self.widths = {"message": message_dim, "memory": memory_dim}

    @property
    def of_messages(self) -> list[Tensor]:
        """The weights whose first columns read a message."""
        return [self.cell.weight_ih]

    def forward(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return new memories `[w, d]` from old ones and messages `[w, m]`, one to each."""
        moved: Tensor = self.cell(torch.cat([part.copied() for part in messages], dim=1), memory)
        return moved


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
        self.widths = {"message": message_dim, "memory": memory_dim}
        self.cell = nn.GRUCell(memory_dim, memory_dim) if gate else None
        self.norm = None if gate else nn.LayerNorm(memory_dim)
        self.out = None if gate else nn.Linear(memory_dim, memory_dim)

    @property
    def of_messages(self) -> list[Tensor]:
        """The weights whose first columns read a message."""
        return [self.key.weight, self.value.weight]

    def forward(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return new memories `[w, d]` from old ones, and messages `[s, m]` in the slots of mailboxes."""
        read = self.read(self.query(memory), messages, Asked(slots))
        if self.cell is not None:
            moved: Tensor = self.cell(read, memory)
            return moved
        assert self.norm is not None and self.out is not None
        return torch.relu(self.dropout(self.out(self.norm(read + memory))))
