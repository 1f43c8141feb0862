"""What a model looks at before it predicts: whom, when and whose neighbours, whatever the weights."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.models.checks import check_next, check_pairs, num_batches_of
from pres.models.scanned import Window
from pres.models.subgraph import Inside, Subgraph, pairs_subgraphs
from pres.nn.embedding import IdentityEmbedding, TemporalAttention, TimeProjection
from pres.nn.memory import Memory
from pres.nn.ops import rows
from pres.nn.scan_memory import ScanMemory
from pres.sampling import Neighbours, TemporalIndex
from pres.sampling.index import Strategy, Visibility

Embedding = IdentityEmbedding | TimeProjection | TemporalAttention


class Pairs(NamedTuple):
    """Pairs that are no events."""

    src: Tensor
    dst: Tensor


class SubgraphSampler(nn.Module):
    """The part of a model that finds what a step needs to see; see `pres.models.base.MDGNN`."""

    memory: Memory | ScanMemory
    embedding: Embedding
    index: TemporalIndex | None
    neighbours: int
    per_node: bool
    visibility: Visibility
    strategy: Strategy
    _t: Tensor  # the times of all events

    def sample(
        self,
        batch: EventStream,
        negatives: Tensor,
        batch_start: int | None = None,
        seed: int = 0,
    ) -> Subgraph:
        """Return what predicting ``batch`` against ``negatives`` `[b, count]` needs to see.

        Args:
            batch: A temporal batch, or a part of one.
            negatives: Other destinations.
            batch_start: Where the temporal batch began that ``batch`` is a part of.
            seed: Of ``"uniform"`` neighbours.
        """
        (subgraph,) = self.sample_batches(batch, negatives, len(batch), seed, batch_start)
        return self.with_prepared(subgraph)

    def sample_batches(
        self,
        batches: EventStream,
        negatives: Tensor,
        b: int,
        seed: int = 0,
        batch_start: int | None = None,
    ) -> list[Subgraph]:
        """Return what predicting each of several batches of ``b`` events needs to see, found together.

        The embedding has prepared nothing: for that there is `with_prepared`, when a batch's turn comes.

        Args:
            batches: The events, one batch after another; or equal parts of one batch.
            negatives: Other destinations of all of them `[n, count]`.
            b: Events of a batch or of a part.
            seed: Of ``"uniform"`` neighbours.
            batch_start: Where the one batch began, if they are parts of one.
        """
        start = batches.offset if batch_start is None else batch_start
        check_next(batches, start, self._t, self.memory)
        num_batches = num_batches_of(batches, b)
        batch_number = torch.arange(num_batches, device=batches.t.device).repeat_interleave(b)
        t, cutoffs = batches.t, None
        if self.per_node:
            t = t[batch_number * b]  # once per batch is at its beginning
        if self.embedding.hops and self.index is not None:
            cutoffs = self.index.cutoffs(batches)
            if self.per_node:
                cutoffs = cutoffs[batch_number * b]
            if self.per_node or self.visibility == "batch":
                starts = (
                    start + batch_number * b
                    if batch_start is None
                    else torch.full_like(batch_number, batch_start)
                )
                cutoffs = torch.minimum(cutoffs, starts)
        group = batch_number if self.per_node else None
        return self.subgraphs_of(batches, negatives, t, cutoffs, seed, group, num_batches=num_batches)

    def sample_window(self, window: Window, negatives: Tensor, staleness: int, seed: int = 0) -> Subgraph:
        """Return what predicting the batch of a window against ``negatives`` `[b, count]` needs to see.

        Args:
            window: What is scanned for the batch.
            negatives: Other destinations.
            staleness: See `Window.cut`; roots and neighbours see memory up to the same event.
            seed: Of ``"uniform"`` neighbours.
        """
        (subgraph,) = self.sample_window_parts(window, negatives, staleness, seed, parts=1)
        return subgraph

    def sample_window_parts(
        self, window: Window, negatives: Tensor, staleness: int, seed: int, parts: int
    ) -> list[Subgraph]:
        """Return the same for each of so many equal parts of the batch, and for the events that remain."""
        check_next(window.batch, window.batch.offset, self._t, self.memory)
        events, b = window.events, len(window.batch)
        at = torch.arange(len(events) - b, len(events), device=events.t.device)
        places = window.cut(at, staleness)
        asked = places if self.per_node else at  # once per node is as things were at its place
        cutoffs = None
        if self.embedding.hops and self.index is not None:
            cutoffs = rows(self.index.cutoffs(events, "fresh"), asked)
            if self.visibility == "batch":
                cutoffs = torch.minimum(cutoffs, events.offset + places)
        whole = b // parts * parts
        found: list[Subgraph] = []
        for some, count in (slice(0, whole), parts), (slice(whole, b), 1):
            if some.start < some.stop or not b:
                part = torch.arange(some.stop - some.start, device=at.device) // max(1, whole // count)
                group = part * (len(events) + 1) + places[some] if self.per_node else None
                found += self.subgraphs_of(
                    window.batch[some],
                    negatives[some],
                    rows(events.t, asked[some]),
                    None if cutoffs is None else cutoffs[some],
                    seed,
                    group,
                    Inside(window, places[some]),
                    count,
                )
        return found

    def sample_pairs(
        self, src: Tensor, dst: Tensor, t: Tensor, position: int | None = None, seed: int = 0
    ) -> Subgraph:
        """Return what scoring any pairs ``src``, ``dst`` `[b]` at times ``t`` `[b]` needs to see.

        They are seen as events of a temporal batch that begins at ``position``, by default where the memory
        stands: the pairs of a batch look as the batch does. No pair sees an event at or after its time.
        """
        position = self.memory.position if position is None else position
        check_pairs(src, dst, t, position, self._t, self.memory)
        group = None
        if self.per_node:
            if position < len(self._t):
                t = torch.minimum(t, self._t[position])  # once per batch is at its beginning
            group = torch.unique(t, return_inverse=True)[1]
        cutoffs = None
        if self.embedding.hops and self.index is not None:
            cutoffs = self.index.cutoff_at(t)
            if self.per_node or self.visibility == "batch":
                cutoffs = cutoffs.clamp(max=position)
        (subgraph,) = self.subgraphs_of(Pairs(src, dst), src.new_empty(len(src), 0), t, cutoffs, seed, group)
        return self.with_prepared(subgraph)

    def subgraphs_of(
        self,
        pairs: EventStream | Pairs,
        negatives: Tensor,
        t: Tensor,
        cutoffs: Tensor | None,
        seed: int,
        group: Tensor | None,
        inside: Inside | None = None,
        num_batches: int = 1,
    ) -> list[Subgraph]:
        """Return the subgraphs of pairs and negatives by this model's index; see `pairs_subgraphs`."""

        def find(nodes: Tensor, cutoffs: Tensor) -> list[Neighbours]:
            assert self.index is not None
            return self.index.hops(
                nodes, cutoffs, [self.neighbours] * self.embedding.hops, self.strategy, seed
            )

        embedding = self.embedding
        looks_up = isinstance(embedding, TemporalAttention) and embedding.features.dim > 0
        return pairs_subgraphs(
            pairs.src,
            pairs.dst,
            negatives,
            t,
            cutoffs,
            find,
            num_batches=num_batches,
            group=group,
            inside=inside,
            rank_events=looks_up,
        )

    def with_prepared(self, subgraph: Subgraph) -> Subgraph:
        """Return a subgraph with what the embedding can make of it before it has the weights."""
        if subgraph.ranked is None or not isinstance(self.embedding, TemporalAttention):
            return subgraph
        dtype = self.memory.dtype
        return replace(subgraph, prepared=self.embedding.prepare(subgraph.ranked, subgraph.hops, dtype))
