"""What moves the weights."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from pres.errors import OptionError
from pres.optim.muon import loss_of


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
        loss = loss_of(closure)
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


class FlatAdam(torch.optim.Adam):
    """Adam of weights that lie in one tensor, as do their gradients: one operation where there were many.

    The weights stay the parameters they were, and the state is that of `torch.optim.Adam` of the weights, but
    a weight without a gradient counts as one whose gradient is zero: it may go on by momentum. Weights that
    were moved, or made of another type, are put together again; `release` sets them apart.

    Args:
        weights: What to move, all of one type and on one device.
        lr: Learning rate.
    """

    def __init__(self, weights: Iterable[nn.Parameter], lr: float) -> None:
        self.weights = list(weights)
        self.whole = nn.Parameter(torch.cat([weight.detach().flatten() for weight in self.weights]))
        self._own: list[Tensor] = []  # where each weight is to be, once there is something to learn,
        self._gradients: list[Tensor] = []  # and its gradient
        super().__init__([self.whole], lr=lr, fused=True)

    def _lay_out(self) -> None:
        """Let every weight, and its gradient, be a part of the whole."""
        if not alike(self.weights):
            raise OptionError("the weights of the model are of several types or on several devices.")
        gradients = [weight.grad for weight in self.weights]
        self.whole.grad = None
        self.whole.data = torch.cat([weight.detach().flatten() for weight in self.weights])
        self.whole.grad = torch.zeros_like(self.whole)
        self._own, self._gradients = self._parts(self.whole.detach()), self._parts(self.whole.grad)
        for weight, own, gradient in zip(self.weights, self._own, gradients, strict=True):
            weight.grad = None
            weight.data, weight.grad = own, gradient
        moments = self.state[self.whole]
        moments |= {name: value.to(self.whole) for name, value in moments.items() if value.ndim}

    def _put_together(self) -> None:
        """Lay everything out again that is no longer where it was."""
        pairs = zip(self.weights, self._own, strict=False)
        if not self._own or any(weight.data_ptr() != own.data_ptr() for weight, own in pairs):
            self._lay_out()
        for weight, gradient in zip(self.weights, self._gradients, strict=True):
            if weight.grad is not gradient:
                if weight.grad is None:
                    gradient.zero_()
                else:
                    gradient.copy_(weight.grad)
                weight.grad = gradient

    def release(self) -> None:
        """Let every weight be a tensor of its own: else whoever keeps one of them keeps them all."""
        for weight in self.weights:
            weight.data, weight.grad = weight.data.clone(), None

    def _parts(self, whole: Tensor) -> list[Tensor]:
        """Return the part of each weight in a tensor like all of them."""
        parts = torch.split(whole, [weight.numel() for weight in self.weights])
        return [part.view(weight.shape) for part, weight in zip(parts, self.weights, strict=True)]

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Let all gradients be zero, and lie where backward is to add them up."""
        self._put_together()
        assert self.whole.grad is not None
        self.whole.grad.zero_()

    def step(self, closure: Any = None) -> Any:
        """Move all weights once."""
        self._put_together()
        moments, (group,) = self.state[self.whole], self.param_groups
        if closure is not None or not moments:
            return super().step(closure)
        assert self.whole.grad is not None
        with torch.no_grad():  # what `Adam.step` comes to, without its questions
            adam(
                [self.whole],
                [self.whole.grad],
                [moments["exp_avg"]],
                [moments["exp_avg_sq"]],
                [],
                [moments["step"]],
                fused=True,
                amsgrad=group["amsgrad"],
                beta1=group["betas"][0],
                beta2=group["betas"][1],
                lr=group["lr"],
                weight_decay=group["weight_decay"],
                eps=group["eps"],
                maximize=group["maximize"],
            )
        return None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"weights": self.weights, "whole": self.whole}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[no-untyped-call]
        self._own, self._gradients = [], []

    def state_dict(self) -> dict[str, Any]:
        """Return the state as that of the weights one by one."""
        whole = super().state_dict()
        moments = whole["state"].get(0, {})
        parts = {name: self._parts(value) for name, value in moments.items() if value.ndim}
        each = [
            {name: parts[name][i] if name in parts else value.clone() for name, value in moments.items()}
            for i in range(len(self.weights))
        ]
        whole["state"] = dict(enumerate(each)) if moments else {}
        whole["param_groups"][0]["params"] = list(range(len(self.weights)))
        return whole

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state of the weights one by one; those that it does not hold have never moved."""
        (group,), each = state_dict["param_groups"], state_dict["state"]
        if len(group["params"]) != len(self.weights):
            raise OptionError(f"a state of {len(group['params'])} weights is none of {len(self.weights)}.")
        moments: dict[str, Tensor] = {}
        for name in next(iter(each.values()), {}):
            given = [each[i][name] if i in each else None for i in range(len(self.weights))]
            if name == "step":
                moments[name] = max(step for step in given if step is not None).clone()
            else:
                moments[name] = torch.cat(
                    [
                        (torch.zeros_like(weight) if moment is None else moment).flatten()
                        for moment, weight in zip(given, self.weights, strict=True)
                    ]
                )
        of_whole = {"state": {0: moments} if moments else {}, "param_groups": [{**group, "params": [0]}]}
        super().load_state_dict(of_whole)


def alike(weights: Iterable[Tensor]) -> bool:
    """Return whether all are of one type and on one device."""
    return len({(weight.dtype, weight.device) for weight in weights}) <= 1


def optimiser_of(model: nn.Module, name: str, lr: float) -> torch.optim.Optimizer:
    """Return the optimiser ``"adam"`` or ``"lamb"`` of a model's weights; Muon needs to know more."""
    weights = [p for p in model.parameters() if p.requires_grad]
    if name == "lamb":
        return LAMB(weights, lr=lr)
    return FlatAdam(weights, lr) if alike(weights) else torch.optim.Adam(weights, lr=lr, fused=True)
