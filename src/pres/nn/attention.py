"""Attention whose keys and values are never made, over rows that are never copied.

A key is linear in the row it is made from, so a query can be turned into the rows' space instead: the score
of a row is ``(Wₖᵀ q) · row``. Values are linear too: the weighted mean of values is ``Wᵥ`` of the weighted
mean of rows. What is left between the two is `attend`: scores, softmax and weighted means of rows that lie in
tables, some of them read by many queries. Its cost is that of reading each row twice, whatever a key's size.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from pres.errors import OptionError
from pres.nn.ops import Asked, Picked, Slots, differentiable_gradients

with warnings.catch_warnings():  # the first one warns that such tensors are new
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor([0], [], [], (0, 0), check_invariants=False)


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
        if not 0 <= dropout < 1:
            raise OptionError(f"dropout={dropout}: a share of 0 or more, below 1.")
        self.heads = heads
        self.query = nn.Linear(query_dim, dim)
        self.key = nn.Linear(row_dim, dim, bias=False)  # a bias would cancel in the softmax
        self.value = nn.Linear(row_dim, dim)
        self.dropout = nn.Dropout(dropout)

    def read(self, query: Tensor, rows: Sequence[Picked], asked: Asked) -> Tensor:
        """Return `[q, dim]` from the askers' queries `[m, dim]`, which ``query`` made, and slots' rows."""
        dtype = self.key.weight.dtype  # whatever autocast made of what was given
        query = query.to(dtype)
        rows = [replace(part, table=part.table.to(dtype)) for part in rows]
        keep = None
        if self.training and self.dropout.p:
            keep = self.dropout(query.new_ones(self.heads, *asked.slots.mask.shape))
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

    The weights are the softmax of scores over the filled slots of a query; one without any gets nothing.

    Args:
        query: The askers' queries `[m, dim]`.
        key: Rows, side by side, into keys `[dim, d]`.
        value: Rows into values `[dim, d]`,
        bias: and what is added to them `[dim]`.
        rows: What each filled slot reads in each table.
        asked: Which slots those are, and who asks.
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
    slots, size = asked.slots, query.shape[1] // heads
    q, k = slots.mask.shape
    copies = slots.pad(torch.cat([part.table[part.place] for part in rows], dim=1).T).permute(1, 2, 0)
    keys, values = ((copies @ weight.T).view(q, k, heads, size) for weight in (key, value))
    queries = asked.of_each(query).view(q, heads, size)
    weight = softmax(torch.einsum("qhs,qkhs->hqk", queries, keys) * size**-0.5, slots)
    weight = weight if keep is None else weight * keep
    return torch.einsum("hqk,qkhs->qhs", weight, values + bias.view(heads, size)).reshape(q, -1)


def softmax(score: Tensor, slots: Slots) -> Tensor:
    """Return the softmax `[heads, q, k]` of scores over each query's filled slots, and 0 elsewhere."""
    if slots.full:
        return score.softmax(-1)
    empty = ~slots.mask
    return score.masked_fill(empty, torch.finfo(score.dtype).min).softmax(-1).masked_fill(empty, 0)


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
        slots, (m, dim) = asked.slots, query.shape
        s, q = len(slots), len(slots.mask)
        size, widths = dim // heads, [table.shape[1] for table in tables]
        of_head = (query * size**-0.5).view(m, heads, size).transpose(0, 1)
        # A query in the rows' space, for all tables side by side.
        turned_all = torch.bmm(of_head, key.view(heads, size, -1)).view(heads * m, sum(widths))
        turned = torch.split(turned_all, widths, dim=1)
        starts, places = _per_head(slots.starts, heads, s), [part.place.repeat(heads) for part in rows]
        asking = turned
        if asked.asker is not None:
            of_each = turned_all.index_select(0, _per_head(asked.asker, heads, m))
            asking = torch.split(of_each, widths, dim=1)
        score = row_dots(asking, tables, places, starts)
        weight = softmax(slots.pad(score.view(heads, s)), slots)
        kept = weight if keep is None else weight * keep
        packed = slots.pack(kept)
        read = _side_by_side(
            weighted_sums(table, place, starts, packed.flatten())
            for table, place in zip(tables, places, strict=True)
        ).view(heads, q, sum(widths))
        total = kept.sum(-1, keepdim=True)
        found = torch.baddbmm(
            total * bias.view(heads, 1, size), read, value.view(heads, size, -1).transpose(1, 2)
        )
        ctx.save_for_backward(query, key, value, bias, weight, total, read, *tables)
        ctx.rows, ctx.asked, ctx.keep, ctx.turned = rows, asked, keep, turned
        ctx.places, ctx.starts, ctx.kept = places, starts, packed
        return found.transpose(0, 1).reshape(q, dim)

    @staticmethod
    def backward(ctx: Any, of_found: Tensor) -> tuple[Tensor | None, ...]:
        with torch.autocast(of_found.device.type, enabled=False):
            return _Attend._backward(ctx, of_found)

    @staticmethod
    def _backward(ctx: Any, of_found: Tensor) -> tuple[Tensor | None, ...]:
        rows, asked, keep = ctx.rows, ctx.asked, ctx.keep
        query, key, value, bias, weight, total, read, *tables = ctx.saved_tensors
        needed = ctx.needs_input_grad[4:]
        if torch.is_grad_enabled():  # the gradient itself is to be differentiated

            def plain(query: Tensor, key: Tensor, value: Tensor, bias: Tensor, *tables: Tensor) -> Tensor:
                picked = [Picked(table, part.place) for table, part in zip(tables, rows, strict=True)]
                return attend_plainly(query, key, value, bias, picked, asked, len(weight), keep)

            given = query, key, value, bias, *tables
            return None, None, None, None, *differentiable_gradients(plain, given, needed, of_found)
        slots, (heads, q, _), (m, dim) = asked.slots, weight.shape, query.shape
        size, widths = dim // heads, [table.shape[1] for table in tables]
        of_heads = of_found.view(q, heads, size).transpose(0, 1).contiguous()  # [heads, q, size]
        of_total = torch.bmm(of_heads, bias.view(heads, size, 1))
        of_bias = (of_heads * total).sum(1).flatten()
        of_value = torch.bmm(of_heads.transpose(1, 2), read).view_as(value)
        of_read = torch.bmm(of_heads, value.view(heads, size, -1)).view(heads * q, sum(widths))
        of_reads = torch.split(of_read, widths, dim=1)
        of_weight = row_dots(of_reads, tables, ctx.places, ctx.starts)
        of_weight = slots.pad(of_weight.view(heads, len(slots))) + of_total
        if keep is not None:
            of_weight *= keep
        of_score = slots.pack(weight * (of_weight - (weight * of_weight).sum(-1, keepdim=True)))
        of_head = (query * size**-0.5).view(m, heads, size).transpose(0, 1)
        of_turned = _of_vectors(asked, tables, ctx.places, ctx.starts, of_score, m)
        of_key = torch.bmm(of_head.transpose(1, 2), of_turned).view_as(key)
        of_query = torch.bmm(of_turned, key.view(heads, size, -1).transpose(1, 2))
        of_query = of_query.transpose(0, 1).reshape(m, dim).mul_(size**-0.5)
        of_tables = [
            _of_table(asked, part, vectors, of_row, ctx.kept, of_score) if wanted else None
            for part, vectors, of_row, wanted in zip(rows, ctx.turned, of_reads, needed[4:], strict=True)
        ]
        return None, None, None, None, of_query, of_key, of_value, of_bias, *of_tables


def _of_vectors(
    asked: Asked, tables: Sequence[Tensor], places: Sequence[Tensor], starts: Tensor, of_score: Tensor, m: int
) -> Tensor:
    """Return the gradient `[heads, m, d]` of the askers' vectors: the rows each read, by their scores'."""
    (heads, s), weight = of_score.shape, of_score
    if asked.asker is not None:
        order, starts = asked.slots_by_asker
        starts, weight = _per_head(starts, heads, s), of_score.index_select(1, order)
        # As for one head, so for all.
        places = [place[:s].index_select(0, order).repeat(heads) for place in places]
    flat = weight.flatten()
    sums = _side_by_side(
        weighted_sums(table, place, starts, flat) for table, place in zip(tables, places, strict=True)
    )
    sums = sums.view(heads, len(starts) // heads, sums.shape[1])
    if sums.shape[1] == m:
        return sums
    return sums.new_zeros(heads, m, sums.shape[2]).index_copy_(1, asked.by_asker.values, sums)


def _of_table(
    asked: Asked, part: Picked, vectors: Tensor, of_read: Tensor, kept: Tensor, of_score: Tensor
) -> Tensor:
    """Return the gradient `[n, d]` of a table: of each row, from all slots that read it."""
    heads, by, head = len(kept), part.by_place, torch.arange(len(kept), device=kept.device)
    starts, q, m = by.starts * heads, len(of_read) // heads, len(vectors) // heads
    sums = weighted_sums(
        of_read,
        (asked.slots.query.index_select(0, by.order).unsqueeze(1) + head * q).flatten(),
        starts,
        kept.index_select(1, by.order).T.flatten(),
    )
    sums += weighted_sums(
        vectors,
        (asked.of_slots.index_select(0, by.order).unsqueeze(1) + head * m).flatten(),
        starts,
        of_score.index_select(1, by.order).T.flatten(),
    )
    return part.spread(sums)


def row_dots(
    vectors: Sequence[Tensor],
    tables: Sequence[Tensor],
    places: Sequence[Tensor],
    starts: Tensor,
    add: Tensor | None = None,
) -> Tensor:
    """Return `[s]`, the inner products of each vector with its rows, summed over several tables.

    Products of a matrix that are wanted at few places, without a copy of a row: half of the time that the
    gradient of `weighted_sums` by its weights takes, which is the same.

    Args:
        vectors: For each table, the part `[q, d]` of the vectors that meets its rows.
        tables: The rows `[n, d]`.
        places: For each table, the row `[s]` of each product.
        starts: Where the products of each vector `[q]` begin.
        add: What is added to the products `[s]`.
    """
    q, s = len(starts), len(places[0])
    found = vectors[0].new_zeros(s) if add is None else add
    edges = pad(starts, (0, 1), value=s)
    for vector, table, place in zip(vectors, tables, places, strict=True):
        if len(table) * q < s:  # or there would be more products than the kernel believes possible
            table = pad(table, (0, 0, 0, -(-s // q) - len(table)))
        wanted = torch.sparse_csr_tensor(edges, place, found, (q, len(table)), check_invariants=False)
        found = torch.sparse.sampled_addmm(wanted, vector, table.T).values()
    return found


def weighted_sums(table: Tensor, place: Tensor, starts: Tensor, weight: Tensor) -> Tensor:
    """Return `[s, d]`, the sums of ``weight * table[place]`` from each start to the next."""
    return torch.embedding_bag(table, place, starts, False, 0, False, weight)[0]


def _side_by_side(parts: Iterable[Tensor]) -> Tensor:
    """Return parts `[n, d]`, of one or more, as one `[n, sum of d]`."""
    several = list(parts)
    return several[0] if len(several) == 1 else torch.cat(several, dim=1)


def _per_head(places: Tensor, heads: int, size: int) -> Tensor:
    """Return places within one head's ``size`` as places among those of all heads, head after head."""
    return (places + size * torch.arange(heads, device=places.device).unsqueeze(1)).flatten()
