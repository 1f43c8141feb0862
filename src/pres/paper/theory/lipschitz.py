"""How fast a gradient changes with the weights: the curvature of a loss by power iteration."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from pres.errors import OptionError
from pres.paper.theory.gradients import flat_gradient


def largest_curvature(
    loss: Tensor, parameters: Sequence[Tensor], iterations: int = 20, seed: int = 0
) -> float:
    """Return the largest absolute eigenvalue of the Hessian of ``loss``, from below.

    ``‖H v‖`` for a unit vector v that is turned by H again and again. It never exceeds the largest
    eigenvalue and comes closer to it with every iteration. The gradient's Lipschitz constant L is the
    largest such value over all weights; this one is of the weights as they are, so it is a lower estimate
    of L.
    """
    if iterations < 1:
        raise OptionError(f"iterations={iterations}: power iteration takes at least one.")
    gradient = flat_gradient(loss, parameters, differentiable=True)
    if not gradient.requires_grad:  # a straight line: the gradient depends on no weight
        return 0.0
    generator = torch.Generator(gradient.device).manual_seed(seed)
    v = torch.randn(len(gradient), generator=generator, dtype=gradient.dtype, device=gradient.device)
    length = v.norm()
    for _ in range(iterations):
        if float(length) == 0:  # no curvature in any direction reached
            return 0.0
        turned = torch.autograd.grad(
            gradient,
            list(parameters),
            v / length,
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
        v = torch.cat([part.flatten() for part in turned])
        length = v.norm()
    return float(length)
