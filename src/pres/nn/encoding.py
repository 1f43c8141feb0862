"""What is known beside memory, as vectors: features of events, time differences, and who a node is."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.nn.allocation import lengthened
from pres.nn.ops import rows
from pres.sampling.rng import uniform


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
        numeric = self.numeric(events, dtype)
        return torch.cat([numeric, self.embedded(events, dtype)], dim=-1) if self.embedded_dim else numeric


class TimeEncoding(nn.Module):
    """Encodes time differences by cosines of many frequencies, from fast to slow.

    Differences beyond ``limit``, in units of ``scale``, count as that long. It is part of the state; training
    sets it, see `limit_times`.

    The frequencies are fixed unless ``learned``. The derivative of ``cos(w Δt)`` by ``w`` is as large as
    ``Δt``, and one ordinary step of an optimiser moves a slow frequency by many times its size: learned
    encodings soon lose everything slow.

    Args:
        dim: Number of frequencies.
        scale: What to divide differences by first, so that the encoding does not depend on the
            unit of time. Frequencies then reach from 1 down to 1e-9.
        learned: Whether frequencies and phases are parameters.
    """

    def __init__(self, dim: int, scale: float = 1.0, learned: bool = False) -> None:
        super().__init__()
        self.dim, self.scale = dim, scale
        self.frequency = nn.Parameter(10.0 ** -torch.linspace(0, 9, dim), requires_grad=learned)
        self.phase = nn.Parameter(torch.zeros(dim), requires_grad=learned)
        self.register_buffer("limit", torch.tensor(math.inf))
        self.limit: Tensor

    def forward(self, difference: Tensor) -> Tensor:
        """Return `[..., dim]` for differences `[...]` of any number type."""
        scaled = (difference / self.scale).to(self.frequency.dtype).clamp(max=self.limit)
        return torch.cos(torch.addcmul(self.phase, scaled.unsqueeze(-1), self.frequency))


def limit_times(model: nn.Module, longest: float) -> None:
    """Let all time differences beyond ``longest`` count as that long wherever a model encodes them."""
    for part in model.modules():
        if isinstance(part, TimeEncoding):
            part.limit.fill_(longest / part.scale)


class NodeEncoding(nn.Module):
    """A fixed random vector per node: the static embedding of JODIE without weights to train or to keep.

    That is, one-hot identities times a random matrix. A memory that starts from zeros must otherwise find out
    who is who by itself; what it finds differs from epoch to epoch, and the rest of the model learns it anew.

    Args:
        num_nodes: Number of nodes.
        dim: Size of a code; 0 for none.
    """

    def __init__(self, num_nodes: int, dim: int) -> None:
        super().__init__()
        if dim < 0:
            raise OptionError(f"node_encoding_dim={dim}: an encoding has a size of 0 or more.")
        self.dim = dim
        self.register_buffer("table", _encodings(0, num_nodes, dim), persistent=False)
        self.table: Tensor

    def grow(self, events: EventStream) -> None:
        """Draw the encodings of a stream's new nodes: those that they would have had from the beginning."""
        known = len(self.table)
        if known == events.num_nodes:
            return
        new = _encodings(known, events.num_nodes, self.dim).to(self.table)
        self.table = lengthened(self.table, len(new))
        self.table[known:] = new

    def forward(self, nodes: Tensor) -> Tensor:
        """Return the encodings `[..., dim]` of nodes `[...]`."""
        return rows(self.table, nodes)


def _encodings(first: int, stop: int, dim: int) -> Tensor:
    """Return the encodings of nodes from the first on, of mean 0 and variance 1."""
    table, column = torch.empty(stop - first, dim), torch.arange(dim)
    for node in torch.split(torch.arange(first, stop), 1 << 18):  # in parts: drawn in 64 bits, kept in 32
        table[node - first] = (12**0.5 * (uniform(0, node.unsqueeze(1), column) - 0.5)).float()
    return table
