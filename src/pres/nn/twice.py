"""Gradients of gradients, for functions whose own gradient is written by hand."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor


def differentiable_gradients(
    plain: Callable[..., Tensor], given: Sequence[Tensor], needed: Sequence[bool], of_result: Tensor
) -> list[Tensor | None]:
    """Return the gradients of what ``plain`` makes of tensors, as autograd has them; None if not needed."""
    given = [value.view_as(value) for value in given]  # one may depend on another: not here
    wanted = [value for value, need in zip(given, needed, strict=True) if need]
    found = iter(torch.autograd.grad(plain(*given), wanted, of_result, create_graph=True))
    return [next(found) if need else None for need in needed]
