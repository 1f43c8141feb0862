"""Attention over mailboxes that share their mails: a key and a value is made once for each mail.

A mail goes to a node and to its neighbours, and each reads it at several events in a row. So keys and values
lie in a table, and what a query reads is given by places in it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import Tensor

from pres.nn.attention import dots, softmax, weighted_sums
from pres.nn.slots import Slots
from pres.nn.twice import differentiable_gradients
from pres.ranking import Ranking, ranking


@dataclass(frozen=True, eq=False)
class Reading:
    """What queries read: in each filled slot the sum of two rows, those of a mail and of its age.

    There are queries and rows for each head, one head after another.
    """

    heads: int
    slots: Slots  # of one head's queries
    mail: Tensor  # [s] the mail's row
    age: Tensor  # [s] the age's row
    table: int  # rows of one head

    @cached_property
    def of_heads(self) -> Slots:
        """The slots of all heads' queries."""
        slots = self.slots
        q, k = slots.mask.shape
        head = torch.arange(self.heads, device=slots.mask.device).unsqueeze(1)
        return Slots(
            slots.mask.repeat(self.heads, 1),
            (slots.filled + head * (q * k)).flatten(),
            (slots.query + head * q).flatten(),
            (slots.starts + head * len(slots)).flatten(),
        )

    @cached_property
    def query(self) -> Tensor:
        """The query `[2 s heads]` that reads each row."""
        return self.of_heads.query.repeat_interleave(2)

    @cached_property
    def row(self) -> Tensor:
        """Each row that is read `[2 s heads]`: a mail's, its age's, the next mail's."""
        both = torch.stack([self.mail, self.age], dim=1).flatten()
        return (both + self._head * self.table).flatten()

    @cached_property
    def by_row(self) -> Ranking:
        """What is read `[2 s heads]`, sorted by the row."""
        found = ranking(torch.stack([self.mail, self.age], dim=1).flatten())
        n = len(found.order)
        return Ranking(
            values=(found.values + self._head * self.table).flatten(),
            place=(found.place + self._head * len(found.values)).flatten(),
            order=(found.order + self._head * n).flatten(),
            starts=(found.starts + self._head * n).flatten(),
        )

    @property
    def _head(self) -> Tensor:
        return torch.arange(self.heads, device=self.mail.device).unsqueeze(1)

    def read(self, query: Tensor, table: Tensor) -> Tensor:
        """Return `[q, d]`, the values that queries `[q, d]` read, from keys and values side by side.

        Args:
            query: The queries of all heads, side by side.
            table: Keys of all heads, then values of all heads `[table, 2 d]`.
        """
        if not len(query):
            return query
        q, dim = query.shape
        size = dim // self.heads
        of_head = query.view(q, self.heads, size).transpose(0, 1).reshape(-1, size) * size**-0.5
        keys, values = table.view(-1, 2, self.heads, size).permute(1, 2, 0, 3).reshape(2, -1, size).unbind(0)
        found: Tensor = _Read.apply(self, of_head, keys, values)  # type: ignore[no-untyped-call]
        return found.view(self.heads, q, size).transpose(0, 1).reshape(q, dim)


def read_plainly(reading: Reading, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
    """Return what `Reading.read` does of each head, by a key and a value for every slot."""
    slots = reading.of_heads
    key, value = (
        slots.pad(table[reading.row].view(-1, 2, table.shape[1]).sum(1).T).permute(1, 2, 0)
        for table in (keys, values)
    )
    weight = softmax(torch.einsum("qs,qks->qk", query, key), slots)
    return torch.einsum("qk,qks->qs", weight, value)


class _Read(torch.autograd.Function):
    """Scores, softmax and weighted means of the heads' values, by kernels that read rows where they are."""

    @staticmethod
    def forward(ctx: Any, reading: Reading, query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        slots = reading.of_heads
        score = dots(query, keys, reading.query, reading.row).view(-1, 2).sum(1)
        weight = softmax(slots.pad(score), slots)
        ctx.save_for_backward(query, keys, values, weight)
        ctx.reading = reading
        return weighted_sums(values, reading.row, 2 * slots.starts, _twice(slots.pack(weight)))

    @staticmethod
    def backward(ctx: Any, of_found: Tensor) -> tuple[Tensor | None, ...]:
        reading, (query, keys, values, weight) = ctx.reading, ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated

            def plain(query: Tensor, keys: Tensor, values: Tensor) -> Tensor:
                return read_plainly(reading, query, keys, values)

            needed = ctx.needs_input_grad[1:]
            return None, *differentiable_gradients(plain, (query, keys, values), needed, of_found)
        slots, by, of_found = reading.of_heads, reading.by_row, of_found.contiguous()
        of_weight = slots.pad(dots(of_found, values, reading.query, reading.row).view(-1, 2).sum(1))
        of_score = weight * (of_weight - (weight * of_weight).sum(-1, keepdim=True))
        score, kept = _twice(slots.pack(of_score)), _twice(slots.pack(weight))
        asker = reading.query.index_select(0, by.order)
        of_keys = weighted_sums(query, asker, by.starts, score.index_select(0, by.order))
        of_values = weighted_sums(of_found, asker, by.starts, kept.index_select(0, by.order))
        return (
            None,
            weighted_sums(keys, reading.row, 2 * slots.starts, score),
            torch.zeros_like(keys).index_copy_(0, by.values, of_keys),
            torch.zeros_like(values).index_copy_(0, by.values, of_values),
        )


def _twice(values: Tensor) -> Tensor:
    """Return values `[s]` of slots as those of the two rows of each."""
    return values.unsqueeze(1).expand(-1, 2).flatten()
