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
from pres.nn.gather import rows
from pres.nn.slots import Slots
from pres.nn.twice import differentiable_gradients
from pres.ranking import Ranking, ranking


@dataclass(frozen=True, eq=False)
class Reading:
    """What queries read: the mail in each filled slot, and how old it is.

    In a head's work there are queries and mails of its own; those of all heads are one after another.
    """

    heads: int
    slots: Slots  # of one head's queries
    mail: Tensor  # [s] the mail in each filled slot, as a row of a table
    age: Tensor  # [s] its age, as a row of another
    learned: int  # rows of the first that have a gradient; they come first
    mails: int  # all its rows

    def read(self, query: Tensor, mails: Tensor, ages: Tensor) -> Tensor:
        """Return `[q, d]`, what queries `[q, d]` read: ``softmax(query · (mail + age)) mail``, by head.

        Args:
            query: The queries.
            mails: Projected mails `[mails, d]`: keys but for the age, and values.
            ages: What each age adds to a key `[ages, d]`.
        """
        if not len(query):
            return query
        size = query.shape[1] // self.heads
        of_query, of_mails, of_ages = (
            each.view(len(each), self.heads, size).transpose(0, 1) for each in (query, mails, ages)
        )
        of_query = of_query * size**-0.5
        by_age = rows(torch.bmm(of_query, of_ages.transpose(1, 2)).flatten(), self._asked_age)
        flat = (each.reshape(-1, size) for each in (of_query, of_mails))
        found: Tensor = _Read.apply(self, *flat, by_age)  # type: ignore[no-untyped-call]
        return found.view(self.heads, len(query), size).transpose(0, 1).reshape(query.shape)

    @cached_property
    def of_heads(self) -> Slots:
        """The slots of all heads' queries."""
        slots = self.slots
        q, k = slots.mask.shape
        return Slots(
            slots.mask.repeat(self.heads, 1),
            self._of_heads(slots.filled, q * k),
            self._of_heads(slots.query, q),
            self._of_heads(slots.starts, len(slots)),
        )

    @cached_property
    def row(self) -> Tensor:
        """The mail `[heads s]` in each slot of all heads' queries."""
        return self._of_heads(self.mail, self.mails)

    @cached_property
    def by_row(self) -> Ranking:
        """The slots of all heads' queries that read a mail with a gradient, sorted by the mail."""
        slots = (self.mail < self.learned).nonzero().squeeze(1)
        found = ranking(self.mail.index_select(0, slots))
        return Ranking(
            values=self._of_heads(found.values, self.mails),
            place=self._of_heads(found.place, len(found.values)),
            order=self._of_heads(slots.index_select(0, found.order), len(self.mail)),
            starts=self._of_heads(found.starts, len(slots)),
        )

    @cached_property
    def _asked_age(self) -> Tensor:
        """Where the score of each slot's age is among those of all queries and ages, see `ages_of`."""
        return self.of_heads.query * AGES + self.age.repeat(self.heads)

    def _of_heads(self, places: Tensor, size: int) -> Tensor:
        """Return places among ``size`` of one head as those among all heads'."""
        return (places + size * torch.arange(self.heads, device=places.device).unsqueeze(1)).flatten()


def read_plainly(reading: Reading, query: Tensor, mails: Tensor, by_age: Tensor) -> Tensor:
    """Return what `Reading.read` does of each head, by a copy of the mail in every slot."""
    slots = reading.of_heads
    copies = slots.pad(mails[reading.row].T).permute(1, 2, 0)
    weight = softmax(torch.einsum("qs,qks->qk", query, copies) + slots.pad(by_age), slots)
    return torch.einsum("qk,qks->qs", weight, copies)


class _Read(torch.autograd.Function):
    """Scores, softmax and weighted means of the heads' mails, by kernels that read rows where they are."""

    @staticmethod
    def forward(ctx: Any, reading: Reading, query: Tensor, mails: Tensor, by_age: Tensor) -> Tensor:
        slots = reading.of_heads
        score = dots(query, mails, slots.query, reading.row).add_(by_age)
        weight = softmax(slots.pad(score), slots)
        ctx.save_for_backward(query, mails, by_age, weight)
        ctx.reading = reading
        return weighted_sums(mails, reading.row, slots.starts, slots.pack(weight))

    @staticmethod
    def backward(ctx: Any, of_found: Tensor) -> tuple[Tensor | None, ...]:
        reading, (query, mails, by_age, weight) = ctx.reading, ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated

            def plain(query: Tensor, mails: Tensor, by_age: Tensor) -> Tensor:
                return read_plainly(reading, query, mails, by_age)

            needed = ctx.needs_input_grad[1:]
            return None, *differentiable_gradients(plain, (query, mails, by_age), needed, of_found)
        slots, by, of_found = reading.of_heads, reading.by_row, of_found.contiguous()
        of_weight = slots.pad(dots(of_found, mails, slots.query, reading.row))
        of_score = slots.pack(weight * (of_weight - (weight * of_weight).sum(-1, keepdim=True)))
        asker, kept = slots.query.index_select(0, by.order), slots.pack(weight)
        of_mails = weighted_sums(query, asker, by.starts, of_score.index_select(0, by.order))
        of_mails += weighted_sums(of_found, asker, by.starts, kept.index_select(0, by.order))
        return (
            None,
            weighted_sums(mails, reading.row, slots.starts, of_score),
            torch.zeros_like(mails).index_copy_(0, by.values, of_mails),
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
