"""Muon: matrices move by orthogonal steps, all of them made at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

LEAST = 16  # rows and columns of what moves as a matrix
ITERATIONS = ((3.4445, -4.7750, 2.0315),) * 5  # of Newton and Schulz, as tuned by Jordan et al. (2024)


class Block(NamedTuple):
    """A matrix that a weight holds: all of it, or some rows, as one gate of a recurrent cell."""

    weight: nn.Parameter
    rows: slice

    def of(self, values: Tensor) -> Tensor:
        """Return its part of values like the weight, lying so that it is not higher than wide."""
        part = values[self.rows]
        return part if part.shape[0] <= part.shape[1] else part.T


class Muon(torch.optim.Optimizer):
    """Moves each matrix by the nearest orthogonal one to its momentum, and everything else as Adam does.

    All directions of a matrix then move equally far (Jordan et al., 2024): few large steps come as far as
    many small ones. A step costs a few products of small matrices, so it pays from some hundred events on.
    The gates of recurrent cells are matrices of their own; tables of which a step reads some rows are none.

    Args:
        model: Whose weights are moved, those that learn.
        lr: Learning rate, as for Adam.
        momentum: Share of the old in a matrix's momentum.
        length: Root mean square of a matrix's step, by the learning rate.
        betas: Decay of Adam's two moments.
        eps: Against division by zero.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float,
        momentum: float = 0.95,
        length: float = 0.4,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        # The last two tell `load_state_dict` that Adam's count of steps belongs on the weights' device.
        defaults = {"momentum": momentum, "length": length, "betas": betas, "eps": eps}
        super().__init__(
            [p for p in model.parameters() if p.requires_grad],
            {"lr": lr, **defaults, "fused": True, "capturable": False},
        )
        self.blocks = list(_blocks(model))
        self._matrices = list({id(block.weight): block.weight for block in self.blocks}.values())
        whole = {id(weight) for weight in self._matrices}
        self._rest = [p for p in self.param_groups[0]["params"] if id(p) not in whole]

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Move every weight that has a gradient once."""
        loss = None if closure is None else closure()
        (group,) = self.param_groups
        self._step_as_adam([weight for weight in self._rest if weight.grad is not None])
        moves = {}
        for weight in self._matrices:
            if weight.grad is not None:
                state = self.state[weight]
                if not state:
                    state["momentum"] = torch.zeros_like(weight)
                state["momentum"].lerp_(weight.grad, 1 - group["momentum"])
                moves[id(weight)] = weight.grad.lerp(state["momentum"], group["momentum"])
        blocks = [block for block in self.blocks if id(block.weight) in moves]
        made = orthogonal([block.of(moves[id(block.weight)]) for block in blocks])
        for block, move in zip(blocks, made, strict=True):
            length = group["length"] * math.sqrt(move.shape[1])
            block.of(block.weight).sub_(move, alpha=group["lr"] * length)
        return loss

    def _step_as_adam(self, weights: Sequence[nn.Parameter]) -> None:
        (group,) = self.param_groups
        for weight in weights:
            if not self.state[weight]:
                for name in ("exp_avg", "exp_avg_sq"):
                    self.state[weight][name] = torch.zeros_like(weight)
                self.state[weight]["step"] = torch.zeros((), device=weight.device)
        if not weights:
            return
        adam(
            list(weights),
            [weight.grad for weight in weights if weight.grad is not None],
            [self.state[weight]["exp_avg"] for weight in weights],
            [self.state[weight]["exp_avg_sq"] for weight in weights],
            [],
            [self.state[weight]["step"] for weight in weights],
            fused=True,
            amsgrad=False,
            beta1=group["betas"][0],
            beta2=group["betas"][1],
            lr=group["lr"],
            weight_decay=0.0,
            eps=group["eps"],
            maximize=False,
        )


def _blocks(model: nn.Module) -> Iterable[Block]:
    """Yield the matrices among a model's weights that learn."""
    tables = {id(part.weight) for part in model.modules() if isinstance(part, nn.Embedding)}
    cells = [part for part in model.modules() if isinstance(part, nn.RNNCellBase)]
    gates = {id(p): p.shape[0] // cell.hidden_size for cell in cells for p in cell.parameters()}
    for weight in model.parameters():
        if not weight.requires_grad or weight.ndim != 2 or id(weight) in tables:
            continue
        count = gates.get(id(weight), 1)
        height = weight.shape[0] // count
        if min(height, weight.shape[1]) >= LEAST:
            for gate in range(count):
                yield Block(weight, slice(gate * height, (gate + 1) * height))


def orthogonal(matrices: Sequence[Tensor]) -> list[Tensor]:
    """Return of each matrix `[m, n]`, ``m <= n``, one with the same directions, which are about equally long.

    What an iteration does to a matrix it does to the inner products of its rows as well, which are fewer: so
    it is found what all iterations come to from those alone, for all matrices of the same height together.
    """
    found: dict[int, Tensor] = {}
    for height in {len(matrix) for matrix in matrices}:
        those = [i for i, matrix in enumerate(matrices) if len(matrix) == height]
        factors = _factors(torch.stack([matrices[i] @ matrices[i].T for i in those]))
        for i, factor in zip(those, factors, strict=True):
            found[i] = factor @ matrices[i]
    return [found[i] for i in range(len(matrices))]


def _factors(products: Tensor) -> Tensor:
    """Return what matrices are to be multiplied by, from the inner products `[k, m, m]` of their rows."""
    size = products.diagonal(dim1=1, dim2=2).sum(1).clamp(min=torch.finfo(products.dtype).tiny).view(-1, 1, 1)
    products = products / size
    factors = None
    for i, (a, b, c) in enumerate(ITERATIONS):
        polynomial = torch.baddbmm(products, products, products, beta=b, alpha=c)
        polynomial.diagonal(dim1=1, dim2=2).add_(a)
        factors = polynomial if factors is None else polynomial @ factors
        if i + 1 < len(ITERATIONS):
            products = polynomial @ products @ polynomial
    assert factors is not None
    return factors * size.rsqrt()
