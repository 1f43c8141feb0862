"""The states of many chains ``s_k = keep_k ⊙ s_{k-1} + add_k``, found together by a segmented prefix scan.

The update of a chain is linear in its state, so two updates in a row are one: ``(keep, add)`` and then
``(keep', add')`` is ``(keep' keep, keep' add + add')``. Neighbouring rows are joined into half as many, and
so on up to one; then the state before a pair gives that before each of its rows (Blelloch, 1990). That is
O(m) work in O(log m) operations, whatever the lengths of the chains. A chain begins where nothing is kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import hardshrink, pad

_HALF = torch.bfloat16, torch.float16


def linear_scan(keep: Tensor, add: Tensor, initial: Tensor, first: Tensor) -> Tensor:
    """Return the states `[m, d]` after each row of all chains.

    Rows of one chain follow one another. Half precision is raised to float32: a state sums up a whole chain.

    Args:
        keep: What each row keeps of the state before it `[m, d]`.
        add: What it adds `[m, d]`.
        initial: The states before the first row of each chain `[c, d]`.
        first: Where each chain begins `[c]` int64, increasing; the first begins at 0.
    """
    keep, add, initial = (each.float() if each.dtype in _HALF else each for each in (keep, add, initial))
    if not len(first):
        return add
    begun = add.index_add(0, first, keep.index_select(0, first) * initial)
    states: Tensor = _Scan.apply(keep.index_fill(0, first, 0), begun, False)  # type: ignore[no-untyped-call]
    return states


class _Scan(torch.autograd.Function):
    """The solution of ``s_i = keep_i s_{i-1} + x_i``, or of its transpose ``g_i = keep_{i+1} g_{i+1} + x_i``.

    Each is the gradient of the other, so gradients of any order are scans.
    """

    @staticmethod
    def forward(ctx: Any, keep: Tensor, x: Tensor, transposed: bool) -> Tensor:
        if transposed:
            solved = _solved(torch.cat([keep[1:], torch.zeros_like(keep[:1])]), x, backwards=True)
        else:
            solved = _solved(keep, x, backwards=False)
        ctx.save_for_backward(keep, solved)
        ctx.transposed = transposed
        return solved

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor, None]:
        keep, solved = ctx.saved_tensors
        grad_x: Tensor = _Scan.apply(keep, grad, not ctx.transposed)  # type: ignore[no-untyped-call]
        grad_keep = None
        if ctx.needs_input_grad[0]:
            states, adjoint = (grad_x, solved) if ctx.transposed else (solved, grad_x)
            grad_keep = torch.cat([torch.zeros_like(keep[:1]), states[:-1] * adjoint[1:]])
        return grad_keep, grad_x, None


def _solved(keep: Tensor, x: Tensor, backwards: bool) -> Tensor:
    """Return the states `[m, d]` after each row, taken from the first to the last, or backwards."""
    halves, whole_keep, whole = [], keep, x
    while len(x) > 1:
        if len(x) % 2:  # a row of zeros at the end changes no other
            keep, x = pad(keep, (0, 0, 0, 1)), pad(x, (0, 0, 0, 1))
        (keep_1, x_1), (keep_2, x_2) = _pairs(keep, x, backwards)
        halves.append((keep_1, x_1))
        x = torch.addcmul(x_2, keep_2, x_1)
        keep = _without_denormals(keep_2 * keep_1)
    before = torch.zeros_like(x)  # the state before each row: none before the first of all
    for keep_1, x_1 in reversed(halves):
        before = before[: len(x_1)]
        both = before, torch.addcmul(x_1, keep_1, before)
        before = torch.stack(both[::-1] if backwards else both, dim=1).flatten(0, 1)
    return torch.addcmul(whole, whole_keep, before[: len(whole)])


def _pairs(keep: Tensor, x: Tensor, backwards: bool) -> list[tuple[Tensor, Tensor]]:
    """Return the rows that come first and second of each pair."""
    both = [each.view(-1, 2, each.shape[1]).unbind(1) for each in (keep, x)]
    found = list(zip(*both, strict=True))
    return found[::-1] if backwards else found


def _without_denormals(product: Tensor) -> Tensor:
    """Return products of what is kept, those so small that they would lose digits (and time) as zero."""
    limits = torch.finfo(product.dtype)
    return hardshrink(product, limits.tiny / limits.eps)
