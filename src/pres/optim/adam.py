"""Adam."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import nn


class Adam(torch.optim.Adam):
    """torch's fused Adam, except that a weight which a step does not reach has a gradient of zero.

    So it goes on by momentum, as torch's does not: the first batch of an epoch reaches no memory.

    Args:
        weights: What to move.
        lr: Learning rate.
    """

    def __init__(self, weights: Iterable[nn.Parameter], lr: float) -> None:
        super().__init__(weights, lr=lr, fused=True)

    def step(self, closure: Callable[[], float] | None = None) -> Any:
        """Move every weight once."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    weight.grad = torch.zeros_like(weight)
        return super().step(closure)
