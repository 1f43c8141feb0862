"""Memories into embeddings at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from pres.errors import OptionError
from pres.nn.attention import LinearAttention
from pres.nn.encoding import EdgeFeatures, TimeEncoding
from pres.nn.ops import Asked, Picked, Ranking, Slots, ranking, rows


@dataclass(frozen=True, eq=False)
class Hop:
    """The neighbours of some queries; ``node`` counts within the distinct nodes at hand."""

    node: Tensor  # [s]
    event: Tensor  # [s]
    age: Tensor  # [s] the query's time minus the event's
    slots: Slots  # which of them are whose
    events_known: list[Picked] = field(
        default_factory=list
    )  # what `Embedding.prepare` made of events and ages


class Embedding(nn.Module):
    """What turns the memory of nodes into embeddings at a time."""

    hops = 0  # of neighbours that it looks at
    dim: int

    def prepare(self, hops: list[Hop], dtype: torch.dtype) -> list[Hop]:
        """Return hops with what can be known of their events before the weights are."""
        return hops


class _Known(NamedTuple):
    """Rows of a table that roots or slots have: some of them the same one."""

    table: Tensor  # [m, d]
    place: Tensor | None = None  # [n] None: each its own
    ranked: Ranking | None = None  # of the places, where that is known


class IdentityEmbedding(Embedding):
    """``h = s``: the memory as it is, whenever it is asked for."""

    def __init__(self, memory_dim: int) -> None:
        super().__init__()
        self.dim, self.widths = memory_dim, {"memory": memory_dim}

    def forward(self, memory: Tensor, roots: Tensor, since_event: Tensor, hops: Sequence[Hop]) -> Tensor:
        """Return embeddings `[r, dim]` of memories `[u, dim]`; roots `[r]` are positions among them."""
        return rows(memory, roots)


class TimeProjection(Embedding):
    """``h = (1 + Δt w) ∘ s``: the memory carried on to the query's time, as in JODIE.

    ``Δt`` is the time since the node's last event in units of ``unit``, as ``log(1 + Δt)``: gaps span many
    orders of magnitude, and a few huge ones would otherwise blow the embedding up.

    Args:
        memory_dim: Size of a memory.
        unit: What the time is counted in.
        norm: Whether memories are normalised first, as TGL does.
    """

    def __init__(self, memory_dim: int, unit: float, norm: bool = False) -> None:
        super().__init__()
        self.dim, self.unit, self.widths = memory_dim, unit, {"memory": memory_dim}
        self.norm = nn.LayerNorm(memory_dim) if norm else None
        self.weight = nn.Parameter(torch.randn(memory_dim) / memory_dim**0.5)

    def forward(self, memory: Tensor, roots: Tensor, since_event: Tensor, hops: Sequence[Hop]) -> Tensor:
        """Return embeddings `[r, dim]` of memories `[u, dim]`; roots `[r]` are positions among them."""
        memory = memory if self.norm is None else self.norm(memory)
        elapsed = (since_event / self.unit).clamp(min=0).log1p().to(memory.dtype)
        return rows(memory, roots) * (1 + elapsed.unsqueeze(1) * self.weight)


class TemporalAttention(Embedding):
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
        self.dim, self.hops, self.widths = dim, layers, {"memory": memory_dim}
        self.features, self.time = features, time
        sizes = [memory_dim] + [dim] * (layers - 1)
        row_dim = features.dim + time.dim
        self.layers = nn.ModuleList(
            _AttentionLayer(size, row_dim, time.dim, dim, heads, dropout) for size in sizes
        )

    def prepare(self, hops: list[Hop], dtype: torch.dtype) -> list[Hop]:
        """Return hops with the features and the encoded ages of their events, unless weights make these."""
        if any(weight.requires_grad for part in (self.features, self.time) for weight in part.parameters()):
            return hops
        with torch.no_grad():
            return [replace(hop, events_known=self._of_events(hop, dtype)) for hop in hops]

    def forward(self, memory: Tensor, roots: Tensor, since_event: Tensor, hops: Sequence[Hop]) -> Tensor:
        """Return embeddings `[r, dim]` of memories `[u, dim]` at roots `[r]` and their neighbours.

        ``hops[0]`` holds the neighbours of the roots, ``hops[1]`` those of each filled slot of ``hops[0]``, …
        """
        of_events = [hop.events_known or self._of_events(hop, memory.dtype) for hop in hops]
        now = self.time(torch.zeros(1, dtype=memory.dtype, device=memory.device))
        asking = ranking(roots)
        of_roots = _Known(rows(memory, asking.values), asking.place, asking.of_places())
        known = [of_roots, *(_Known(memory, hop.node) for hop in hops)]
        for layer in self.layers:
            found = []
            for i, hop in enumerate(hops[: len(known) - 1]):
                own, read = known[i], known[i + 1]
                neighbours = Picked(read.table, read.place, read.ranked)
                asked = Asked(hop.slots, own.place, own.ranked)
                found.append(_Known(layer(own.table, now, [neighbours, *of_events[i]], asked)))
            known = found
        return known[0].table

    def _of_events(self, hop: Hop, dtype: torch.dtype) -> list[Picked]:
        """Return what neighbours `[s]` are known by beside their memory: the event's features and age."""
        age = Picked(self.time(hop.age))
        if not self.features.dim:
            return [age]
        events = ranking(hop.event)
        return [Picked(self.features(events.values, dtype), events.place, events.of_places()), age]


class _AttentionLayer(LinearAttention):
    def __init__(self, dim_in: int, row_dim: int, time: int, dim: int, heads: int, dropout: float) -> None:
        super().__init__(dim_in + time, dim_in + row_dim, dim, heads, dropout)
        self.out = nn.Linear(dim + dim_in, dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, own: Tensor, now: Tensor, neighbours: Sequence[Picked], asked: Asked) -> Tensor:
        """Return `[q, dim]` from the askers' own embeddings `[m, d]` and what is known of neighbours."""
        of_own, of_time = torch.split(self.query.weight, [own.shape[1], now.shape[1]], dim=1)
        query = linear(own, of_own, linear(now, of_time, self.query.bias).squeeze(0))
        read = self.read(query, neighbours, asked)
        of_read, of_own = torch.split(self.out.weight, [read.shape[1], own.shape[1]], dim=1)
        merged = linear(read, of_read, self.out.bias) + asked.of_each(linear(own, of_own))
        result: Tensor = self.dropout(self.norm(torch.relu(merged)))
        return result
