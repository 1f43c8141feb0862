"""Adam."""

from __future__ import annotations

from collections.abc import Iterable

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
        self.zero_grad()

    def zero_grad(self, set_to_none: bool = False) -> None:
        """Let all gradients be zero."""
        for group in self.param_groups:
            for weight in group["params"]:
                if weight.grad is None:
                    weight.grad = torch.zeros_like(weight)
        super().zero_grad(set_to_none=False)
