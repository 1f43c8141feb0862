"""A memory update that reads mailboxes, and is linear in the memory so that a scan makes whole chains."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from pres.errors import OptionError
from pres.nn.mailbox_reading import Reading
from pres.nn.ops import rows
from pres.nn.scan import before_each, gated_scan
from pres.nn.scan_updater import UPDATED, joined_gates


class Chains(NamedTuple):
    """Chains of entries: one for each node, with an entry for each event of the node."""

    first: Tensor  # [c] the first entry of each
    chain: Tensor  # [h] of each entry
    other: Tensor  # [h] the entry of its event's other endpoint
    event: Tensor  # [h] its event


class MailboxScan(nn.Module):
    """``s_k = (1 - z_k) ⊙ s_{k-1} + z_k ⊙ n_k``, with ``z_k, n_k = σ(Z m_k), tanh(N m_k)``.

    The mail of a node's k-th event is ``u_k = U [s_i, s_j, c_i, c_j, x]``: the node's memory and its
    partner's, their encodings and the event's features. The message ``m_k = [u_k, r_k, φ(Δt)]`` holds it,
    what the node reads in its mailbox, and the time since its event before. It reads by attention, at an
    event also the event's own mail: ``r_k = softmax(Q s_i · (u + W φ(age))) u`` over the mails ``u`` it
    holds. Ages are rounded, see `age_rows`. Mails from before the scan are as they were when they were sent.

    All those memories are from before the scan. With two passes they are those just before the events, as
    the first pass has found them; that teaches nothing.

    Args:
        memory_dim: Size of a memory.
        encoding_dim: Size of a node's code.
        feature_dim: Number of an event's features.
        time_dim: Size of an encoding of time.
        heads: Attention heads.
        passes: 1, or 2.
    """

    def __init__(
        self,
        memory_dim: int,
        encoding_dim: int,
        feature_dim: int,
        time_dim: int,
        heads: int = 2,
        passes: int = 1,
    ) -> None:
        super().__init__()
        if passes not in (1, 2):
            raise OptionError(f"passes={passes}: a scan makes 1 or 2 of them.")
        if heads < 1 or memory_dim % heads:
            raise OptionError(f"heads={heads} must divide memory_dim={memory_dim}.")
        self.heads, self.passes = heads, passes
        self.widths = {"memory": memory_dim, "node encoding": encoding_dim}
        self.widths |= {"features": feature_dim, "time": time_dim}
        self.sizes = [memory_dim, memory_dim, encoding_dim, encoding_dim, feature_dim]
        self.mail = nn.Linear(sum(self.sizes), memory_dim)
        self.query = nn.Linear(memory_dim, memory_dim)
        self.age = nn.Linear(time_dim, memory_dim, bias=False)
        self.update, self.new = (nn.Linear(2 * memory_dim + time_dim, memory_dim) for _ in range(2))
        nn.init.constant_(self.update.bias, UPDATED)

    @property
    def of_messages(self) -> list[Tensor]:
        """The weights whose last columns read encoded time."""
        return [self.age.weight, self.update.weight, self.new.weight]

    def forward(
        self,
        begin: Tensor,
        encoding: Tensor,
        features: Tensor,
        since: Tensor,
        stored: Tensor,
        ages: Tensor,
        chains: Chains,
        reading: Reading,
    ) -> tuple[Tensor, Tensor]:
        """Return the memory `[h, d]` after each entry of all chains, and the mail `[h, d]` that it sends.

        What depends on a node or an event alone is multiplied once for each.

        Args:
            begin: The memory before each chain `[c, d]`.
            encoding: Of its node `[c, encoding_dim]`.
            features: The features of all events `[w, feature_dim]`.
            since: The encoded time since the event before of each entry `[h, time_dim]`.
            stored: Mails from before all chains `[p, d]`.
            ages: The encoded ages of a table `[AGES, time_dim]`.
            chains: Which entries there are.
            reading: What each entry's node reads; mails are those of the entries, then the stored ones.
        """
        (first, chain, other, event), d = chains, begin.shape[1]
        own, partner, own_code, partner_code, feature = torch.split(self.mail.weight, self.sizes, dim=1)
        gate, bias = joined_gates(self.update, self.new)
        of_mail, of_read, of_since = gate[:, :d], gate[:, d : 2 * d], gate[:, 2 * d :]
        gates = linear(since, of_since, bias)
        events, whose = linear(features, feature, self.mail.bias), rows(chain, other)
        own_encoding, partner_encoding = linear(encoding, own_code), linear(encoding, partner_code)
        age = linear(ages, self.age.weight).to(begin.dtype)

        def scan(mails: Tensor, query: Tensor) -> tuple[Tensor, Tensor]:
            mails = mails.to(begin.dtype)
            read = reading.read(query.to(begin.dtype), mails, stored, age)
            moving = torch.addmm(torch.addmm(gates, mails, of_mail.T), read, of_read.T)
            return gated_scan(moving, begin, first), mails

        with torch.set_grad_enabled(torch.is_grad_enabled() and self.passes == 1):
            of_own, of_partner = own_encoding + linear(begin, own), partner_encoding + linear(begin, partner)
            mails = rows(events, event) + rows(of_own, chain) + rows(of_partner, whose)
            states, mails = scan(mails, rows(self.query(begin), chain))
        if self.passes == 1:
            return states, mails
        before = before_each(states, begin, first)
        mails = rows(events, event) + rows(own_encoding, chain) + rows(partner_encoding, whose)
        mails = torch.addmm(torch.addmm(mails, before, own.T), rows(before, other), partner.T)
        return scan(mails, self.query(before))
