"""What a step looks at before it predicts: whom, when and whose neighbours, whatever the weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.models.checks import check_next, check_pairs
from pres.models.scanned import Window
from pres.nn.embedding import Embedding, Hop
from pres.nn.memory import Memory
from pres.nn.ops import Slots, ranking, rows
from pres.nn.scan_memory import ScanMemory
from pres.sampling import TemporalIndex
from pres.sampling.index import Strategy, Visibility
from pres.sampling.rng import derived


@dataclass(frozen=True, eq=False)
class Subgraph:
    """Everything a step looks at, prepared without the weights.

    ``src`` and ``to`` are positions among the roots; ``roots`` and the hops' nodes are positions among
    ``nodes``.
    """

    nodes: Tensor  # [u] distinct nodes, increasing
    roots: Tensor  # [r]
    t: Tensor  # [r] the time each root is asked for
    hops: list[Hop]
    src: Tensor  # [b]
    to: Tensor  # [b, 1 + count] the destination of each pair, then its negatives
    apart: bool  # whether every pair has roots of its own: the sources, then row by row who they meet

    @property
    def dst(self) -> Tensor:
        """Positions `[b]` of the destinations among the roots."""
        return self.to[:, 0]

    @property
    def negatives(self) -> Tensor:
        """Positions `[b, count]` of the negatives among the roots."""
        return self.to[:, 1:]


@dataclass(frozen=True, eq=False)
class SubgraphInside(Subgraph):
    """What predictions inside a batch look at: ``nodes`` are distinct with ``version``, in order of keys."""

    version: Tensor  # [u] which of its memories inside the batch each node has, see `Versions`


Looked = TypeVar("Looked", bound=Subgraph)


class Versions(Protocol):
    """The memories that nodes have one after another inside a batch, by number: see `BatchIncidences`."""

    def version(self, nodes: Tensor, places: Tensor) -> Tensor:
        """Return which memory each of nodes `[q]` has just before the batch's events at ``places`` `[q]`."""
        ...

    def state_keys(self, nodes: Tensor, version: Tensor) -> Tensor:
        """Return a number `[q]` for each node and version."""
        ...

    def of_state_keys(self, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return whether the batch made each version, its node, and the version."""
        ...


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
        self, batch: EventStream, negatives: Tensor, batch_start: int | None = None, seed: int = 0
    ) -> Subgraph:
        """Return what predicting ``batch`` against ``negatives`` `[b, count]` needs to see.

        Args:
            batch: A temporal batch, or a part of one.
            negatives: Other destinations.
            batch_start: Where the temporal batch began that ``batch`` is a part of.
            seed: Of ``"uniform"`` neighbours.
        """
        start = batch.offset if batch_start is None else batch_start
        check_next(batch, start, self._t, self.memory)
        t, cutoffs, group = batch.t, None, None
        if self.embedding.hops and self.index is not None:
            cutoffs = self.index.cutoffs(batch, "batch" if self.per_node else self.visibility, start)
        if self.per_node:  # once per batch is at its beginning
            group, t = torch.zeros(len(t), dtype=torch.int64, device=t.device), t[:1].expand_as(t)
            cutoffs = None if cutoffs is None else cutoffs[:1].expand_as(cutoffs)
        return self.prepared(self._subgraph(batch.src, batch.dst, negatives, t, cutoffs, seed, group))

    def sample_window(
        self, window: Window, negatives: Tensor, staleness: int, seed: int = 0, part: slice = slice(None)
    ) -> SubgraphInside:
        """Return what predicting a part of a window's batch needs to see; `prepared` waits for its turn.

        Args:
            window: What is scanned for the batch.
            negatives: Other destinations of all its events `[b, count]`.
            staleness: See `Window.cut`; roots and neighbours see memory up to the same event.
            seed: Of ``"uniform"`` neighbours.
            part: Which events of the batch.
        """
        check_next(window.batch, window.batch.offset, self._t, self.memory)
        events, batch = window.events, window.batch[part]
        at = torch.arange(len(events) - len(window.batch), len(events), device=events.t.device)[part]
        return self.sample_inside(events, batch, negatives[part], at, window.cut(at, staleness), window, seed)

    def sample_inside(
        self,
        events: EventStream,
        part: EventStream,
        negatives: Tensor,
        at: Tensor,
        places: Tensor,
        versions: Versions,
        seed: int = 0,
    ) -> SubgraphInside:
        """Return what predicting some events needs to see, of memory inside the batch around them.

        Args:
            events: The batch, or all events that are scanned for one.
            part: Those to predict.
            negatives: Other destinations `[p, count]`.
            at: Where they are among ``events`` `[p]`.
            places: The first of these that each must not see `[p]`.
            versions: The memories inside.
            seed: Of ``"uniform"`` neighbours.
        """
        asked = places if self.per_node else at  # once per node is as things were at its place
        cutoffs = None
        if self.embedding.hops and self.index is not None:
            cutoffs = rows(self.index.cutoffs(events), asked)
            if self.visibility == "batch":
                cutoffs = torch.minimum(cutoffs, events.offset + places)
        group, t = places if self.per_node else None, rows(events.t, asked)
        given = part.src, part.dst, negatives, t, cutoffs, seed, group
        found = self._subgraph(*given, inside=(versions, places))
        assert isinstance(found, SubgraphInside)
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
        cutoffs = group = None
        if self.per_node:
            if position < len(self._t):
                t = torch.minimum(t, self._t[position])  # once per batch is at its beginning
            group = torch.unique(t, return_inverse=True)[1]
        if self.embedding.hops and self.index is not None:
            cutoffs = self.index.cutoff_at(t)
            if self.per_node or self.visibility == "batch":
                cutoffs = cutoffs.clamp(max=position)
        return self.prepared(self._subgraph(src, dst, src.new_empty(len(src), 0), t, cutoffs, seed, group))

    def _subgraph(
        self,
        src: Tensor,
        dst: Tensor,
        negatives: Tensor,
        t: Tensor,
        cutoffs: Tensor | None,
        seed: int,
        group: Tensor | None,
        inside: tuple[Versions, Tensor] | None = None,
    ) -> Subgraph:
        """Return the subgraph of pairs ``(src, dst)`` and ``(src, negatives)``, asked at times ``t`` `[p]`.

        Args:
            src: Sources `[p]`.
            dst: Destinations `[p]`.
            negatives: Further destinations `[p, count]` of the same sources, at the same times.
            t: When each pair is asked.
            cutoffs: The first event `[p]` that each pair must not see; None where none are needed.
            seed: Of ``"uniform"`` neighbours.
            group: A node that several pairs of one group `[p]` ask for is one root; None: every pair has its
                own roots.
            inside: The memories inside a batch, and up to where in it each pair sees them `[p]`.
        """
        met = torch.cat([dst.unsqueeze(1), negatives], dim=1)
        nodes, (b, width) = torch.cat([src, met.flatten()]), met.shape
        at = torch.arange(b, device=src.device)
        pair = torch.cat([at, at.unsqueeze(1).expand(b, width).flatten()])
        place = torch.arange(len(nodes), device=src.device)
        if group is not None:
            chosen, place = once_each(nodes, rows(group, pair))
            nodes, pair = rows(nodes, chosen), rows(pair, chosen)
        t = rows(t, pair)
        hops = [] if cutoffs is None else self._hops(nodes, rows(cutoffs, pair), t, seed)
        everyone = torch.cat([nodes, *(hop.node for hop in hops)])
        if inside is None:
            found = ranking(everyone)
        else:
            versions, places = inside
            seen = [rows(places, pair)]
            for hop in hops:
                seen.append(rows(seen[-1], hop.slots.query))
            found = ranking(versions.state_keys(everyone, versions.version(everyone, torch.cat(seen))))
        roots, *of_hops = torch.split(found.place, [len(nodes), *(len(hop.node) for hop in hops)])
        hops = [replace(hop, node=node) for hop, node in zip(hops, of_hops, strict=True)]
        given = roots, t, hops, place[:b], place[b:].view(b, width), group is None
        if inside is None:
            return Subgraph(found.values, *given)
        _, distinct, version = inside[0].of_state_keys(found.values)
        return SubgraphInside(distinct, *given, version)

    def _hops(self, nodes: Tensor, cutoffs: Tensor, t: Tensor, seed: int) -> list[Hop]:
        """Return the neighbours of nodes before cutoffs, theirs before the events that made them such, ….

        Their ages are at the time ``t`` of whoever asked for them.
        """
        index, hops, k = self.index, list[Hop](), self.neighbours
        assert index is not None
        for hop in range(self.embedding.hops):
            if self.strategy == "recent":
                found = index.recent(nodes, cutoffs, k)
            else:
                found = index.uniform(nodes, cutoffs, k, derived(seed, hop))
            slots = Slots.of(found.mask)
            nodes, events, then = (slots.pack(field) for field in (found.nodes, found.events, found.t))
            hops.append(Hop(nodes, events, rows(t, slots.query) - then, slots))
            if hop + 1 < self.embedding.hops:
                cutoffs, t = index.before(events), then
        return hops

    def prepared(self, subgraph: Looked) -> Looked:
        """Return a subgraph with what the embedding can make of its hops before it has the weights."""
        return replace(subgraph, hops=self.embedding.prepare(subgraph.hops, self.memory.dtype))


def once_each(things: Tensor, group: Tensor) -> tuple[Tensor, Tensor]:
    """Return where one of each distinct (thing, group) is, and for every position which of them it is."""
    stride = int(things.max()) + 1 if len(things) else 1
    found = ranking(group * stride + things)
    return found.order[found.starts], found.place
