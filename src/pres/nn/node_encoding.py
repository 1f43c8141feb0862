"""Who a node is, apart from what happened to it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.nn.allocation import lengthened
from pres.nn.ops import rows
from pres.sampling.rng import uniform


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
        self.register_buffer("table", torch.empty(num_nodes, dim), persistent=False)
        self.table: Tensor
        self._draw(0)

    def grow(self, events: EventStream) -> None:
        """Draw the encodings of a stream's new nodes: those that they would have had from the beginning."""
        known = len(self.table)
        self.table = lengthened(self.table, events.num_nodes - known)
        self._draw(known)

    def _draw(self, first: int) -> None:
        """Draw the encodings of all nodes from the first on, of mean 0 and variance 1."""
        column = torch.arange(self.dim)
        for node in torch.split(
            torch.arange(first, len(self.table)), 1 << 18
        ):  # drawn in 64 bits, kept in 32
            drawn = (12**0.5 * (uniform(0, node.unsqueeze(1), column) - 0.5)).float()
            self.table[node] = drawn.to(self.table)

    def forward(self, nodes: Tensor) -> Tensor:
        """Return the encodings `[..., dim]` of nodes `[...]`."""
        return rows(self.table, nodes)
