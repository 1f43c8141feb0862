"""A gated recurrent cell with a gradient written by hand, in fewer operations than autograd needs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from pres.nn.ops import differentiable_gradients


def gru(cell: nn.GRUCell, x: Tensor, h: Tensor, repeated: bool = False) -> Tensor:
    """Return what ``cell(x, h)`` does, of inputs `[u, m]` and states `[u, d]`.

    If the state is ``repeated``, the first ``d`` values of each input are those of its state. Then two of the
    three products with the state are one with those of the input: the sum of both matrices is multiplied.
    """
    weights = cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
    if torch.is_autocast_enabled(x.device.type):  # precision is then chosen operation by operation
        return torch.gru_cell(x, h, *weights)
    updated: Tensor = _GRU.apply(x, h, *weights, repeated)  # type: ignore[no-untyped-call]
    return updated


def _matrix_of_x(
    weight_x: Tensor, weight_h: Tensor, bias_x: Tensor, bias_h: Tensor, repeated: bool
) -> tuple[Tensor, Tensor]:
    """Return the matrix and the bias of the inputs."""
    if not repeated:
        return weight_x, bias_x
    d = weight_h.shape[1]
    both, bias = weight_x.clone(), bias_x.clone()
    both[: 2 * d, :d] += weight_h[: 2 * d]
    bias[: 2 * d] += bias_h[: 2 * d]
    return both, bias


def _moved(
    x: Tensor, h: Tensor, of_x: Tensor, bias: Tensor, weight_h: Tensor, bias_h: Tensor, repeated: bool
) -> tuple[Tensor, ...]:
    """Return new states, and what gradients need: both gates, what is new and what the state offers to it."""
    d, from_x = h.shape[1], torch.addmm(bias, x, of_x.T)
    if repeated:
        gates, offered = from_x[:, : 2 * d], torch.addmm(bias_h[2 * d :], h, weight_h[2 * d :].T)
    else:
        from_h = torch.addmm(bias_h, h, weight_h.T)
        gates, offered = from_x[:, : 2 * d].add_(from_h[:, : 2 * d]), from_h[:, 2 * d :]
    gates.sigmoid_()
    reset, keep = gates[:, :d], gates[:, d:]
    new = torch.addcmul(from_x[:, 2 * d :], reset, offered).tanh_()  # several threads are slow on rows apart
    return torch.lerp(new, h, keep), reset, keep, new, offered


class _GRU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        x: Tensor,
        h: Tensor,
        weight_x: Tensor,
        weight_h: Tensor,
        bias_x: Tensor,
        bias_h: Tensor,
        repeated: bool,
    ) -> Tensor:
        of_x = _matrix_of_x(weight_x, weight_h, bias_x, bias_h, repeated)
        result, *needed = _moved(x, h, *of_x, weight_h, bias_h, repeated)
        ctx.save_for_backward(x, h, weight_x, weight_h, bias_x, bias_h, *needed)
        ctx.repeated = repeated
        return result

    @staticmethod
    def backward(ctx: Any, of_result: Tensor) -> tuple[Tensor | None, ...]:
        x, h, weight_x, weight_h, bias_x, bias_h, reset, keep, new, offered = ctx.saved_tensors
        needed = ctx.needs_input_grad
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated
            given = x, h, weight_x, weight_h, bias_x, bias_h
            return *differentiable_gradients(torch.gru_cell, given, needed[:6], of_result), None
        d = h.shape[1]
        of_x = torch.empty(len(x), 3 * d, dtype=x.dtype, device=x.device)
        of_reset, of_keep, of_new = torch.split(of_x, d, dim=1)
        of_tanh, of_sigmoid = torch.ops.aten.tanh_backward, torch.ops.aten.sigmoid_backward
        of_tanh.grad_input(torch.addcmul(of_result, of_result, keep, value=-1), new, grad_input=of_new)
        of_sigmoid.grad_input(of_result * (h - new), keep, grad_input=of_keep)
        of_sigmoid.grad_input(of_new * offered, reset, grad_input=of_reset)
        of_offered = of_new * reset
        of_weight_x, of_bias_x = of_x.T @ x, of_x.sum(0)
        # What reaches the gates from the state is what reaches them from the input.
        gates_by_h = of_weight_x[: 2 * d, :d] if ctx.repeated else of_x[:, : 2 * d].T @ h
        of_h = None
        if needed[1]:
            of_h = torch.addmm(of_x[:, : 2 * d] @ weight_h[: 2 * d], of_offered, weight_h[2 * d :])
            of_h.addcmul_(of_result, keep)
        return (
            of_x @ weight_x if needed[0] else None,
            of_h,
            of_weight_x,
            torch.cat([gates_by_h, of_offered.T @ h]),
            of_bias_x,
            torch.cat([of_bias_x[: 2 * d], of_offered.sum(0)]),
            None,
        )
