"""Who a node is, apart from what happened to it."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pres.errors import OptionError
from pres.nn.gather import rows
from pres.sampling.counter_random import uniform


class NodeCodes(nn.Module):
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
            raise OptionError(f"codes={dim}: a code has a size of 0 or more.")
        self.dim = dim
        node, column = torch.arange(num_nodes).unsqueeze(1), torch.arange(dim)
        spread = 12**0.5 * (uniform(0, node, column) - 0.5) if dim else torch.empty(num_nodes, 0)
        self.register_buffer("table", spread.float(), persistent=False)  # of mean 0 and variance 1
        self.table: Tensor

    def forward(self, nodes: Tensor) -> Tensor:
        """Return the codes `[..., dim]` of nodes `[...]`."""
        return rows(self.table, nodes)
