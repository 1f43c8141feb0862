"""The states of many chains ``s_k = keep_k ⊙ s_{k-1} + add_k``, found together by a segmented prefix scan.

The update of a chain is linear in its state, so two updates in a row are one: ``(keep, add)`` and then
``(keep', add')`` is ``(keep' keep, keep' add + add')``. Blocks of eight rows are joined into one row each,
and so on up to one; then the state before a block gives that of each of its rows (Blelloch, 1990). That is
O(m) work in O(log m) operations, whatever the lengths of the chains. A chain begins where nothing is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import hardshrink, pad

TOGETHER = 8  # rows of a block; with 2 everything is read and written three times as often
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


def scan_of_gradients(keep: Tensor, grad: Tensor, first: Tensor) -> Tensor:
    """Return the gradient `[m, d]` of what each row adds, of the gradient of the states `[m, d]`."""
    inside = keep.index_fill(0, first, 0)
    return _solved(torch.cat([inside[1:], torch.zeros_like(inside[:1])]), grad, backwards=True)


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
    m, together = len(x), min(TOGETHER, len(x))
    if m % together:  # rows of zeros at the end change no others
        keep, x = (pad(each, (0, 0, 0, -m % together)) for each in (keep, x))
    solved = torch.empty_like(x)
    keeps, xs, states = (_turns(each, together, backwards) for each in (keep, x, solved))
    if len(xs[0]) == 1:
        states[0].copy_(xs[0])
    else:
        whole_keep, whole = keeps[0], xs[0]
        for own_keep, own in zip(keeps[1:], xs[1:], strict=True):
            whole, whole_keep = torch.addcmul(own, own_keep, whole), own_keep * whole_keep
        after = _solved(_without_denormals(whole_keep), whole, backwards)
        none = torch.zeros_like(after[:1])
        before = torch.cat([after[1:], none] if backwards else [none, after[:-1]])
        torch.addcmul(xs[0], keeps[0], before, out=states[0])
    for i in range(1, together):
        torch.addcmul(xs[i], keeps[i], states[i - 1], out=states[i])
    return solved[:m]


def _turns(rows: Tensor, together: int, backwards: bool) -> Sequence[Tensor]:
    """Return the rows that come first of their blocks, those that come second, and so on."""
    num_batches = rows.view(-1, together, rows.shape[1]).unbind(1)
    return num_batches[::-1] if backwards else num_batches


def _without_denormals(product: Tensor) -> Tensor:
    """Return products of what is kept, those so small that they would lose digits (and time) as zero."""
    limits = torch.finfo(product.dtype)
    return hardshrink(product, limits.tiny / limits.eps)
