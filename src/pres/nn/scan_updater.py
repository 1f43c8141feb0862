"""A memory update that is linear in the memory, so that a scan makes whole chains of updates at once."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from pres.errors import OptionError
from pres.nn.ops import Picked, rows
from pres.nn.scan import Chains, before_each, gated_scan, sums_of_rows

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
        self.widths = {"memory": memory_dim, "node encoding": encoding_dim, "message": event_dim}
        self.sizes = [memory_dim, encoding_dim, memory_dim, encoding_dim, event_dim]
        self.update, self.new = (nn.Linear(sum(self.sizes), memory_dim) for _ in range(2))
        nn.init.constant_(self.update.bias, UPDATED)

    @property
    def of_messages(self) -> list[Tensor]:
        """The weights whose columns read a message, time last."""
        return [self.update.weight, self.new.weight]

    def forward(
        self, begin: Tensor, encoding: Tensor, features: Tensor, since: Picked, chains: Chains
    ) -> Tensor:
        """Return the memory `[h, d]` after each entry of all chains.

        What depends on a node, an event or a time alone is multiplied once for each.

        Args:
            begin: The memory before each chain `[c, d]`.
            encoding: Of its node `[c, encoding_dim]`.
            features: The features of all events `[w, feature_dim]`.
            since: The encoded time since the event before of each entry's node.
            chains: Which entries there are.
        """
        weight, bias = joined_gates(self.update, self.new)
        own, own_code, partner, partner_code, event = torch.split(weight, self.sizes, dim=1)
        feature, time = torch.split(event, [features.shape[1], since.table.shape[1]], dim=1)
        nodes, whose = torch.cat([begin, encoding], dim=1), rows(chains.chain, chains.other)
        of_node = linear(nodes, torch.cat([own, own_code], dim=1), bias), chains.chain
        known = [of_node, (linear(since.table, time), since.place)]
        if features.shape[1]:
            known.append((linear(features, feature), chains.event))
        if self.passes == 1:
            of_partner = linear(nodes, torch.cat([partner, partner_code], dim=1))
            return gated_scan(sums_of_rows(*known, (of_partner, whose)), begin, chains.first)
        gates = sums_of_rows(*known, (linear(encoding, partner_code), whose))
        with torch.no_grad():  # what the second pass reads of the first teaches nothing
            after = gated_scan(gates + rows(linear(begin, partner), whose), begin, chains.first)
            before = before_each(after, begin, chains.first)
        return gated_scan(torch.addmm(gates, rows(before, chains.other), partner.T), begin, chains.first)


def joined_gates(update: nn.Linear, new: nn.Linear) -> tuple[Tensor, Tensor]:
    """Return weight and bias of both gates side by side, those of the new memory doubled.

    For ``tanh(x)`` is ``2 σ(2 x) - 1``, and `gated_scan` takes one sigmoid of all.
    """
    return torch.cat([update.weight, 2 * new.weight]), torch.cat([update.bias, 2 * new.bias])
