"""PyG's own TGN as a contestant: `TGNMemory` and `TransformerConv`, trained by a loop over its public API."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy
from torch_geometric.nn import TGNMemory, TransformerConv
from torch_geometric.nn.models.tgn import IdentityMessage, LastAggregator, LastNeighborLoader

from pres.data.incidence import distinct
from pres.data.stream import EventStream


class PyGTrainer:
    """Trains TGN with PyG on the first part of a stream, an epoch at a time.

    Args:
        events: The training events; they must have numeric features.
        batch_size: Events per batch, for memory and weights.
        dim: Size of memory, time encoding and embedding.
        neighbours: Most recent neighbours per node.
    """

    def __init__(self, events: EventStream, batch_size: int, dim: int = 100, neighbours: int = 10) -> None:
        assert events.x is not None
        self.events, self.batch_size = events, batch_size
        self.t, self.x = events.t.long(), events.x
        features = self.x.shape[1]
        self.memory = TGNMemory(
            events.num_nodes,
            features,
            dim,
            dim,
            message_module=IdentityMessage(features, dim, dim),
            aggregator_module=LastAggregator(),
        )
        self.attention = TransformerConv(dim, dim // 2, heads=2, dropout=0.1, edge_dim=features + dim)
        self.src, self.dst, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 1)
        self.neighbours = LastNeighborLoader(events.num_nodes, size=neighbours)
        self.place = torch.empty(events.num_nodes, dtype=torch.int64)
        parts = (self.memory, self.attention, self.src, self.dst, self.out)
        self.optimiser = torch.optim.Adam([p for part in parts for p in part.parameters()], lr=1e-3)

    def train_epoch(self, negatives: Tensor) -> float:
        """Train on every event once, against ``negatives`` `[n]`; return the mean loss."""
        self.memory.train()
        self.memory.reset_state()
        self.neighbours.reset_state()
        total = 0.0
        for start in range(0, len(self.events), self.batch_size):
            some = slice(start, min(start + self.batch_size, len(self.events)))
            total += (some.stop - some.start) * self.train_batch(some, negatives[some])
        return total / len(self.events)

    def train_batch(self, some: slice, negatives: Tensor) -> float:
        src, dst, t, x = self.events.src[some], self.events.dst[some], self.t[some], self.x[some]
        self.optimiser.zero_grad()
        nodes, edges, seen = self.neighbours(distinct(torch.cat([src, dst, negatives])))
        self.place[nodes] = torch.arange(len(nodes))
        memory, last_update = self.memory(nodes)
        age = self.memory.time_enc((last_update[edges[0]] - self.t[seen]).to(memory.dtype))
        h = self.attention(memory, edges, torch.cat([age, self.x[seen]], dim=-1))
        source = self.src(h[self.place[src]])
        positive = self.out((source + self.dst(h[self.place[dst]])).relu())
        negative = self.out((source + self.dst(h[self.place[negatives]])).relu())
        loss = cross_entropy(positive, torch.ones_like(positive))
        loss = loss + cross_entropy(negative, torch.zeros_like(negative))
        self.memory.update_state(src, dst, t, x)
        self.neighbours.insert(src, dst)
        torch.autograd.backward(loss)
        self.optimiser.step()
        self.memory.detach()
        return float(loss.detach())
