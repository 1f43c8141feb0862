"""Memories into embeddings at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from pres.errors import OptionError
from pres.nn.features import EdgeFeatures
from pres.nn.gather import rows
from pres.nn.time_encoding import TimeEncoding


@dataclass(frozen=True, eq=False)
class Hop:
    """The neighbours of some queries, each ``[q, k]``; ``node`` counts within the distinct nodes at hand."""

    node: Tensor
    event: Tensor
    age: Tensor  # the query's time minus the event's
    mask: Tensor


class IdentityEmbedding(nn.Module):
    """``h = s``: the memory as it is, whenever it is asked for."""

    hops = 0

    def __init__(self, memory_dim: int) -> None:
        super().__init__()
        self.dim = memory_dim

    def forward(self, memory: Tensor, roots: Tensor, since_event: Tensor, hops: Sequence[Hop]) -> Tensor:
        """Return embeddings `[r, dim]` of memories `[u, dim]`; roots `[r]` are positions among them."""
        return rows(memory, roots)


class TimeProjection(nn.Module):
    """``h = (1 + Δt w) ∘ s``: the memory carried on to the query's time, as in JODIE.

    ``Δt`` is the time since the node's last event in units of ``unit``, as ``log(1 + Δt)``: gaps span many
    orders of magnitude, and a few huge ones would otherwise blow the embedding up.
    """

    hops = 0

    def __init__(self, memory_dim: int, unit: float) -> None:
        super().__init__()
        self.dim, self.unit = memory_dim, unit
        self.weight = nn.Parameter(torch.randn(memory_dim) / memory_dim**0.5)

    def forward(self, memory: Tensor, roots: Tensor, since_event: Tensor, hops: Sequence[Hop]) -> Tensor:
        """Return embeddings `[r, dim]` of memories `[u, dim]`; roots `[r]` are positions among them."""
        elapsed = (since_event / self.unit).clamp(min=0).log1p().to(memory.dtype)
        return rows(memory, roots) * (1 + elapsed.unsqueeze(1) * self.weight)


class TemporalAttention(nn.Module):
    """Attention over temporal neighbours, layer upon layer: the embedding of TGN.

    Args:
        memory_dim: Size of a memory.
        features: The events' features.
        time: Encoding of time differences.
        dim: Size of the embedding.
        layers: Number of layers, one hop each.
        heads: Attention heads.
        dropout: Of attention weights and of the result.
    """

    def __init__(
        self,
        memory_dim: int,
        features: EdgeFeatures,
        time: TimeEncoding,
        dim: int = 100,
        layers: int = 1,
        heads: int = 2,
        dropout: float = 0.1,
    ) -> None:
        super().__init__()
        if layers < 1 or heads < 1 or dim % heads:
            raise OptionError(
                f"layers={layers}, heads={heads}: at least one each, and heads must divide {dim}."
            )
        self.dim, self.hops = dim, layers
        self.features, self.time = features, time
        sizes = [memory_dim] + [dim] * (layers - 1)
        self.layers = nn.ModuleList(
            _AttentionLayer(size, features.dim, time.dim, dim, heads, dropout) for size in sizes
        )

    def forward(self, memory: Tensor, roots: Tensor, since_event: Tensor, hops: Sequence[Hop]) -> Tensor:
        """Return embeddings `[r, dim]` of memories `[u, dim]` at roots `[r]` and their neighbours.

        ``hops[0]`` holds the neighbours of the roots, ``hops[1]`` those of each slot of ``hops[0]``, …
        """
        known = [rows(memory, places) for places in (roots, *(hop.node.flatten() for hop in hops))]
        edges = [self.features(hop.event, memory.dtype) for hop in hops]
        times = [self.time(hop.age) for hop in hops]
        now = self.time(torch.zeros(1, dtype=memory.dtype, device=memory.device))
        for layer in self.layers:
            known = [
                layer(
                    known[i],
                    now,
                    torch.cat([known[i + 1].view(*hop.node.shape, -1), edges[i], times[i]], dim=-1),
                    hop.mask,
                )
                for i, hop in enumerate(hops[: len(known) - 1])
            ]
        return known[0]


class _AttentionLayer(nn.Module):
    def __init__(self, dim_in: int, edge: int, time: int, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(dim_in + time, dim)
        self.key = nn.Linear(dim_in + edge + time, dim, bias=False)  # a bias would cancel in the softmax
        self.value = nn.Linear(dim_in + edge + time, dim)
        self.out = nn.Linear(dim_in + dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.dropout = nn.Dropout(dropout)

    def forward(self, own: Tensor, now: Tensor, neighbours: Tensor, mask: Tensor) -> Tensor:
        """Return `[q, dim]` from own embeddings `[q, d]` and neighbours `[q, k, d + edge + time]`."""
        q, k = mask.shape
        query = self.query(torch.cat([own, now.expand(q, -1)], dim=-1)).view(q, self.heads, 1, -1)
        key = self.key(neighbours).view(q, k, self.heads, -1).transpose(1, 2)
        value = self.value(neighbours).view(q, k, self.heads, -1).transpose(1, 2)
        score = (query * key).sum(-1) / key.shape[-1] ** 0.5  # [q, heads, k]
        score = score.masked_fill(~mask.unsqueeze(1), torch.finfo(score.dtype).min)
        weight = score.softmax(-1).masked_fill(~mask.unsqueeze(1), 0)  # a node without neighbours reads 0
        read = (self.dropout(weight).unsqueeze(-1) * value).sum(2).reshape(q, -1)
        result: Tensor = self.dropout(self.norm(torch.relu(self.out(torch.cat([read, own], dim=-1)))))
        return result
