"""Edge features looked up by event."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.nn.ops import rows


class EdgeFeatures(nn.Module):
    """The features of events: numeric ones standardised, categorical ones as learned embeddings.

    Mean and standard deviation are those of the training part, so that amounts in cents serve as well as
    amounts in millions.

    Args:
        events: The stream whose features these are.
        category_dim: Size of the embedding of each categorical feature.
    """

    def __init__(self, events: EventStream, category_dim: int = 16) -> None:
        super().__init__()
        self.register_buffer("x", events.x, persistent=False)
        self.register_buffer("categories", events.categories, persistent=False)
        self.x: Tensor | None
        if events.x is not None:
            train = events.split().train.x
            assert train is not None
            spread = train.std(dim=0, correction=0)
            self.register_buffer("mean", train.mean(dim=0))
            self.register_buffer("spread", torch.where(spread > 0, spread, torch.ones_like(spread)))
        self.mean: Tensor
        self.spread: Tensor
        self.categories: Tensor | None
        self.numeric_dim = 0 if events.x is None else events.x.shape[1]
        sizes = events.num_categories if events.categories is not None else ()
        self.embeddings = nn.ModuleList(nn.Embedding(size, category_dim) for size in sizes)
        self.embedded_dim = category_dim * len(sizes)
        self.dim = self.numeric_dim + self.embedded_dim

    def grow(self, events: EventStream) -> None:
        """Look features up in a stream that has grown; they are standardised as before."""
        if self.x is not None and events.x is not None:
            self.x = events.x.to(self.x)
        if self.categories is not None:
            self.categories = events.categories

    def numeric(self, events: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the numeric features `[..., numeric_dim]` of events `[...]`."""
        if self.x is None:
            return torch.empty(*events.shape, 0, dtype=dtype, device=events.device)
        return rows(self.x, events).sub_(self.mean).div_(self.spread).to(dtype)

    def embedded(self, events: Tensor, dtype: torch.dtype) -> Tensor:
        """Return the embedded categories `[..., embedded_dim]` of events `[...]`."""
        if self.categories is None:
            return torch.empty(*events.shape, 0, dtype=dtype, device=events.device)
        indices = self.categories[events]
        return torch.cat([embed(indices[..., i]) for i, embed in enumerate(self.embeddings)], dim=-1)

    def forward(self, events: Tensor, dtype: torch.dtype) -> Tensor:
        """Return all features `[..., dim]` of events `[...]`."""
        return torch.cat([self.numeric(events, dtype), self.embedded(events, dtype)], dim=-1)
