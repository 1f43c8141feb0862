"""A memory update that is linear in the memory, so that a scan makes whole chains of updates at once."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.functional import linear

from pres.errors import OptionError
from pres.nn.gather import rows
from pres.nn.scan import linear_scan, scan_of_gradients

UPDATED = -1.0  # where the bias of the update gate begins: at first a memory keeps most of itself


class ScanUpdater(nn.Module):
    """``s_k = (1 - z_k) ⊙ s_{k-1} + z_k ⊙ n_k``, with ``z_k = σ(Z m_k)`` and ``n_k = tanh(N m_k)``.

    The message ``m_k`` of a node's k-th event holds its own memory and its partner's before the scan, their
    encodings, the event's features and the time since the node's event before. With two passes the partner's
    memory is that just before the event, as the first pass has found it. As nothing in ``z_k`` and ``n_k``
    follows from ``s_{k-1}``, all memories are found by one scan. It has the form of PRES's correction (Eq. 7)
    for every event, and is a minGRU (Feng et al., 2024).

    Args:
        memory_dim: Size of a memory.
        encoding_dim: Size of a node's code.
        event_dim: Size of what is known of an event: its features and the time difference.
        passes: 1, or 2.
    """

    def __init__(self, memory_dim: int, encoding_dim: int, event_dim: int, passes: int = 1) -> None:
        super().__init__()
        if passes not in (1, 2):
            raise OptionError(f"passes={passes}: a scan makes 1 or 2 of them.")
        self.passes = passes
        self.sizes = [memory_dim, encoding_dim, memory_dim, encoding_dim, event_dim]
        self.update, self.new = (nn.Linear(sum(self.sizes), memory_dim) for _ in range(2))
        nn.init.constant_(self.update.bias, UPDATED)

    @property
    def of_messages(self) -> list[Tensor]:
        """The weights whose columns read a message, time last."""
        return [self.update.weight, self.new.weight]

    def forward(
        self, begin: Tensor, encoding: Tensor, about: Tensor, first: Tensor, chain: Tensor, other: Tensor
    ) -> Tensor:
        """Return the memory `[h, d]` after each entry of all chains.

        What depends on a node alone is multiplied once for each chain.

        Args:
            begin: The memory before each chain `[c, d]`.
            encoding: Of its node `[c, encoding_dim]`.
            about: What is known of each entry's event `[h, event_dim]`.
            first: The first entry of each chain `[c]`.
            chain: The chain of each entry `[h]`.
            other: The entry of its partner `[h]`.
        """
        weight, bias = torch.cat(self.of_messages), torch.cat([self.update.bias, self.new.bias])
        own, own_code, partner, partner_code, event = torch.split(weight, self.sizes, dim=1)
        nodes, whose = torch.cat([begin, encoding], dim=1), rows(chain, other)
        # Added in place: sums of their own take as long as a third of the products.
        gates = linear(about, event, bias)
        gates = gates.add_(rows(linear(nodes, torch.cat([own, own_code], dim=1)), chain))
        if self.passes == 1:
            of_partner = linear(nodes, torch.cat([partner, partner_code], dim=1))
            return gated_scan(gates.add_(rows(of_partner, whose)), begin, first)
        gates = gates.add_(rows(linear(encoding, partner_code), whose))
        with torch.no_grad():  # what the second pass reads of the first teaches nothing
            after = gated_scan(gates + rows(linear(begin, partner), whose), begin, first)
            before = before_each(after, begin, first)
        return gated_scan(torch.addmm(gates, rows(before, other), partner.T), begin, first)


def gated_scan(gates: Tensor, begin: Tensor, first: Tensor) -> Tensor:
    """Return the memory `[h, d]` after each entry, never in half precision.

    Args:
        gates: What update gate and new memory of each entry are functions of `[h, 2 d]`.
        begin: The memory before each chain `[c, d]`.
        first: The first entry of each chain `[c]`.
    """
    found: Tensor = _GatedScan.apply(gates.to(begin.dtype), begin, first)  # type: ignore[no-untyped-call]
    return found


class _GatedScan(torch.autograd.Function):
    """A linear scan of gates, whose own gradient takes a third of the time that autograd's does.

    ``tanh(x)`` is ``2 σ(2 x) - 1``: that takes a fifth of the time.
    """

    @staticmethod
    def forward(ctx: Any, gates: Tensor, begin: Tensor, first: Tensor) -> Tensor:
        update, new = gates.chunk(2, dim=1)
        update, new = torch.sigmoid(update), torch.sigmoid(2 * new).mul_(2).sub_(1)
        keep = 1 - update
        after = linear_scan(keep, update * new, begin, first)
        ctx.save_for_backward(update, new, keep, begin, first, after)
        return after

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        update, new, keep, begin, first, after = ctx.saved_tensors
        grad = scan_of_gradients(keep, grad, first)
        of_gates = None
        if ctx.needs_input_grad[0]:
            moved = grad * update  # σ' is update (1 - update), tanh' is (1 - new²)
            of_update = (new - before_each(after, begin, first)).mul_(keep).mul_(moved)
            of_gates = torch.cat([of_update, torch.addcmul(moved, moved * new, new, value=-1)], dim=1)
        of_begin = rows(keep, first) * rows(grad, first) if ctx.needs_input_grad[1] else None
        return of_gates, of_begin, None


def before_each(after: Tensor, begin: Tensor, first: Tensor) -> Tensor:
    """Return the memory `[h, d]` before each entry, of that after each."""
    return torch.cat([after[:1], after[:-1]]).index_copy_(0, first, begin)
