"""A gated recurrent cell with a gradient written by hand, in fewer operations than autograd needs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


def gru(cell: nn.GRUCell, x: Tensor, h: Tensor) -> Tensor:
    """Return what ``cell(x, h)`` does, of inputs `[u, m]` and states `[u, d]`."""
    weights = cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh
    if torch.is_autocast_enabled(x.device.type):  # precision is then chosen operation by operation
        return torch.gru_cell(x, h, *weights)
    updated: Tensor = _GRU.apply(x, h, *weights)  # type: ignore[no-untyped-call]
    return updated


class _GRU(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, h: Tensor, weight_x: Tensor, weight_h: Tensor, bias_x: Tensor, bias_h: Tensor
    ) -> Tensor:
        d = h.shape[1]
        from_x, from_h = torch.addmm(bias_x, x, weight_x.T), torch.addmm(bias_h, h, weight_h.T)
        gates = from_x[:, : 2 * d].add_(from_h[:, : 2 * d]).sigmoid_()
        reset, keep = gates[:, :d], gates[:, d:]
        offered = from_h[:, 2 * d :]
        new = torch.addcmul(
            from_x[:, 2 * d :], reset, offered
        ).tanh_()  # not in place: it is slow on rows apart
        ctx.save_for_backward(x, h, weight_x, weight_h, bias_x, bias_h, reset, keep, new, offered)
        return torch.lerp(new, h, keep)

    @staticmethod
    def backward(ctx: Any, of_result: Tensor) -> tuple[Tensor | None, ...]:
        x, h, weight_x, weight_h, bias_x, bias_h, reset, keep, new, offered = ctx.saved_tensors
        needed = ctx.needs_input_grad
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated
            given = [v.view_as(v) for v in (x, h, weight_x, weight_h, bias_x, bias_h)]  # x may depend on h
            wanted = [value for value, need in zip(given, needed, strict=True) if need]
            found = iter(torch.autograd.grad(torch.gru_cell(*given), wanted, of_result, create_graph=True))
            return tuple(next(found) if need else None for need in needed)
        d = h.shape[1]
        of_x = torch.empty(len(x), 3 * d, dtype=x.dtype, device=x.device)
        of_reset, of_keep, of_new = torch.split(of_x, d, dim=1)
        torch.mul(of_result, 1 - keep, out=of_new).mul_(1 - new * new)
        torch.mul(of_result, h - new, out=of_keep).mul_(keep * (1 - keep))
        torch.mul(of_new, offered, out=of_reset).mul_(reset * (1 - reset))
        of_h = of_x.clone()
        of_h[:, 2 * d :].mul_(reset)
        return (
            of_x @ weight_x if needed[0] else None,
            torch.addcmul(of_h @ weight_h, of_result, keep) if needed[1] else None,
            of_x.T @ x if needed[2] else None,
            of_h.T @ h if needed[3] else None,
            of_x.sum(0) if needed[4] else None,
            of_h.sum(0) if needed[5] else None,
        )
