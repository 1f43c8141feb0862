"""Messages into new memories."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pres.errors import OptionError


class GRUUpdater(nn.Module):
    """``s' = GRU(message, s)``: the memory update of TGN."""

    def __init__(self, message_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(message_dim, memory_dim)

    def forward(self, memory: Tensor, messages: Tensor, mask: Tensor) -> Tensor:
        """Return new memories `[u, d]` from old ones and messages `[u, 1, m]`."""
        updated: Tensor = self.cell(messages.squeeze(1), memory)
        return updated


class RNNUpdater(nn.Module):
    """``s' = tanh(norm(W [message, s]))``: the memory update of JODIE.

    Without the norm the units saturate within an epoch, and what a memory holds fades as the stream goes on.
    """

    def __init__(self, message_dim: int, memory_dim: int) -> None:
        super().__init__()
        self.linear = nn.Linear(message_dim + memory_dim, memory_dim)
        self.norm = nn.LayerNorm(memory_dim)

    def forward(self, memory: Tensor, messages: Tensor, mask: Tensor) -> Tensor:
        """Return new memories `[u, d]` from old ones and messages `[u, 1, m]`."""
        return torch.tanh(self.norm(self.linear(torch.cat([messages.squeeze(1), memory], dim=-1))))


class MailboxAttention(nn.Module):
    """``s' = GRU(attention(s, mailbox), s)``: the memory update of APAN, with a gate.

    Args:
        message_dim: Size of a message.
        memory_dim: Size of a memory.
        heads: Attention heads.
        dropout: Of attention weights.
    """

    def __init__(self, message_dim: int, memory_dim: int, heads: int = 2, dropout: float = 0.1) -> None:
        super().__init__()
        if heads < 1 or memory_dim % heads:
            raise OptionError(f"heads={heads} must divide memory_dim={memory_dim}.")
        self.heads = heads
        self.query = nn.Linear(memory_dim, memory_dim)
        self.key = nn.Linear(message_dim, memory_dim, bias=False)  # a bias would cancel in the softmax
        self.value = nn.Linear(message_dim, memory_dim)
        self.cell = nn.GRUCell(memory_dim, memory_dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, memory: Tensor, messages: Tensor, mask: Tensor) -> Tensor:
        """Return new memories `[u, d]` from old ones, messages `[u, slots, m]` and which of them exist."""
        u, slots, _ = messages.shape
        query = self.query(memory).view(u, self.heads, 1, -1)
        key = self.key(messages).view(u, slots, self.heads, -1).transpose(1, 2)
        value = self.value(messages).view(u, slots, self.heads, -1).transpose(1, 2)
        score = (query * key).sum(-1) / key.shape[-1] ** 0.5  # [u, heads, slots]
        score = score.masked_fill(~mask.unsqueeze(1), torch.finfo(score.dtype).min)
        weight = self.dropout(score.softmax(-1))
        read = (weight.unsqueeze(-1) * value).sum(2).reshape(u, -1)
        updated: Tensor = self.cell(read, memory)
        return updated
