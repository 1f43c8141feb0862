"""Attention whose keys and values are never made, over rows that are never copied.

A key is linear in the row it is made from, so a query can be turned into the rows' space instead: the score
of a row is ``(Wₖᵀ q) · row``. Values are linear too: the weighted mean of values is ``Wᵥ`` of the weighted
mean of rows. What is left between the two is `attend`: scores, softmax and weighted means of rows that lie in
tables, some of them read by many queries. Its cost is that of reading each row twice, whatever a key's size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from pres.nn.dropout import Dropout
from pres.nn.gather import Picked
from pres.ranking import Ranking, ranking


@dataclass(frozen=True, eq=False)
class Asked:
    """Queries that may share their vectors: who asks each of them, and which of its slots hold something."""

    mask: Tensor  # [q, k] bool
    asker: Tensor | None = None  # [q]; None: each has a vector of its own
    ranked: Ranking | None = None  # of the askers, where that is known already

    @cached_property
    def by_asker(self) -> Ranking:
        """The queries sorted by their asker."""
        assert self.asker is not None
        return ranking(self.asker) if self.ranked is None else self.ranked

    def asker_of(self, queries: Tensor) -> Tensor:
        """Return the askers `[...]` of queries `[...]`."""
        return queries if self.asker is None else self.asker[queries]

    def of_each(self, vectors: Tensor) -> Tensor:
        """Return the vectors `[..., q, d]` of the queries from those of the askers `[..., m, d]`."""
        return vectors if self.asker is None else vectors.index_select(-2, self.asker)


class LinearAttention(nn.Module):
    """Heads whose keys and values are linear in rows of several tables, taken side by side.

    Args:
        query_dim: Size of what queries are made from.
        row_dim: Size of a row, over all tables.
        dim: Size of the result.
        heads: Attention heads.
        dropout: Of the weights.
    """

    def __init__(self, query_dim: int, row_dim: int, dim: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(query_dim, dim)
        self.key = nn.Linear(row_dim, dim, bias=False)  # a bias would cancel in the softmax
        self.value = nn.Linear(row_dim, dim)
        self.dropout = Dropout(dropout)

    def read(self, query: Tensor, rows: Sequence[Picked], asked: Asked) -> Tensor:
        """Return `[q, dim]` from the askers' queries `[m, dim]`, which ``query`` made, and rows per slot."""
        dtype = self.key.weight.dtype  # whatever autocast made of what was given
        query = query.to(dtype)
        rows = [replace(part, table=part.table.to(dtype)) for part in rows]
        keep = self.dropout.factors(self.heads, *asked.mask.shape, like=query)
        weights = self.key.weight, self.value.weight, self.value.bias
        with torch.autocast(query.device.type, enabled=False):  # rows are read as they are
            return attend(query, *weights, rows, asked, self.heads, keep)


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor,
    rows: Sequence[Picked],
    asked: Asked,
    heads: int,
    keep: Tensor | None = None,
) -> Tensor:
    """Return the weighted means `[q, dim]` of the rows' values, head by head.

    The weights are the softmax of scores over the slots of a query that its mask leaves, and nothing where it
    leaves none.

    Args:
        query: The askers' queries `[m, dim]`.
        key: Rows, side by side, into keys `[dim, d]`.
        value: Rows into values `[dim, d]`,
        bias: and what is added to them `[dim]`.
        rows: What each slot reads in each table.
        asked: Who asks, and which slots hold something.
        heads: Attention heads.
        keep: Factors of the weights `[heads, q, k]`, as dropout has them.
    """
    tables = [part.table for part in rows]
    found: Tensor = _Attend.apply(  # type: ignore[no-untyped-call]
        rows, asked, heads, keep, query, key, value, bias, *tables
    )
    return found


def attend_plainly(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    bias: Tensor,
    rows: Sequence[Picked],
    asked: Asked,
    heads: int,
    keep: Tensor | None = None,
) -> Tensor:
    """Return what `attend` does, by a key and a value for every slot; it can be differentiated twice."""
    (q, k), size = asked.mask.shape, query.shape[1] // heads
    copies = torch.cat([part.table[part.place] for part in rows], dim=2)
    keys, values = ((copies @ weight.T).view(q, k, heads, size) for weight in (key, value))
    queries = asked.of_each(query).view(q, heads, size)
    weight = _softmax(torch.einsum("qhs,qkhs->hqk", queries, keys) * size**-0.5, asked.mask)
    weight = weight if keep is None else weight * keep
    return torch.einsum("hqk,qkhs->qhs", weight, values + bias.view(heads, size)).reshape(q, -1)


def _softmax(score: Tensor, mask: Tensor) -> Tensor:
    weight = score.masked_fill(~mask, torch.finfo(score.dtype).min).softmax(-1)
    return weight.masked_fill(~mask, 0)


class _Attend(torch.autograd.Function):
    """Scores, softmax and weighted means, by kernels that read rows where they are."""

    @staticmethod
    def forward(
        ctx: Any,
        rows: Sequence[Picked],
        asked: Asked,
        heads: int,
        keep: Tensor | None,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        bias: Tensor,
        *tables: Tensor,
    ) -> Tensor:
        (q, k), (m, dim) = asked.mask.shape, query.shape
        size, widths = dim // heads, [table.shape[1] for table in tables]
        of_head = (query * size**-0.5).view(m, heads, size).transpose(0, 1)
        # A query in the rows' space, for all tables side by side.
        turned = torch.split(torch.bmm(of_head, key.view(heads, size, -1)).view(heads * m, -1), widths, dim=1)
        asking = torch.arange(heads * q, device=query.device).repeat_interleave(k)
        asker = asking if asked.asker is None else _per_head(asked.asker.repeat_interleave(k), heads, m)
        places = [part.place.repeat(heads, 1).flatten() for part in rows]
        score = _dots(turned[0], tables[0], asker, places[0])
        for vectors, table, place in zip(turned[1:], tables[1:], places[1:], strict=True):
            score += _dots(vectors, table, asker, place)
        weight = _softmax(score.view(heads, q, k), asked.mask)
        kept = weight if keep is None else weight * keep
        starts, flat = torch.arange(0, heads * q * k, k, device=query.device), kept.flatten()
        reads = [
            _weighted_sums(table, place, starts, flat) for table, place in zip(tables, places, strict=True)
        ]
        total = kept.sum(-1, keepdim=True)
        found = total * bias.view(heads, 1, size)
        for read, matrix in zip(reads, torch.split(value.view(heads, size, -1), widths, dim=2), strict=True):
            found.baddbmm_(read.view(heads, q, -1), matrix.transpose(1, 2))
        ctx.save_for_backward(query, key, value, bias, *tables, weight, total, *reads)
        ctx.rows, ctx.asked, ctx.keep, ctx.turned = rows, asked, keep, turned
        ctx.asking, ctx.places = asking, places
        return found.transpose(0, 1).reshape(q, dim)

    @staticmethod
    def backward(ctx: Any, of_found: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(of_found.device.type, enabled=False):
            return _Attend._backward(ctx, of_found)

    @staticmethod
    def _backward(ctx: Any, of_found: Tensor) -> tuple[Tensor | None, ...]:
        rows, asked, keep, n = ctx.rows, ctx.asked, ctx.keep, len(ctx.rows)
        query, key, value, bias, *rest = ctx.saved_tensors
        tables, (weight, total, *reads) = rest[:n], rest[n:]
        needed = ctx.needs_input_grad[4:]
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated
            given = (query, key, value, bias, *tables)
            found = _plain_gradients(given, rows, asked, keep, len(weight), of_found, needed)
            return None, None, None, None, *found
        (heads, q, k), (m, dim) = weight.shape, query.shape
        size, widths = dim // heads, [table.shape[1] for table in tables]
        of_heads = of_found.view(q, heads, size).transpose(0, 1).contiguous()  # [heads, q, size]
        of_total = torch.bmm(of_heads, bias.view(heads, size, 1))
        of_bias = (of_heads * total).sum(1).flatten()
        of_key, of_value = torch.empty_like(key), torch.empty_like(value)
        of_key_parts, of_value_parts, keys, values = (
            torch.split(matrix.view(heads, size, -1), widths, dim=2)
            for matrix in (of_key, of_value, key, value)
        )
        of_weight, of_reads = of_total.expand(heads, q, k).flatten(), []
        for i, (table, place) in enumerate(zip(tables, ctx.places, strict=True)):
            of_value_parts[i].copy_(torch.bmm(of_heads.transpose(1, 2), reads[i].view(heads, q, -1)))
            of_reads.append(torch.bmm(of_heads, values[i]).view(heads * q, -1))
            of_weight += _dots(of_reads[i], table, ctx.asking, place)
        of_weight, kept = of_weight.view(heads, q, k), weight
        if keep is not None:
            of_weight, kept = of_weight * keep, weight * keep
        of_score = weight * (of_weight - (weight * of_weight).sum(-1, keepdim=True))
        of_head = (query * size**-0.5).view(m, heads, size).transpose(0, 1)
        of_query, of_tables = torch.zeros_like(of_head, memory_format=torch.contiguous_format), []
        for i, (part, table, place) in enumerate(zip(rows, tables, ctx.places, strict=True)):
            of_turned = _of_vectors(asked, part, table, place, of_score, m)
            of_query.baddbmm_(of_turned, keys[i].transpose(1, 2))
            of_key_parts[i].copy_(torch.bmm(of_head.transpose(1, 2), of_turned))
            wanted = needed[4 + i]
            of_tables.append(
                _of_table(asked, part, ctx.turned[i], of_reads[i], kept, of_score) if wanted else None
            )
        of_query = of_query.transpose(0, 1).reshape(m, dim).mul_(size**-0.5)
        return None, None, None, None, of_query, of_key, of_value, of_bias, *of_tables


def _of_vectors(asked: Asked, part: Picked, table: Tensor, place: Tensor, of_score: Tensor, m: int) -> Tensor:
    """Return the gradient `[heads, m, d]` of the askers' vectors: the rows each read, by their scores'."""
    heads, q, k = of_score.shape
    if asked.asker is None:
        starts = torch.arange(0, heads * q * k, k, device=place.device)
        return _weighted_sums(table, place, starts, of_score.flatten()).view(heads, q, -1)
    by = asked.by_asker
    sums = _weighted_sums(
        table,
        part.place[by.order].repeat(heads, 1).flatten(),
        _per_head(by.starts * k, heads, q * k),
        of_score[:, by.order].flatten(),
    ).view(heads, len(by.values), -1)
    if len(by.values) == m:
        return sums
    return sums.new_zeros(heads, m, sums.shape[2]).index_copy_(1, by.values, sums)


def _of_table(
    asked: Asked, part: Picked, vectors: Tensor, of_read: Tensor, kept: Tensor, of_score: Tensor
) -> Tensor:
    """Return the gradient `[n, d]` of a table: of each row, from all slots that read it."""
    (heads, q, k), by = kept.shape, part.by_place
    head = torch.arange(heads, device=kept.device)
    asking = torch.div(by.order, k, rounding_mode="floor")  # the query of each slot, sorted by what it reads
    starts, m = by.starts * heads, len(vectors) // heads
    sums = _weighted_sums(
        of_read,
        (asking.unsqueeze(1) + head * q).flatten(),
        starts,
        kept.view(heads, -1).T[by.order].flatten(),
    )
    sums += _weighted_sums(
        vectors,
        (asked.asker_of(asking).unsqueeze(1) + head * m).flatten(),
        starts,
        of_score.view(heads, -1).T[by.order].flatten(),
    )
    return part.spread(sums)


def _plain_gradients(
    given: Sequence[Tensor],
    rows: Sequence[Picked],
    asked: Asked,
    keep: Tensor | None,
    heads: int,
    of_found: Tensor,
    needed: Sequence[bool],
) -> list[Tensor | None]:
    given = [tensor.view_as(tensor) for tensor in given]  # one may depend on another: not here
    query, key, value, bias, *tables = given
    picked = [Picked(table, part.place) for table, part in zip(tables, rows, strict=True)]
    found = attend_plainly(query, key, value, bias, picked, asked, heads, keep)
    wanted = [tensor for tensor, need in zip(given, needed, strict=True) if need]
    gradients = iter(torch.autograd.grad(found, wanted, of_found, create_graph=True))
    return [next(gradients) if need else None for need in needed]


def _dots(vectors: Tensor, table: Tensor, vector: Tensor, place: Tensor) -> Tensor:
    """Return `[s]`, the inner products of ``vectors[vector]`` and ``table[place]``, without a copy of either.

    It is what the gradient of a weighted sum by its weights takes, hence the name of the kernel.
    """
    found: Tensor = torch.ops.aten._embedding_bag_per_sample_weights_backward(
        vectors, table, place, place[:0], vector, 0
    )
    return found


def _weighted_sums(table: Tensor, place: Tensor, starts: Tensor, weight: Tensor) -> Tensor:
    """Return `[s, d]`, the sums of ``weight * table[place]`` from each start to the next."""
    return torch.embedding_bag(table, place, starts, False, 0, False, weight)[0]


def _per_head(places: Tensor, heads: int, size: int) -> Tensor:
    """Return places within one head's ``size`` as places among those of all heads, head after head."""
    return (places + size * torch.arange(heads, device=places.device).unsqueeze(1)).flatten()
