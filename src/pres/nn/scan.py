"""The states of many chains ``s_k = keep_k ⊙ s_{k-1} + add_k``, found together by a segmented prefix scan.

The update of a chain is linear in its state, so two updates in a row are one: ``(keep, add)`` and then
``(keep', add')`` is ``(keep' keep, keep' add + add')``. Blocks of eight rows are joined into one row each,
and so on up to one; then the state before a block gives that of each of its rows (Blelloch, 1990). That is
O(m) work in O(log m) operations, whatever the lengths of the chains. A chain begins where nothing is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Self

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn.functional import embedding_bag, hardshrink, pad

from pres.data.incidence import incidences
from pres.nn.ops import rows

TOGETHER = 8  # rows of a block; with 2 everything is read and written three times as often
_HALF = torch.bfloat16, torch.float16


@dataclass(frozen=True, eq=False)
class Chains:
    """Events as chains: one for each of their nodes, with an entry for each event of the node.

    Entries are sorted by node and then by event.
    """

    num_events: int  # w
    keys: Tensor  # [h] node * w + event, increasing
    event: Tensor  # [h] of each entry
    chain: Tensor  # [h] of each entry
    other: Tensor  # [h] the entry of its event's other endpoint; itself for a self-loop
    node: Tensor  # [c] of each chain
    first: Tensor  # [c] the first entry of each chain

    @classmethod
    def of(cls, src: Tensor, dst: Tensor, num_nodes: int) -> Self:
        """Return the chains of events ``src``, ``dst`` `[w]`."""
        keys, node, event = incidences(src, dst, num_nodes)
        w = len(src)
        at = torch.arange(w, device=node.device)
        of_src, of_dst = (torch.searchsorted(keys, end * w + at) for end in (src, dst))
        other = torch.empty_like(node)
        other[of_src], other[of_dst] = of_dst, of_src
        begins = torch.ones_like(node, dtype=torch.bool)
        begins[1:] = node[1:] != node[:-1]
        first = begins.nonzero().squeeze(1)
        return cls(w, keys, event, begins.cumsum(0) - 1, other, rows(node, first), first)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def last(self) -> Tensor:
        """The last entry `[c]` of each chain."""
        return torch.cat([self.first[1:], self.first.new_tensor([len(self)])[: len(self.first)]]) - 1

    def version(self, nodes: Tensor, places: Tensor) -> Tensor:
        """Return the last entry `[q]` of each of nodes `[q]` before events ``places`` `[q]`; -1 if none."""
        entry = torch.searchsorted(self.keys, nodes * self.num_events + places) - 1
        if not len(self):
            return entry
        own = rows(self.keys, entry.clamp(min=0)) >= nodes * self.num_events
        return torch.where(own, entry, -1)


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
    begun = add.index_add(0, first, rows(keep, first) * initial)
    states: Tensor = _Scan.apply(keep.index_fill(0, first, 0), begun, False)  # type: ignore[no-untyped-call]
    return states


def gated_scan(gates: Tensor, begin: Tensor, first: Tensor) -> Tensor:
    """Return the states `[m, d]` of ``s_k = (1 - z_k) ⊙ s_{k-1} + z_k ⊙ n_k``, never in half precision.

    Args:
        gates: What ``z = σ(·)`` and ``n = 2 σ(·) - 1`` of each row are functions of, side by side `[m, 2 d]`.
            They are overwritten.
        begin: The states before the first row of each chain `[c, d]`.
        first: Where each chain begins `[c]`.
    """
    found: Tensor = _GatedScan.apply(gates.to(begin.dtype), begin, first)  # type: ignore[no-untyped-call]
    return found


def before_each(after: Tensor, begin: Tensor, first: Tensor) -> Tensor:
    """Return the state `[m, d]` before each row, of that after each."""
    return torch.cat([after[:1], after[:-1]]).index_copy_(0, first, begin)


def sums_of_rows(*parts: tuple[Tensor, Tensor]) -> Tensor:
    """Return `[n, d]`, row by row the sum of the rows of tables `[m, d]` at places `[n]`, which are pairs.

    It writes the sums alone, where sums of copies write each copy.
    """
    tables, places = zip(*parts, strict=True)
    found: Tensor = _SumsOfRows.apply(*places, *tables)  # type: ignore[no-untyped-call]
    return found


class _SumsOfRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Tensor) -> Tensor:
        places, tables = given[: len(given) // 2], given[len(given) // 2 :]
        starts = accumulate((len(table) for table in tables), initial=0)
        ctx.save_for_backward(*places)
        ctx.lengths = [len(table) for table in tables]
        joined = torch.stack([place + start for place, start in zip(places, starts, strict=False)], dim=1)
        return embedding_bag(joined, torch.cat(tables), mode="sum")

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        places, needed = ctx.saved_tensors, ctx.needs_input_grad[len(ctx.lengths) :]
        of_tables = (
            grad.new_zeros(length, grad.shape[1]).index_add(0, place, grad) if need else None
            for length, place, need in zip(ctx.lengths, places, needed, strict=True)
        )
        return *([None] * len(places)), *of_tables


class _Scan(torch.autograd.Function):
    """The solution of ``s_i = keep_i s_{i-1} + x_i``, or of its transpose ``g_i = keep_{i+1} g_{i+1} + x_i``.

    Each is the gradient of the other, so gradients of any order are scans.
    """

    @staticmethod
    def forward(ctx: Any, keep: Tensor, x: Tensor, transposed: bool) -> Tensor:
        solved = _solved(_shifted(keep) if transposed else keep, x, backwards=transposed)
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


class _GatedScan(torch.autograd.Function):
    """A linear scan of gates; its own gradient takes a third of the time and memory of autograd's.

    Of the gates it keeps ``z`` alone: ``z_k n_k`` is what the states tell of it, ``s_k - (1 - z_k) s_{k-1}``.
    """

    @staticmethod
    def forward(ctx: Any, gates: Tensor, begin: Tensor, first: Tensor) -> Tensor:
        keep, add = gates.detach().chunk(2, dim=1)
        update = keep.sigmoid()
        torch.sub(1, update, out=keep)
        add.sigmoid_().mul_(2).sub_(1).mul_(update)
        add.index_add_(0, first, rows(keep, first) * begin)
        after = _solved(keep.index_fill_(0, first, 0), add, backwards=False)
        ctx.save_for_backward(update, begin, first, after)
        return after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        update, begin, first, after = ctx.saved_tensors
        (m, d), of_begin = update.shape, None
        of_gates = torch.empty(m, 2 * d, dtype=grad.dtype, device=grad.device)
        of_update, of_new = of_gates.chunk(2, dim=1)
        kept = of_update  # by the row after each
        torch.sub(1, update[1:], out=kept[:-1])
        grad = _solved(kept.index_fill_(0, (first - 1).remainder(max(m, 1)), 0), grad, backwards=True)
        if ctx.needs_input_grad[0]:
            before = of_update
            before[1:] = after[:-1]
            before.index_copy_(0, first, begin)
            torch.mul(update, before, out=of_new)
            torch.sub(after, before, out=of_update)  # z (n - s)
            of_new.add_(of_update)  # z n
            of_new.mul_(of_new).div_(update.clamp(min=torch.finfo(update.dtype).tiny))
            # Of a gate that is all but shut rounding would make more than there can be.
            torch.sub(update, of_new, out=of_new).clamp_(min=0).mul_(grad).mul_(0.5)
            of_update.mul_(grad)
            of_update.addcmul_(of_update, update, value=-1)
        if ctx.needs_input_grad[1]:
            of_begin = rows(grad, first).mul_(1 - rows(update, first))
        return of_gates if ctx.needs_input_grad[0] else None, of_begin, None


def _shifted(keep: Tensor) -> Tensor:
    """Return what the row after each keeps of it."""
    return torch.cat([keep[1:], torch.zeros_like(keep[:1])])


def _solved(keep: Tensor, x: Tensor, backwards: bool) -> Tensor:
    """Return the states `[m, d]` after each row, taken from the first to the last, or backwards."""
    m, together = len(x), min(TOGETHER, len(x))
    if not m:
        return x
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
        limits = torch.finfo(keep.dtype)  # products so small that they would lose digits (and time) are zero
        after = _solved(hardshrink(whole_keep, limits.tiny / limits.eps), whole, backwards)
        none = torch.zeros_like(after[:1])
        before = torch.cat([after[1:], none] if backwards else [none, after[:-1]])
        torch.addcmul(xs[0], keeps[0], before, out=states[0])
    for i in range(1, together):
        torch.addcmul(xs[i], keeps[i], states[i - 1], out=states[i])
    return solved[:m]


def _turns(rows: Tensor, together: int, backwards: bool) -> Sequence[Tensor]:
    """Return the rows that come first of their blocks, those that come second, and so on."""
    turns = rows.view(-1, together, rows.shape[1]).unbind(1)
    return turns[::-1] if backwards else turns
