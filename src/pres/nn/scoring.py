"""Scores of pairs by one hidden layer, with a gradient written by hand in fewer operations and copies."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from pres.nn.ops import differentiable_gradients


def scores(h: Tensor, b: int, k: int, *weights: Tensor) -> Tensor:
    """Return the scores `[b, k]` of ``b`` sources with the ``k`` that each of them meets.

    Args:
        h: The sources' embeddings, then row by row those of whom they meet `[b + b k, d]`.
        b: How many sources,
        k: and how many each of them meets.
        weights: The layers of sources, of whom they meet, and of what is hidden: each a matrix and a bias.
    """
    if torch.is_autocast_enabled(h.device.type):  # precision is then chosen operation by operation
        return scores_plainly(h, b, k, *weights)
    found: Tensor = _Scores.apply(b, k, h, *weights)  # type: ignore[no-untyped-call]
    return found


def scores_plainly(h: Tensor, b: int, k: int, *weights: Tensor) -> Tensor:
    """Return what `scores` does; it can be differentiated twice."""
    src, src_bias, dst, dst_bias, out, out_bias = weights
    of_src, of_met = linear(h[:b], src, src_bias), linear(h[b:], dst, dst_bias)
    hidden = (of_src.unsqueeze(1) + of_met.view(b, k, len(dst))).relu()
    with torch.autocast(h.device.type, enabled=False):  # rounded scores would tie
        return linear(hidden.to(out.dtype), out, out_bias).squeeze(-1)


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, b: int, k: int, h: Tensor, *weights: Tensor) -> Tensor:
        src, src_bias, dst, dst_bias, out, out_bias = weights
        hidden = torch.addmm(dst_bias, h[b:], dst.T)
        hidden.view(b, k, len(dst)).add_(torch.addmm(src_bias, h[:b], src.T).unsqueeze(1))
        hidden.relu_()
        ctx.b, ctx.k = b, k
        ctx.save_for_backward(h, hidden, *weights)
        return torch.mv(hidden, out[0]).add_(out_bias).view(b, k)

    @staticmethod
    def backward(ctx: Any, of_result: Tensor) -> tuple[Tensor | None, ...]:
        (b, k), (h, hidden, *weights) = (ctx.b, ctx.k), ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated

            def plain(h: Tensor, *weights: Tensor) -> Tensor:
                return scores_plainly(h, b, k, *weights)

            needed = ctx.needs_input_grad[2:]
            return None, None, *differentiable_gradients(plain, (h, *weights), needed, of_result)
        src, _, dst, _, out, _ = weights
        of_score = of_result.reshape(-1)
        of_met = of_score.unsqueeze(1) * out
        torch.ops.aten.threshold_backward.grad_input(of_met, hidden, 0, grad_input=of_met)
        of_src = of_met.view(b, k, len(dst)).sum(1)
        of_h = None
        if ctx.needs_input_grad[2]:
            of_h = torch.empty_like(h)
            torch.mm(of_src, src, out=of_h[:b])
            torch.mm(of_met, dst, out=of_h[b:])
        return (
            None,
            None,
            of_h,
            of_src.T @ h[:b],
            of_src.sum(0),
            of_met.T @ h[b:],
            of_met.sum(0),
            (of_score @ hidden).unsqueeze(0),
            of_score.sum().unsqueeze(0),
        )
