"""A memory update that reads mailboxes, and is linear in the memory so that a scan makes whole chains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag, linear, pad

from pres.errors import OptionError
from pres.nn.attention import row_dots, weighted_sums
from pres.nn.ops import Picked, Ranking, differentiable_gradients, ranking, rows
from pres.nn.scan import Chains, before_each, gated_scan, sums_of_rows
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
        since: Picked,
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
            since: The encoded time since the event before of each entry's node.
            stored: Mails from before all chains `[p, d]`.
            ages: The encoded ages of a table `[AGES, time_dim]`.
            chains: Which entries there are.
            reading: What each entry's node reads; mails are those of the entries, then the stored ones.
        """
        d = begin.shape[1]
        own, partner, *_ = torch.split(self.mail.weight, self.sizes, dim=1)
        weight, bias = joined_gates(self.update, self.new)
        of_mail, of_read, of_since = weight[:, :d], weight[:, d : 2 * d], weight[:, 2 * d :]
        to_mails = self.mail.weight, self.mail.bias
        # Gates are linear in mails, as mails are in nodes and events, which are fewer than entries.
        to_gates = of_mail @ self.mail.weight, of_mail @ self.mail.bias + bias
        age = linear(ages, self.age.weight).to(begin.dtype)

        of_times, whose = (linear(since.table, of_since), since.place), rows(chains.chain, chains.other)

        def sent(
            weight: Tensor, bias: Tensor, memories: Tensor | None, *more: tuple[Tensor, Tensor]
        ) -> Tensor:
            """Return `[h, ...]`, mails or what gates make of them; but for memories where there are none."""
            own, partner, own_code, partner_code, feature = torch.split(weight, self.sizes, dim=1)
            of_own, of_partner = linear(encoding, own_code, bias), linear(encoding, partner_code)
            if memories is not None:
                of_own, of_partner = of_own + linear(memories, own), of_partner + linear(memories, partner)
            if features.shape[1]:
                more = (linear(features, feature), chains.event), *more
            return sums_of_rows((of_own, chains.chain), (of_partner, whose), *more)

        def scan(mails: Tensor, gates: Tensor, query: Tensor, asker: Tensor) -> tuple[Tensor, Tensor]:
            table = torch.cat([mails.to(begin.dtype), stored])
            read = reading.read(query.to(begin.dtype), asker, table, age)
            # In place: a sum of its own takes as long as a quarter of the product.
            gates = gates.addmm_(*(each.to(gates.dtype) for each in (read, of_read.T)))
            return gated_scan(gates, begin, chains.first), table[: len(mails)]

        with torch.set_grad_enabled(self.passes == 1 and torch.is_grad_enabled()):
            mails, gates = sent(*to_mails, begin), sent(*to_gates, begin, of_times)
            states, mails = scan(mails, gates, self.query(begin), chains.chain)
        if self.passes == 1:
            return states, mails
        before = before_each(states, begin, chains.first)  # what it teaches would be about the first pass
        of_memories = linear(before, own) + linear(rows(before, chains.other), partner)
        mails = sent(*to_mails, None) + of_memories
        gates = sent(*to_gates, None, of_times) + linear(of_memories, of_mail)
        return scan(mails, gates, self.query(before), torch.arange(len(chains), device=begin.device))


@dataclass(frozen=True, eq=False)
class Reading:
    """What entries read: the mail in each slot of a node's mailbox, and how old it is.

    A mail goes to a node and to its neighbours, and each reads it at several events in a row. So mails lie in
    a table, and what an entry reads is given by rows of it. A row has a part for each head, side by side.
    """

    heads: int
    mail: Tensor  # [h, k] the row of the mail in each slot; any in an empty one
    age: Tensor  # [h, k] its age, as a row of a table; `AGES` in an empty slot
    sent: int  # how many rows have a gradient: the first ones

    def read(self, query: Tensor, asker: Tensor, table: Tensor, ages: Tensor) -> Tensor:
        """Return `[h, d]`, what entries read: ``softmax(query · (mail + age)) mail``, by head.

        Args:
            query: Queries `[a, d]`.
            asker: Which of them each entry `[h]` asks by.
            table: Mails `[n, d]`: keys but for the age, and values.
            ages: What each age adds to a key `[AGES, d]`.
        """
        (h, _), heads, size = self.mail.shape, self.heads, table.shape[1] // self.heads
        if not h:
            return table[:0]
        with torch.autocast(table.device.type, enabled=False):  # rows are read as they are
            query = query * size**-0.5
            of_query, of_ages = (each.view(len(each), heads, -1).transpose(0, 1) for each in (query, ages))
            by_age = pad(torch.bmm(of_query, of_ages.transpose(1, 2)), (0, 1), value=-torch.inf)
            head = torch.arange(heads, device=asker.device).unsqueeze(1)
            place = (asker.unsqueeze(1).unsqueeze(1) + len(query) * head) * (AGES + 1) + self.age.unsqueeze(1)
            by_age = rows(by_age.flatten(), place.flatten())
            found: Tensor = _Read.apply(self, rows(query, asker), table, by_age)  # type: ignore[no-untyped-call]
            return found

    @cached_property
    def row(self) -> Tensor:
        """The row `[heads h, k]` of the mail in each slot of all parts, in a table of parts."""
        head = torch.arange(self.heads, device=self.mail.device).unsqueeze(1)
        return (self.mail.unsqueeze(1) * self.heads + head).flatten(0, 1)

    @cached_property
    def by_row(self) -> Ranking:
        """The slots of all parts that read a mail with a gradient, sorted by its part; no places."""
        heads, (_, k) = self.heads, self.mail.shape
        slots = (self.mail.flatten() < self.sent).nonzero().squeeze(1)
        head = torch.arange(heads, device=slots.device).unsqueeze(1)
        found = ranking(self.mail.flatten().index_select(0, slots))
        order = slots.index_select(0, found.order)
        entry = torch.div(order, k, rounding_mode="floor")
        return Ranking(
            values=(found.values * heads + head).flatten(),
            place=found.place,
            order=(order + entry * ((heads - 1) * k) + head * k).flatten(),
            starts=(found.starts + len(slots) * head).flatten(),
        )


def read_plainly(reading: Reading, query: Tensor, table: Tensor, by_age: Tensor) -> Tensor:
    """Return what entries read `[h, d]`, by a copy of the mail in every slot; see `Reading.read`.

    It is given scaled queries of the entries, and the scores of ages `[heads h k]`.
    """
    (h, k), heads = reading.mail.shape, reading.heads
    copies = table[reading.mail].view(h, k, heads, -1)
    score = torch.einsum("qas,qkas->qak", query.view(h, heads, -1), copies) + by_age.view(h, heads, k)
    return torch.einsum("qak,qkas->qas", score.softmax(2), copies).flatten(1)


class _Read(torch.autograd.Function):
    """Scores, softmax and weighted means of the heads' mails, by kernels that read rows where they are."""

    @staticmethod
    def forward(ctx: Any, reading: Reading, query: Tensor, table: Tensor, by_age: Tensor) -> Tensor:
        row = reading.row
        queries, parts = (each.view(len(each) * reading.heads, -1) for each in (query, table))
        score = _dots(queries, parts, row, by_age)
        # A softmax over few columns takes seven times as long as one over few rows.
        weight = score.T.contiguous().softmax(0).T.contiguous()
        found = embedding_bag(row, parts, mode="sum", per_sample_weights=weight)
        ctx.save_for_backward(query, table, by_age, weight)
        ctx.reading = reading
        return found.view(query.shape)

    @staticmethod
    def backward(ctx: Any, of_found: Tensor) -> tuple[Tensor | None, ...]:
        reading, (query, table, by_age, weight) = ctx.reading, ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated

            def plain(query: Tensor, table: Tensor, by_age: Tensor) -> Tensor:
                return read_plainly(reading, query, table, by_age)

            given, needed = (query, table, by_age), ctx.needs_input_grad[1:]
            return None, *differentiable_gradients(plain, given, needed, of_found)
        row, by = reading.row, reading.by_row
        parts, queries, of_found = (
            each.reshape(len(each) * reading.heads, -1) for each in (table, query, of_found)
        )
        of_weight = _dots(of_found, parts, row)
        of_score = weight * (of_weight - (weight * of_weight).sum(1, keepdim=True))
        of_query = embedding_bag(row, parts, mode="sum", per_sample_weights=of_score)
        asking = torch.div(by.order, row.shape[1], rounding_mode="floor")
        of_score, weight = of_score.flatten(), weight.flatten()
        of_mails = weighted_sums(of_found, asking, by.starts, rows(weight, by.order))
        of_mails += weighted_sums(queries, asking, by.starts, rows(of_score, by.order))
        of_table = torch.zeros_like(parts).index_copy_(0, by.values, of_mails).view_as(table)
        return None, of_query.view_as(query), of_table, of_score


def _dots(vectors: Tensor, table: Tensor, row: Tensor, add: Tensor | None = None) -> Tensor:
    """Return `[q, k]`, the inner products of each vector `[q, d]` with its rows of a table."""
    starts = torch.arange(0, row.numel(), row.shape[1], device=row.device)
    return row_dots([vectors], [table], [row.flatten()], starts, add).view_as(row)


def age_rows(age: Tensor) -> Tensor:
    """Return which row of a table each age `[n]`, in the unit of an encoding, is nearest to."""
    return torch.round(torch.log1p(age.double()) * PER_FACTOR).long().clamp(max=AGES - 1)


def ages_of(device: torch.device) -> Tensor:
    """Return the ages `[AGES]` of a table's rows."""
    return torch.expm1(torch.arange(AGES, device=device, dtype=torch.float64) / PER_FACTOR)
