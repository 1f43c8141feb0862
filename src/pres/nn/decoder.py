"""Embeddings into predictions."""

from __future__ import annotations

import torch
from torch import Tensor, nn

LIMIT = 10.0  # standard deviations


class LinkDecoder(nn.Module):
    """Scores pairs of nodes: higher, the likelier an event between them."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.src, self.dst, self.out = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, 1)

    def forward(self, src: Tensor, dst: Tensor) -> Tensor:
        """Return logits `[...]` of sources and destinations `[..., dim]` (broadcast against each other)."""
        return self.join(self.src(src), self.dst(dst))

    def in_rows(self, h: Tensor, b: int, k: int) -> Tensor:
        """Return logits `[b, k]` of sources with the ``k`` that each meets.

        ``h`` `[b + b k, dim]` are the sources' embeddings, then row by row those of whom they meet.
        """
        src, dst = torch.split(h, [b, b * k])  # one gradient, where two slices have a gradient each
        return self.join(self.src(src).unsqueeze(1), self.dst(dst).view(b, k, -1))

    def join(self, of_src: Tensor, of_dst: Tensor) -> Tensor:
        """Return logits `[...]` of what ``src`` and ``dst`` made of embeddings, each of them once."""
        hidden = (of_src + of_dst).relu_()
        with torch.autocast(hidden.device.type, enabled=False):  # rounded scores would tie
            score: Tensor = self.out(hidden.to(self.out.weight.dtype)).squeeze(-1)
        return score


class NodeDecoder(nn.Module):
    """Scores the classes a node may be in, by one hidden layer over its standardised embedding.

    What lies more than `LIMIT` standard deviations off counts as that far: a stream drifts, and a value that
    training never came near would drown all others.

    Args:
        dim: Size of an embedding, or of whatever else is read with it.
        classes: Number of classes.
        hidden: Size of the hidden layer.
        dropout: Of the hidden layer.
    """

    def __init__(self, dim: int, classes: int = 2, hidden: int = 80, dropout: float = 0.1) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("spread", torch.ones(dim))
        self.mean: Tensor
        self.spread: Tensor
        self.hidden, self.dropout = nn.Linear(dim, hidden), nn.Dropout(dropout)
        self.out = nn.Linear(hidden, classes)

    def standardise_by(self, h: Tensor) -> None:
        """Take from embeddings `[n, dim]` the mean and standard deviation that all are standardised by."""
        mean, spread = h.double().mean(dim=0), h.double().std(dim=0, correction=0)
        varies = spread > 1e-6 * mean.abs() + 1e-30  # what is below is rounding, and would be blown up
        self.mean.copy_(mean)
        self.spread.copy_(torch.where(varies, spread, torch.ones_like(spread)))

    def forward(self, h: Tensor) -> Tensor:
        """Return logits `[..., classes]` of embeddings `[..., dim]`."""
        standardised = ((h - self.mean) / self.spread).clamp(-LIMIT, LIMIT)
        logits: Tensor = self.out(self.dropout(torch.relu(self.hidden(standardised))))
        return logits
