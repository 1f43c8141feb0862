"""Messages into new memories."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pres.errors import OptionError
from pres.nn.attention import LinearAttention
from pres.nn.cells import gru
from pres.nn.gather import Picked
from pres.nn.slots import Asked, Slots


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

    def forward(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return new memories `[w, d]` from old ones and messages `[w, m]`, one to each."""
        return gru(self.cell, _side_by_side(messages), memory, self.repeated)


class RNNUpdater(nn.Module):
    """``s' = tanh(norm(W [message, s]))``: the memory update of JODIE.

    Without the norm the units saturate within an epoch, and what a memory holds fades as the stream goes on.

    Args:
        message_dim: Size of a message.
        memory_dim: Size of a memory.
        repeated: As in `GRUUpdater`; then ``s`` stands in the message alone.
    """

    def __init__(self, message_dim: int, memory_dim: int, repeated: bool = False) -> None:
        super().__init__()
        self.repeated = repeated
        self.linear = nn.Linear(message_dim + (0 if repeated else memory_dim), memory_dim)
        self.norm = nn.LayerNorm(memory_dim)

    def forward(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return new memories `[w, d]` from old ones and messages `[w, m]`, one to each."""
        given = _side_by_side(messages) if self.repeated else _side_by_side(messages, memory)
        return torch.tanh(self.norm(self.linear(given)))


def _side_by_side(messages: Sequence[Picked], *further: Tensor) -> Tensor:
    """Return messages `[w, m]` of one slot each, part by part, and what is to stand beside them `[w, …]`."""
    return torch.cat([*(part.copied() for part in messages), *further], dim=1)


class MailboxAttention(LinearAttention):
    """``s' = GRU(attention(s, mailbox), s)``: the memory update of APAN, with a gate.

    Args:
        message_dim: Size of a message.
        memory_dim: Size of a memory.
        heads: Attention heads.
        dropout: Of attention weights.
    """

    def __init__(self, message_dim: int, memory_dim: int, heads: int = 2, dropout: float = 0.1) -> None:
        if heads < 1 or memory_dim % heads:
            raise OptionError(f"heads={heads} must divide memory_dim={memory_dim}.")
        super().__init__(memory_dim, message_dim, memory_dim, heads, dropout)
        self.cell = nn.GRUCell(memory_dim, memory_dim)

    def forward(self, memory: Tensor, messages: Sequence[Picked], slots: Slots) -> Tensor:
        """Return new memories `[w, d]` from old ones, and messages `[s, m]` in the slots of mailboxes."""
        return gru(self.cell, self.read(self.query(memory), messages, Asked(slots)), memory)
