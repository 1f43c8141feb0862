"""Muon: matrices move by orthogonal steps, all of them made at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

LEAST = 16  # rows and columns of what moves as a matrix
# Odd polynomials of degree 5, one after another: of all there are, these bring lengths from 0.01 to 1 nearest
# to 1, each by what the one before has left of them (as Amsel et al., 2025): here to within 0.27.
ITERATIONS = ((8.0934, -23.6204, 17.4462), (3.6366, -2.7219, 0.5365), (2.6613, -1.9772, 0.4526))


class Matrix(NamedTuple):
    """What moves as one matrix: a weight, or what a gate of a recurrent cell has for input and state."""

    parts: list[
        tuple[Tensor, tuple[slice, slice]]
    ]  # weights, their rows and columns; they stand side by side

    def of(self, values: Mapping[Tensor, Tensor]) -> Tensor:
        """Return it of values like the weights, lying so that it is not higher than wide."""
        whole = torch.cat([values[weight][where] for weight, where in self.parts], dim=1)
        return whole if whole.shape[0] <= whole.shape[1] else whole.T

    def move(self, move: Tensor, length: float) -> None:
        """Let the weights go so far against ``move``, which lies as `of` has it."""
        own = [weight[where] for weight, where in self.parts]
        high = own[0].shape[0] != move.shape[0]
        moves = torch.split(move.T if high else move, [part.shape[1] for part in own], dim=1)
        for part, of_part in zip(own, moves, strict=True):
            part.sub_(of_part, alpha=length)


class Muon(torch.optim.Adam):
    """Moves each matrix by the nearest orthogonal one to its momentum, and everything else as Adam does.

    All directions of a matrix then move equally far (Jordan et al., 2024): few large steps come as far as
    many small ones. Each gate of a recurrent cell is a matrix of its own; tables of which a step reads some
    rows are none. `torch.optim.Muon` has neither gates nor columns that stay, and iterates one polynomial
    five times in bfloat16, matrix by matrix; here three in float32 move all matrices together.

    Directions that training hardly tells anything of move as far as all others, and matter once the stream
    changes. So matrices shrink a little at every step, and some columns may be told to stay.

    There are two groups: everything else, and the matrices. A group's learning rate is to be its ``factor``
    times that of the training.

    Args:
        model: Whose weights are moved, those that learn.
        lr: Learning rate, as for Adam.
        rest: Factor of the learning rate of everything that is no matrix.
        weight_decay: How much of itself a matrix loses at a step, by the learning rate.
        still: Columns of weights that do not move with the rest of their matrix, and only shrink like it;
            never all columns.
        momentum: Share of the old in a matrix's momentum.
        length: Root mean square of a matrix's step, by the learning rate.
    """

    def __init__(
        self,
        model: nn.Module,
        lr: float,
        *,
        rest: float = 1.0,
        weight_decay: float = 0.0,
        still: Mapping[Tensor, slice] | None = None,
        momentum: float = 0.95,
        length: float = 0.4,
    ) -> None:
        self.matrices = list(_matrices(model, still or {}))
        known = {weight for matrix in self.matrices for weight, _ in matrix.parts}
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        others = {"params": [weight for weight in weights if weight not in known], "factor": rest}
        own = {"params": [weight for weight in weights if weight in known], "factor": 1.0}
        own |= {"weight_decay": weight_decay, "momentum": momentum, "length": length}
        super().__init__([others | {"lr": lr * rest}, own], lr=lr, fused=True)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Move every weight that has a gradient once; a gate needs those of both of its parts."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        weights = [weight for weight in self.param_groups[1]["params"] if weight.grad is not None]
        gradients = [weight.grad for weight in weights]
        self._move_matrices(dict(zip(weights, gradients, strict=True)))
        for weight in weights:
            weight.grad = None  # Adam passes over it
        super().step()
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient
        return loss

    def _move_matrices(self, gradients: Mapping[Tensor, Tensor]) -> None:
        """Move the matrices of which all gradients are known."""
        group, ahead = self.param_groups[1], {}
        for weight, gradient in gradients.items():
            state = self.state[weight]
            if not state:
                state |= {
                    "step": torch.zeros(()),
                    "momentum": torch.zeros_like(weight),
                }  # Adam asks for "step"
            state["momentum"].lerp_(gradient, 1 - group["momentum"])
            ahead[weight] = gradient.lerp(state["momentum"], group["momentum"])
            weight.mul_(1 - group["lr"] * group["weight_decay"])
        moved = [matrix for matrix in self.matrices if all(weight in ahead for weight, _ in matrix.parts)]
        moves = orthogonal([matrix.of(ahead) for matrix in moved])
        for matrix, move in zip(moved, moves, strict=True):
            matrix.move(move, group["lr"] * group["length"] * math.sqrt(move.shape[1]))

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"matrices": self.matrices}


def _matrices(model: nn.Module, still: Mapping[Tensor, slice]) -> Iterator[Matrix]:
    """Yield what moves as a matrix among a model's weights that learn."""
    tables = [part.weight for part in model.modules() if isinstance(part, nn.Embedding)]
    known = set(tables)
    for cell in (part for part in model.modules() if isinstance(part, nn.RNNCellBase)):
        both, d = (cell.weight_ih, cell.weight_hh), cell.hidden_size
        whole = d >= LEAST and all(weight.requires_grad and weight not in known for weight in both)
        known |= set(both)  # one alone, or a small one, moves as by Adam
        if whole:
            for start in range(0, len(cell.weight_ih), d):
                yield Matrix(
                    [part for weight in both for part in _parts(weight, slice(start, start + d), still)]
                )
    for weight in model.parameters():
        if weight.requires_grad and weight.ndim == 2 and weight not in known and min(weight.shape) >= LEAST:
            yield Matrix(_parts(weight, slice(None), still))


def _parts(
    weight: Tensor, rows: slice, still: Mapping[Tensor, slice]
) -> list[tuple[Tensor, tuple[slice, slice]]]:
    """Return what moves of some rows of a weight: the columns on both sides of those that stay."""
    width = weight.shape[1]
    start, stop, _ = still.get(weight, slice(0, 0)).indices(width)
    return [(weight, (rows, slice(a, b))) for a, b in ((0, start), (stop, width)) if a < b]


def orthogonal(matrices: Sequence[Tensor]) -> list[Tensor]:
    """Return of each matrix `[m, n]`, ``m <= n``, one with the same directions, which are about equally long.

    What an iteration does to a matrix it does to the inner products of its rows as well, which are fewer: so
    it is found what all iterations come to from those alone, for all matrices of the same height together.
    """
    found: dict[int, Tensor] = {}
    kinds = [(len(matrix), matrix.dtype, matrix.device) for matrix in matrices]
    for kind in dict.fromkeys(kinds):
        shapes: dict[int, list[int]] = {}
        for i, matrix in enumerate(matrices):
            if kinds[i] == kind:
                shapes.setdefault(matrix.shape[1], []).append(i)
        alike = [torch.stack([matrices[i] for i in those]) for those in shapes.values()]
        factors = _factors(torch.cat([those @ those.mT for those in alike]))
        parts = torch.split(factors, [len(those) for those in alike])
        for those, part, of_those in zip(shapes.values(), parts, alike, strict=True):
            found |= dict(zip(those, part @ of_those, strict=True))
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
