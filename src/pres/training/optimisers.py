"""What moves the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn


class LAMB(torch.optim.Optimizer):
    """Adam whose step is, for each weight, as long as ``lr`` times the weight (You et al., 2020).

    Made for large batches: one rate serves layers of very different sizes. A weight of zeros, or one without
    a gradient, moves as by Adam.

    Args:
        params: What to move.
        lr: Learning rate.
        betas: Decay of the two moments.
        eps: Against division by zero.
    """

    def __init__(
        self,
        params: Iterable[Tensor],
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
    ) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Move every weight once."""
        loss = None if closure is None else closure()
        for group in self.param_groups:
            first, second = group["betas"]
            for weight in group["params"]:
                if weight.grad is None:
                    continue
                state = self.state[weight]
                if not state:
                    state["step"] = torch.zeros(())
                    state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weight), torch.zeros_like(weight)
                state["step"] += 1
                mean = state["exp_avg"].lerp_(weight.grad, 1 - first)
                square = state["exp_avg_sq"].lerp_(weight.grad.square(), 1 - second)
                taken = float(state["step"])
                move = (mean / (1 - first**taken)) / ((square / (1 - second**taken)).sqrt() + group["eps"])
                of_weight, of_move = weight.norm(), move.norm()
                both = (of_weight > 0) & (of_move > 0)
                weight -= group["lr"] * torch.where(both, of_weight / of_move.clamp(min=1e-30), 1.0) * move
        return loss


def optimiser_of(model: nn.Module, name: str, lr: float) -> torch.optim.Optimizer:
    """Return the optimiser ``"adam"`` or ``"lamb"`` of a model's weights."""
    weights = [p for p in model.parameters() if p.requires_grad]
    if name == "lamb":
        return LAMB(weights, lr=lr)
    return torch.optim.Adam(weights, lr=lr, fused=True)
