"""A memory update that reads mailboxes, and is linear in the memory so that a scan makes whole chains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import linear

from pres.errors import OptionError
from pres.nn.attention import dots, softmax, weighted_sums
from pres.nn.ops import Ranking, Slots, differentiable_gradients, ranking, rows
from pres.nn.scan import Chains, before_each, gated_scan
from pres.nn.scan_updater import UPDATED, joined_gates

AGES = 96  # rows of a table of ages, enough for any
PER_FACTOR = 4  # of them to a factor of e


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
        first, chain, other, d = chains.first, chains.chain, chains.other, begin.shape[1]
        own, partner, own_code, partner_code, feature = torch.split(self.mail.weight, self.sizes, dim=1)
        weight, bias = joined_gates(self.update, self.new)
        of_mail, of_read, of_since = weight[:, :d], weight[:, d : 2 * d], weight[:, 2 * d :]
        age = linear(ages, self.age.weight).to(begin.dtype)

        def scan(mails: Tensor, query: Tensor, shared: Chains | None) -> tuple[Tensor, Tensor]:
            table = torch.cat([mails.to(begin.dtype), stored])
            read, mails = reading.read(query.to(begin.dtype), table, age, shared), table[: len(mails)]
            gates = linear(read, of_read).add_(linear(mails, of_mail)).add_(linear(since, of_since, bias))
            return gated_scan(gates, begin, first), mails

        of_event = linear(features, feature, self.mail.bias)
        of_own, of_partner = linear(encoding, own_code), linear(encoding, partner_code)
        if self.passes == 1:
            of_own, of_partner = of_own + linear(begin, own), of_partner + linear(begin, partner)
        mails = (
            rows(of_event, chains.event).add_(rows(of_own, chain)).add_(rows(of_partner, rows(chain, other)))
        )
        if self.passes == 1:
            return scan(mails, self.query(begin), chains)
        with torch.no_grad():  # what the second pass reads of the first teaches nothing
            first_mails = mails + rows(linear(begin, own), chain)
            first_mails += rows(linear(begin, partner), rows(chain, other))
            states, _ = scan(first_mails, self.query(begin), chains)
            before = before_each(states, begin, first)
        mails = torch.addmm(torch.addmm(mails, before, own.T), rows(before, other), partner.T)
        return scan(mails, self.query(before), None)


@dataclass(frozen=True, eq=False)
class Reading:
    """What entries read: the mail in each filled slot of a node's mailbox, and how old it is.

    A mail goes to a node and to its neighbours, and each reads it at several events in a row. So mails lie in
    a table, each projected once, and what an entry reads is given by rows of it. A row has a part for each
    head, side by side.
    """

    heads: int
    slots: Slots  # of the entries
    mail: Tensor  # [s] the row of the mail in each filled slot
    age: Tensor  # [s] its age, as a row of a table
    sent: int  # how many rows have a gradient: the first ones

    def read(self, query: Tensor, table: Tensor, ages: Tensor, shared: Chains | None = None) -> Tensor:
        """Return `[h, d]`, what entries read: ``softmax(query · (mail + age)) mail``, by head.

        Args:
            query: A query of each entry `[h, d]`; or of each chain `[c, d]`, where they are ``shared``.
            table: Mails `[n, d]`: keys but for the age, and values.
            ages: What each age adds to a key `[AGES, d]`.
            shared: The chains whose entries share a query.
        """
        (h, _), heads, dim = self.slots.mask.shape, self.heads, table.shape[1]
        if not h:
            return table[:0]
        with torch.autocast(table.device.type, enabled=False):  # rows are read as they are
            query = query * (dim // heads) ** -0.5
            asker, starts = self.slots.query, self.slots.starts
            if shared is not None:  # the slots of a chain lie together
                asker, starts = rows(shared.chain, asker), rows(starts, shared.first)
            of_query, of_ages = (each.view(len(each), heads, -1).transpose(0, 1) for each in (query, ages))
            place = self._per_head(asker * AGES + self.age, len(query) * AGES)
            by_age = rows(torch.bmm(of_query, of_ages.transpose(1, 2)).flatten(), place)
            found: Tensor = _Read.apply(self, asker, starts, query, table, by_age)  # type: ignore[no-untyped-call]
            return found

    @cached_property
    def row(self) -> Tensor:
        """The row `[heads s]` of the mail in each slot of all heads, head after head, in a table of parts."""
        return self._parts(self.mail)

    @cached_property
    def by_row(self) -> Ranking:
        """The slots of all heads that read a mail with a gradient, sorted by head and mail."""
        slots = (self.mail < self.sent).nonzero().squeeze(1)
        found = ranking(self.mail.index_select(0, slots))
        return Ranking(
            values=self._parts(found.values),
            place=self._per_head(found.place, len(found.values)),
            order=self._per_head(slots.index_select(0, found.order), len(self.mail)),
            starts=self._per_head(found.starts, len(slots)),
        )

    def _per_head(self, places: Tensor, size: int) -> Tensor:
        """Return places among ``size`` of one head as those of all heads, head after head."""
        return (places + size * torch.arange(self.heads, device=places.device).unsqueeze(1)).flatten()

    def _parts(self, places: Tensor) -> Tensor:
        """Return the rows of all heads, head after head, in a table whose rows are such parts."""
        return (places * self.heads + torch.arange(self.heads, device=places.device).unsqueeze(1)).flatten()


def read_plainly(reading: Reading, asker: Tensor, query: Tensor, table: Tensor, by_age: Tensor) -> Tensor:
    """Return what entries read `[h, d]`, by a copy of the mail in every slot; see `Reading.read`.

    It is given scaled queries, which of them each slot asks by, and the scores of ages `[heads s]`.
    """
    slots, heads = reading.slots, reading.heads
    queries, copies = (each.view(len(each), heads, -1) for each in (query[asker], table[reading.mail]))
    score = (queries * copies).sum(2).T + by_age.view(heads, -1)
    weight = softmax(slots.pad(score), slots)
    return torch.einsum("aqk,saqk->qas", weight, slots.pad(copies.permute(2, 1, 0))).flatten(1)


class _Read(torch.autograd.Function):
    """Scores, softmax and weighted means of the heads' mails, by kernels that read rows where they are."""

    @staticmethod
    def forward(
        ctx: Any,
        reading: Reading,
        asker: Tensor,
        starts: Tensor,
        query: Tensor,
        table: Tensor,
        by_age: Tensor,
    ) -> Tensor:
        slots, heads = reading.slots, reading.heads
        parts, s = table.view(len(table) * heads, -1), len(slots)
        asking = reading._parts(asker)
        score = dots(query.view(len(query) * heads, -1), parts, asking, reading.row).add_(by_age)
        weight = softmax(slots.pad(score.view(heads, s)), slots)
        found = weighted_sums(
            parts, reading.row, reading._per_head(slots.starts, s), slots.pack(weight).flatten()
        )
        ctx.save_for_backward(asker, starts, query, table, by_age, weight)
        ctx.reading, ctx.asking = reading, asking
        return found.view(heads, -1, parts.shape[1]).transpose(0, 1).reshape(-1, table.shape[1])

    @staticmethod
    def backward(ctx: Any, of_found: Tensor) -> tuple[Tensor | None, ...]:
        reading, (asker, starts, query, table, by_age, weight) = ctx.reading, ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated

            def plain(query: Tensor, table: Tensor, by_age: Tensor) -> Tensor:
                return read_plainly(reading, asker, query, table, by_age)

            given, needed = (query, table, by_age), ctx.needs_input_grad[3:]
            return None, None, None, *differentiable_gradients(plain, given, needed, of_found)
        slots, heads, by, asking = reading.slots, reading.heads, reading.by_row, ctx.asking
        parts, queries, of_found = (
            each.reshape(len(each) * heads, -1) for each in (table, query, of_found.contiguous())
        )
        finding = reading._parts(slots.query)
        of_weight = slots.pad(dots(of_found, parts, finding, reading.row).view(heads, -1))
        of_score = slots.pack(weight * (of_weight - (weight * of_weight).sum(-1, keepdim=True))).flatten()
        kept = slots.pack(weight).flatten()
        of_mails = weighted_sums(of_found, rows(finding, by.order), by.starts, rows(kept, by.order))
        of_mails += weighted_sums(queries, rows(asking, by.order), by.starts, rows(of_score, by.order))
        of_table = torch.zeros_like(parts).index_copy_(0, by.values, of_mails).view_as(table)
        of_query = weighted_sums(parts, reading.row, reading._per_head(starts, len(slots)), of_score)
        of_query = of_query.view(heads, -1, parts.shape[1]).transpose(0, 1).reshape(query.shape)
        return None, None, None, of_query, of_table, of_score


def age_rows(age: Tensor) -> Tensor:
    """Return which row of a table each age `[n]`, in the unit of an encoding, is nearest to."""
    return torch.round(torch.log1p(age.double()) * PER_FACTOR).long().clamp(max=AGES - 1)


def ages_of(device: torch.device) -> Tensor:
    """Return the ages `[AGES]` of a table's rows."""
    return torch.expm1(torch.arange(AGES, device=device, dtype=torch.float64) / PER_FACTOR)
