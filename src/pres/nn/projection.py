"""Memories carried on in time, with a gradient written by hand in fewer operations than autograd needs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pres.nn.ops import differentiable_gradients, rows


def projected(memory: Tensor, roots: Tensor, elapsed: Tensor, weight: Tensor) -> Tensor:
    """Return `[r, d]`, ``(1 + elapsed * weight) * memory[roots]``.

    Args:
        memory: Memories `[u, d]`.
        roots: Which of them `[r]` is carried on,
        elapsed: by how much `[r]`.
        weight: What time does to each value `[d]`.
    """
    if torch.is_autocast_enabled(memory.device.type):  # precision is then chosen operation by operation
        return projected_plainly(memory, roots, elapsed, weight)
    found: Tensor = _Projected.apply(memory, roots, elapsed, weight)  # type: ignore[no-untyped-call]
    return found


def projected_plainly(memory: Tensor, roots: Tensor, elapsed: Tensor, weight: Tensor) -> Tensor:
    """Return what `projected` does; it can be differentiated twice."""
    return rows(memory, roots) * (1 + elapsed.unsqueeze(1) * weight)


class _Projected(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, memory: Tensor, roots: Tensor, elapsed: Tensor, weight: Tensor) -> Tensor:
        picked = rows(memory, roots)
        factor = (elapsed.unsqueeze(1) * weight).add_(1)  # `addcmul` is slow where it has to broadcast
        ctx.save_for_backward(memory, roots, elapsed, weight, picked, factor)
        return picked * factor

    @staticmethod
    def backward(ctx: Any, of_result: Tensor) -> tuple[Tensor | None, ...]:
        memory, roots, elapsed, weight, picked, factor = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated
            given, needed = (memory, roots, elapsed, weight), ctx.needs_input_grad
            return tuple(differentiable_gradients(projected_plainly, given, needed, of_result))
        of_memory = torch.zeros_like(memory).index_add_(0, roots, of_result * factor)  # in order
        return of_memory, None, None, elapsed @ (of_result * picked)
