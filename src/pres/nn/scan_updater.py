"""A memory update that is linear in the memory, so that a scan makes whole chains of updates at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from pres.errors import OptionError
from pres.nn.gather import rows
from pres.nn.scan import linear_scan

KEPT = 1.0  # where the bias of what is kept begins: at first a memory keeps most of itself


class ScanUpdater(nn.Module):
    """``s_k = a_k ⊙ s_{k-1} + (1 - a_k) ⊙ n_k``, with ``a_k = σ(A m_k)`` and ``n_k = tanh(N m_k)``.

    The message ``m_k`` of a node's k-th event holds its own memory and its partner's before the scan, their
    codes, the event's features and the time since the node's event before. With two passes the partner's
    memory is that just before the event, as the first pass has found it. As nothing in ``a_k`` and ``n_k``
    follows from ``s_{k-1}``, all memories are found by one scan. It has the form of PRES's correction (Eq. 7)
    for every event, and is a minGRU (Feng et al., 2024).

    Args:
        memory_dim: Size of a memory.
        code_dim: Size of a node's code.
        event_dim: Size of what is known of an event: its features and the time difference.
        passes: 1, or 2.
    """

    def __init__(self, memory_dim: int, code_dim: int, event_dim: int, passes: int = 1) -> None:
        super().__init__()
        if passes not in (1, 2):
            raise OptionError(f"passes={passes}: a scan makes 1 or 2 of them.")
        self.passes = passes
        self.sizes = [memory_dim, code_dim, memory_dim, code_dim, event_dim]
        self.keep, self.new = (nn.Linear(sum(self.sizes), memory_dim) for _ in range(2))
        nn.init.constant_(self.keep.bias, KEPT)

    @property
    def of_messages(self) -> list[Tensor]:
        """The weights whose columns read a message, time last."""
        return [self.keep.weight, self.new.weight]

    def forward(
        self, begin: Tensor, codes: Tensor, about: Tensor, first: Tensor, chain: Tensor, other: Tensor
    ) -> Tensor:
        """Return the memory `[h, d]` after each entry of all chains.

        What depends on a node alone is multiplied once for each chain.

        Args:
            begin: The memory before each chain `[c, d]`.
            codes: The code of its node `[c, code_dim]`.
            about: What is known of each entry's event `[h, event_dim]`.
            first: The first entry of each chain `[c]`.
            chain: The chain of each entry `[h]`.
            other: The entry of its partner `[h]`.
        """
        weight, bias = torch.cat(self.of_messages), torch.cat([self.keep.bias, self.new.bias])
        own, own_code, partner, partner_code, event = torch.split(weight, self.sizes, dim=1)
        nodes, whose = torch.cat([begin, codes], dim=1), rows(chain, other)
        gates = linear(about, event, bias) + rows(linear(nodes, torch.cat([own, own_code], dim=1)), chain)
        if self.passes == 1:
            of_partner = linear(nodes, torch.cat([partner, partner_code], dim=1))
            return gated_scan(gates + rows(of_partner, whose), begin, first)
        gates = gates + rows(linear(codes, partner_code), whose)
        with torch.no_grad():  # what the second pass reads of the first teaches nothing
            after = gated_scan(gates + rows(linear(begin, partner), whose), begin, first)
            before = torch.cat([after[:1], after[:-1]]).index_copy(0, first, begin.to(after.dtype))
        return gated_scan(gates + linear(rows(before, other), partner), begin, first)


def gated_scan(gates: Tensor, begin: Tensor, first: Tensor) -> Tensor:
    """Return the memory `[h, d]` after each entry from the gates `[h, 2 d]`, never in half precision."""
    keep, new = gates.to(begin.dtype).chunk(2, dim=1)
    return linear_scan(torch.sigmoid(keep), torch.sigmoid(-keep) * torch.tanh(new), begin, first)
