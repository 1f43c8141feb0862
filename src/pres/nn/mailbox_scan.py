"""A memory update that reads mailboxes, and is linear in the memory so that a scan makes whole chains."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from pres.errors import OptionError
from pres.nn.gather import rows
from pres.nn.mailbox_reading import Reading
from pres.nn.scan_updater import KEPT, gated_scan
from pres.nn.time_encoding import TimeEncoding

AGES = 512  # rows of a table of ages, enough for any
PER_FACTOR = 16  # of them to a factor of e


class Chains(NamedTuple):
    """Chains of entries: one for each node, with an entry for each event of the node."""

    first: Tensor  # [c] the first entry of each
    chain: Tensor  # [h] of each entry
    other: Tensor  # [h] the entry of its event's other endpoint
    event: Tensor  # [h] its event


class MailboxScan(nn.Module):
    """``s_k = a_k ⊙ s_{k-1} + (1 - a_k) ⊙ n_k``, with ``a_k, n_k = σ(A [m_k, r_k]), tanh(N [m_k, r_k])``.

    At a node's k-th event, ``m_k`` holds its own memory and its partner's, their codes, the event's features
    and the time since the node's event before. ``r_k`` is what the node's memory reads in its mailbox by
    attention. A mail holds the sender's memory, its partner's, their codes and the event's features. Its age
    is added to key and value, rounded to about one part in `PER_FACTOR`.

    All those memories are from before the scan; with two passes they are those just before the events, as
    the first pass has found them, and teach nothing.

    Args:
        memory_dim: Size of a memory.
        code_dim: Size of a node's code.
        feature_dim: Number of an event's features.
        time_dim: Size of an encoding of time.
        heads: Attention heads.
        passes: 1, or 2.
    """

    def __init__(
        self, memory_dim: int, code_dim: int, feature_dim: int, time_dim: int, heads: int = 2, passes: int = 1
    ) -> None:
        super().__init__()
        if passes not in (1, 2):
            raise OptionError(f"passes={passes}: a scan makes 1 or 2 of them.")
        if heads < 1 or memory_dim % heads:
            raise OptionError(f"heads={heads} must divide memory_dim={memory_dim}.")
        self.heads, self.passes = heads, passes
        self.sizes = [memory_dim, memory_dim, code_dim, code_dim, feature_dim]
        mail, message = sum(self.sizes) + time_dim, sum(self.sizes) + memory_dim + time_dim  # time comes last
        self.query = nn.Linear(memory_dim, memory_dim)
        self.key = nn.Linear(mail, memory_dim, bias=False)  # a bias would cancel in the softmax
        self.value = nn.Linear(mail, memory_dim)
        self.keep, self.new = (nn.Linear(message, memory_dim) for _ in range(2))
        nn.init.constant_(self.keep.bias, KEPT)

    @property
    def of_messages(self) -> list[Tensor]:
        """The weights whose columns read a message or a mail, time last."""
        return [self.key.weight, self.value.weight, self.keep.weight, self.new.weight]

    def forward(
        self,
        begin: Tensor,
        codes: Tensor,
        features: Tensor,
        since: Tensor,
        stored: Tensor,
        ages: Tensor,
        chains: Chains,
        reading: Reading,
    ) -> tuple[Tensor, Tensor]:
        """Return the memory `[h, d]` after each entry of all chains, and that `[h, d]` which its mail holds.

        What depends on a node or an event alone is multiplied once for each.

        Args:
            begin: The memory before each chain `[c, d]`.
            codes: The code of its node `[c, code_dim]`.
            features: The features of all events `[w, feature_dim]`.
            since: The encoded time since the event before of each entry `[h, time_dim]`.
            stored: Mails from before all chains `[p, …]`, each without its age.
            ages: The encoded `ages_of` a table `[AGES, time_dim]`.
            chains: Which entries there are.
            reading: What each entry's node reads; mails are those of the entries, then the stored ones, and
                then there are the ages.
        """
        d, first, whose = begin.shape[1], chains.first, rows(chains.chain, chains.other)
        mail = torch.cat([self.key.weight, self.value.weight])
        gate = torch.cat([self.keep.weight, self.new.weight])
        known = sum(self.sizes)
        weights = torch.cat([mail[:, :known], gate[:, :known]])
        own, partner, own_code, partner_code, of_event = torch.split(weights, self.sizes, dim=1)
        value_bias = torch.cat([torch.zeros_like(self.value.bias), self.value.bias])
        bias = torch.cat([value_bias, self.keep.bias, self.new.bias])
        fixed = rows(linear(features, of_event, bias), chains.event) + rows(
            linear(codes, own_code), chains.chain
        )
        fixed = fixed + rows(linear(codes, partner_code), whose)
        of_time = linear(since, gate[:, known + d :])
        others = [linear(stored, mail[:, :known], value_bias), linear(ages, mail[:, known:])]

        def scan(of_memories: Tensor, query: Tensor) -> Tensor:
            mails, gates = torch.split(fixed + of_memories, 2 * d, dim=1)
            table = torch.cat([mails, *others]).to(begin.dtype)
            read = reading.read(query.to(begin.dtype), table)
            gates = gates + of_time + linear(read, gate[:, known : known + d])
            return gated_scan(gates, begin, first)

        with torch.set_grad_enabled(torch.is_grad_enabled() and self.passes == 1):
            of_begin = rows(linear(begin, own), chains.chain) + rows(linear(begin, partner), whose)
            after = scan(of_begin, rows(self.query(begin), chains.chain))
        if self.passes == 1:
            return after, rows(begin, chains.chain)
        before = torch.cat([after[:1], after[:-1]]).index_copy(0, first, begin.to(after.dtype))
        of_before = linear(before, own) + rows(linear(before, partner), chains.other)
        return scan(of_before, self.query(before)), before


def age_rows(age: Tensor, time: TimeEncoding) -> Tensor:
    """Return which row of a table each age is nearest to."""
    row = torch.round(torch.log1p(age.double() / time.scale) * PER_FACTOR)
    return row.long().clamp(max=AGES - 1)


def ages_of(time: TimeEncoding) -> Tensor:
    """Return the encoded ages `[AGES, time_dim]` of a table."""
    row = torch.arange(AGES, device=time.frequency.device, dtype=torch.float64)
    encoded: Tensor = time(torch.expm1(row / PER_FACTOR) * time.scale)
    return encoded
