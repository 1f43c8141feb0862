"""Trackers: the mean and variance of the transitions of each node, from three running sums (Eq. 8)."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from pres.data.incidence import distinct
from pres.nn.allocation import lengthened


class Trackers(nn.Module):
    """``n``, ``ξ = Σδ`` and ``ψ = Σδ²`` for every node and component.

    With anchors only those have trackers of their own; all other nodes share the last row. A node beyond
    those known (``num_nodes``) has the last row too; without anchors nobody writes there.

    Args:
        num_nodes: Number of nodes.
        dim: Size of a memory.
        components: Components of the mixture.
        anchors: The nodes `[a]` with trackers of their own, distinct; None for all.
        discount: What the sums of a row are multiplied with before it takes in more.
    """

    def __init__(
        self,
        num_nodes: int,
        dim: int,
        components: int,
        anchors: Tensor | None = None,
        discount: float = 1.0,
    ) -> None:
        super().__init__()
        self.discount = discount
        rows = (num_nodes if anchors is None else len(anchors)) + 1
        self.register_buffer("anchors", None if anchors is None else torch.sort(anchors).values)
        self.register_buffer("n", torch.zeros(components, rows))
        self.register_buffer("total", torch.zeros(components, rows, dim))
        self.register_buffer("squares", torch.zeros(components, rows, dim))
        self.anchors: Tensor | None
        self.n: Tensor
        self.total: Tensor
        self.squares: Tensor

    def reset(self) -> None:
        """Forget every transition."""
        for buffer in (self.n, self.total, self.squares):
            buffer.zero_()

    def make_room(self, num_nodes: int) -> None:
        """Make room for so many nodes in all; with anchors new ones share the last row."""
        if self.anchors is None:  # nobody writes to the last row: it becomes that of the first new node
            self.n, self.total, self.squares = (
                lengthened(sums, num_nodes + 1 - sums.shape[1], dim=1)
                for sums in (self.n, self.total, self.squares)
            )

    def kept(self, nodes: Tensor) -> Callable[[], None]:
        """Return what puts the sums of some nodes back as they are."""
        rows = distinct(self._rows(nodes))
        before = [sums.index_select(1, rows) for sums in (self.n, self.total, self.squares)]

        def put_back() -> None:
            for sums, those in zip((self.n, self.total, self.squares), before, strict=True):
                sums.index_copy_(1, rows, those)

        return put_back

    @torch.no_grad()
    def observe(self, nodes: Tensor, delta: Tensor, component: int) -> None:
        """Take in one transition `[u, d]` of each of the nodes `[u]`, which may repeat."""
        rows = self._rows(nodes)
        delta = delta.detach().to(self.total.dtype)
        if self.discount < 1:  # of all components; once for each row, however often it stands here
            for sums in (self.n, self.total, self.squares):
                sums.index_copy_(1, rows, self.discount * sums.index_select(1, rows))
        self.n[component].index_add_(0, rows, torch.ones_like(rows, dtype=self.n.dtype))
        self.total[component].index_add_(0, rows, delta)
        self.squares[component].index_add_(0, rows, delta.square())

    def mean(self, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """Return the mean transition `[u, d]` of nodes `[u]`, or 0, and of how many it is the mean `[u]`.

        Components are weighted by their shares of the observations: it is the mean of all of them together.
        """
        rows = self._rows(nodes)
        observations = self.n.index_select(1, rows).sum(0)
        return _pooled(self.total, rows, observations), observations

    def variance(self, nodes: Tensor) -> Tensor:
        """Return the variance `[u, d]` of the transitions of each of the nodes, all components together."""
        rows = self._rows(nodes)
        observations = self.n.index_select(1, rows).sum(0)
        square, mean = (_pooled(sums, rows, observations) for sums in (self.squares, self.total))
        return (square - mean.square()).clamp(min=0)

    def tracked_share(self) -> float:
        """Return the share of nodes, or of anchors, with at least one observation."""
        return float((self.n.sum(0)[:-1] > 0).double().mean())

    def _rows(self, nodes: Tensor) -> Tensor:
        last = self.n.shape[1] - 1
        if self.anchors is None:
            return nodes.clamp(max=last)
        place = torch.searchsorted(self.anchors, nodes).clamp_(max=last - 1)
        return torch.where(self.anchors[place] == nodes, place, last)


def _pooled(sums: Tensor, rows: Tensor, observations: Tensor) -> Tensor:
    """Return some rows of sums `[components, rows, d]`, all components together, per observation `[u]`."""
    parts = [of_one.index_select(0, rows) for of_one in sums]
    pooled: Tensor = sum(parts[1:], parts[0])
    return pooled.mul_(1 / observations.clamp(min=1).unsqueeze(1))
