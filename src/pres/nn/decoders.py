"""Embeddings into predictions."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class LinkDecoder(nn.Module):
    """Scores pairs of nodes: higher, the likelier an event between them."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.src, self.dst, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 1)

    def forward(self, src: Tensor, dst: Tensor) -> Tensor:
        """Return logits `[...]` of sources and destinations `[..., dim]` (broadcast against each other)."""
        score: Tensor = self.out(torch.relu(self.src(src) + self.dst(dst))).squeeze(-1)
        return score
