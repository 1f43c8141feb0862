"""Attention over mailboxes that share their mails: each mail is projected once, wherever it is read.

A mail goes to a node and to its neighbours, and each reads it at several events in a row. So the projected
mails lie in a table, and what a query reads is given by places in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from pres.nn.attention import dots, softmax, weighted_sums
from pres.nn.ops import Ranking, Slots, differentiable_gradients, ranking, rows


@dataclass(frozen=True, eq=False)
class Reading:
    """What queries read: the mail in each filled slot, and how old it is.

    In a head's work there are queries and mails of its own. The slots of all heads are one head after
    another, but the queries' and mails' rows are as they lie in memory, those of one with all its heads.
    """

    heads: int
    slots: Slots  # of one head's queries
    mail: Tensor  # [s] the mail in each filled slot: below `sent` one that is given, else a stored one
    age: Tensor  # [s] its age, as a row of a table
    sent: int

    def read(self, query: Tensor, mails: Tensor, stored: Tensor, ages: Tensor) -> Tensor:
        """Return `[q, d]`, what queries `[q, d]` read: ``softmax(query · (mail + age)) mail``, by head.

        Args:
            query: The queries.
            mails: Mails `[sent, d]`: keys but for the age, and values.
            stored: More of them `[p, d]`, which have no gradient.
            ages: What each age adds to a key `[AGES, d]`.
        """
        if not len(query):
            return query
        with torch.autocast(query.device.type, enabled=False):  # rows are read as they are
            q, dim = query.shape
            size = dim // self.heads
            query = query * size**-0.5
            by_head = (each.view(len(each), self.heads, size).transpose(0, 1) for each in (query, ages))
            of_query, of_ages = by_head
            by_age = rows(torch.bmm(of_query, of_ages.transpose(1, 2)).flatten(), self._asked_age)
            flat = (each.reshape(-1, size) for each in (query, mails, stored))
            found: Tensor = _Read.apply(self, *flat, by_age)  # type: ignore[no-untyped-call]
            return found.view(self.heads, q, size).transpose(0, 1).reshape(q, dim)

    @cached_property
    def of_heads(self) -> Slots:
        """The slots of all heads' queries, head after head."""
        slots = self.slots
        q, k = slots.mask.shape
        return Slots(
            slots.mask.repeat(self.heads, 1),
            self._after_another(slots.filled, q * k),
            self._after_another(slots.query, q),
            self._after_another(slots.starts, len(slots)),
        )

    @cached_property
    def query(self) -> Tensor:
        """The query's row `[heads s]` of each slot of all heads."""
        return self._rows(self.slots.query)

    @cached_property
    def row(self) -> Tensor:
        """The mail's row `[heads s]` in each slot of all heads."""
        return self._rows(self.mail)

    @cached_property
    def by_row(self) -> Ranking:
        """The slots of all heads that read a mail with a gradient, sorted by head and mail."""
        slots = (self.mail < self.sent).nonzero().squeeze(1)
        found = ranking(self.mail.index_select(0, slots))
        return Ranking(
            values=self._rows(found.values),
            place=self._after_another(found.place, len(found.values)),
            order=self._after_another(slots.index_select(0, found.order), len(self.mail)),
            starts=self._after_another(found.starts, len(slots)),
        )

    @cached_property
    def _asked_age(self) -> Tensor:
        """Where the score of each slot's age is among those of all heads, queries and ages."""
        return self.of_heads.query * AGES + self.age.repeat(self.heads)

    def _after_another(self, places: Tensor, size: int) -> Tensor:
        """Return places among ``size`` of one head as those of all heads, head after head."""
        return (places + size * torch.arange(self.heads, device=places.device).unsqueeze(1)).flatten()

    def _rows(self, places: Tensor) -> Tensor:
        """Return the heads' rows of places, head after head, where a place has all heads' side by side."""
        return (places * self.heads + torch.arange(self.heads, device=places.device).unsqueeze(1)).flatten()


def read_plainly(reading: Reading, query: Tensor, mails: Tensor, stored: Tensor, by_age: Tensor) -> Tensor:
    """Return what each head reads `[heads q, size]`, by a copy of the mail in every slot.

    It is given rows of the heads, and the scores of ages, see `Reading`.
    """
    slots = reading.of_heads
    copies = torch.cat([mails, stored])[reading.row]
    score = (query[reading.query] * copies).sum(1) + by_age
    weight = softmax(slots.pad(score), slots)
    return torch.einsum("qk,sqk->qs", weight, slots.pad(copies.T))


class _Read(torch.autograd.Function):
    """Scores, softmax and weighted means of the heads' mails, by kernels that read rows where they are."""

    @staticmethod
    def forward(
        ctx: Any, reading: Reading, query: Tensor, mails: Tensor, stored: Tensor, by_age: Tensor
    ) -> Tensor:
        slots, table = reading.of_heads, torch.cat([mails, stored])
        score = dots(query, table, reading.query, reading.row).add_(by_age)
        weight = softmax(slots.pad(score), slots)
        ctx.save_for_backward(query, mails, stored, by_age, weight)
        ctx.reading, ctx.table = reading, table
        return weighted_sums(table, reading.row, slots.starts, slots.pack(weight))

    @staticmethod
    def backward(ctx: Any, of_found: Tensor) -> tuple[Tensor | None, ...]:
        reading, table, (query, mails, stored, by_age, weight) = ctx.reading, ctx.table, ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated

            def plain(query: Tensor, mails: Tensor, stored: Tensor, by_age: Tensor) -> Tensor:
                return read_plainly(reading, query, mails, stored, by_age)

            given, needed = (query, mails, stored, by_age), ctx.needs_input_grad[1:]
            return None, *differentiable_gradients(plain, given, needed, of_found)
        slots, by, of_found = reading.of_heads, reading.by_row, of_found.contiguous()
        of_weight = slots.pad(dots(of_found, table, slots.query, reading.row))
        of_score = slots.pack(weight * (of_weight - (weight * of_weight).sum(-1, keepdim=True)))
        kept = slots.pack(weight).index_select(0, by.order)
        by_query, by_found = (places.index_select(0, by.order) for places in (reading.query, slots.query))
        of_mails = weighted_sums(query, by_query, by.starts, of_score.index_select(0, by.order))
        of_mails += weighted_sums(of_found, by_found, by.starts, kept)
        of_query = weighted_sums(table, reading.row, slots.starts, of_score)
        return (
            None,
            of_query.view(reading.heads, -1, query.shape[1]).transpose(0, 1).reshape(query.shape),
            torch.zeros_like(mails).index_copy_(0, by.values, of_mails),
            None,
            of_score,
        )


AGES = 96  # rows of a table of ages, enough for any
PER_FACTOR = 4  # of them to a factor of e


def age_rows(age: Tensor) -> Tensor:
    """Return which row of a table each age `[n]`, in the unit of an encoding, is nearest to."""
    return torch.round(torch.log1p(age.double()) * PER_FACTOR).long().clamp(max=AGES - 1)


def ages_of(device: torch.device) -> Tensor:
    """Return the ages `[AGES]` of a table's rows."""
    return torch.expm1(torch.arange(AGES, device=device, dtype=torch.float64) / PER_FACTOR)
