"""What a step looks at: nodes, times and neighbours, prepared without the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

import torch
from torch import Tensor

from pres.nn.embedding import Beforehand, Hop
from pres.nn.ops import Parts, Ranking, Slots, distinct_of_each, ranking, rankings, rows
from pres.sampling import Neighbours

Find = Callable[[Tensor, Tensor], Sequence[Neighbours]]


@dataclass(frozen=True, eq=False)
class Subgraph:
    """Everything a step looks at, prepared without the weights.

    ``src`` and ``to`` are positions among the roots; ``roots`` and the hops' nodes are positions among
    ``nodes``.
    """

    nodes: Tensor  # [u] distinct nodes, increasing; or distinct with ``version``, in their keys' order
    roots: Tensor  # [r]
    t: Tensor  # [r] the time each root is asked for
    hops: list[Hop]
    src: Tensor  # [b]
    to: Tensor  # [b, 1 + count] the destination of each pair, then its negatives
    ranked: Ranking | None = None  # of the roots, where there are hops
    prepared: Beforehand | None = None  # what the embedding knows of them already
    version: Tensor | None = None  # [u] raw messages each has of its own batch; None: as the batch finds them
    apart: bool = False  # whether every pair has roots of its own: the sources, then row by row who they meet

    @property
    def dst(self) -> Tensor:
        """Positions `[b]` of the destinations among the roots."""
        return self.to[:, 0]

    @property
    def negatives(self) -> Tensor:
        """Positions `[b, count]` of the negatives among the roots."""
        return self.to[:, 1:]


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


@dataclass(frozen=True, eq=False)
class Inside:
    """Where in a temporal batch pairs are asked: what they see is the memory just before that place."""

    incidences: Versions
    places: Tensor  # [b] of each pair, counted from the batch's first event


def pairs_subgraphs(
    src: Tensor,
    dst: Tensor,
    negatives: Tensor,
    t: Tensor,
    cutoffs: Tensor | None,
    find: Find,
    *,
    num_batches: int = 1,
    group: Tensor | None = None,
    inside: Inside | None = None,
    rank_events: bool = False,
) -> list[Subgraph]:
    """Return the subgraphs of pairs ``(src, dst)`` and ``(src, negatives)``, asked at times ``t`` `[p]`.

    The pairs are those of one or several batches of equal length, one after another: there is a subgraph of
    each.

    Args:
        src: Sources `[p]`.
        dst: Destinations `[p]`.
        negatives: Further destinations `[p, count]` of the same sources, at the same times.
        t: When each pair is asked.
        cutoffs: The first event `[p]` that each pair must not see; None where no neighbours are needed.
        find: The neighbours, hop by hop, of nodes before their cutoffs.
        num_batches: Of how many batches the pairs are.
        group: A node that several pairs of one group `[p]` ask for is one root, later batches having higher
            groups; None: every pair has roots of its own.
        inside: The batch around the pairs, if they are to see memory inside it: then it is the parts of one
            batch that have a subgraph each.
        rank_events: Whether the events of hops will be looked up in their order.
    """
    (pairs, count), b = negatives.shape, len(src) // num_batches
    # Batch after batch: its sources, then row by row whom they meet.
    met = torch.cat([dst.unsqueeze(1), negatives], dim=1)
    nodes = torch.cat([src.view(num_batches, b), met.view(num_batches, b * (1 + count))], dim=1).flatten()
    pair = torch.arange(pairs, device=nodes.device).view(num_batches, b)
    pair = torch.cat([pair, pair.repeat_interleave(1 + count, dim=1)], dim=1).flatten()
    roots = Parts([b * (2 + count)] * num_batches, nodes.device)
    if group is None:
        place = torch.arange(b * (2 + count), device=nodes.device).repeat(num_batches)
    else:
        nodes, pair, place, roots = _once_each(nodes, pair, group, roots, b)
    t = rows(t, pair)
    hops = [] if cutoffs is None else _as_hops(find(nodes, rows(cutoffs, pair)), t)
    known, version, root, hops = _among_distinct(nodes, hops, roots, pair, inside)
    parts = zip(
        known,
        version,
        roots.split(root),
        roots.split(t),
        _hops_of_each(hops, roots, rank_events) if hops else [[] for _ in range(num_batches)],
        place.view(num_batches, b * (2 + count)),
        rankings(root, roots).each() if hops else [None] * num_batches,
        strict=True,
    )
    return [
        Subgraph(
            nodes=own_nodes,
            roots=own_roots,
            t=own_t,
            hops=own_hops,
            src=own_place[:b],
            to=own_place[b:].view(b, 1 + count),
            ranked=ranked,
            version=own_version,
            apart=group is None,
        )
        for own_nodes, own_version, own_roots, own_t, own_hops, own_place, ranked in parts
    ]


def _among_distinct(
    nodes: Tensor, hops: Sequence[Hop], roots: Parts, pair: Tensor, inside: Inside | None
) -> tuple[Sequence[Tensor], Sequence[Tensor | None], Tensor, list[Hop]]:
    """Return each part's distinct nodes, their messages if ``inside``, and roots and hops as places there.

    ``nodes`` `[r]` are those of the roots, ``pair`` `[r]` says which pair each is of.
    """
    everyone, root_of = nodes, [torch.arange(len(nodes), device=nodes.device)]
    for hop in hops:
        root_of.append(rows(root_of[-1], hop.slots.query))
    if hops:
        everyone = torch.cat([nodes, *(hop.node for hop in hops)])
    whose = torch.cat(root_of)
    version = cast(Sequence[Tensor | None], [None] * len(roots))
    number = rows(roots.number, whose) if len(roots) > 1 else None
    if inside is None:
        distinct, parts, place = distinct_of_each(everyone, number, len(roots))
    else:
        raw_messages = inside.incidences.version(everyone, rows(inside.places, rows(pair, whose)))
        keys = inside.incidences.state_keys(everyone, raw_messages)
        found, parts, place = distinct_of_each(keys, number, len(roots))
        _, distinct, raw_messages = inside.incidences.of_state_keys(found)
        version = parts.split(raw_messages)
    root, *of_hops = torch.split(place, [len(positions) for positions in root_of])
    hops = [replace(hop, node=of_hop) for hop, of_hop in zip(hops, of_hops, strict=True)]
    return parts.split(distinct), version, root, hops


def _once_each(
    nodes: Tensor, pair: Tensor, group: Tensor, roots: Parts, b: int
) -> tuple[Tensor, Tensor, Tensor, Parts]:
    """Return each distinct root, a pair it is of, where every root has become which, and the roots' parts."""
    stride = int(nodes.max()) + 1 if len(nodes) else 1
    found = ranking(rows(group, pair) * stride + nodes)
    chosen = found.order[found.starts]
    nodes, pair, place = rows(nodes, chosen), rows(pair, chosen), found.place
    if len(roots) == 1:
        return nodes, pair, place, Parts([len(nodes)], nodes.device)
    parts = Parts.of_numbers(torch.div(pair, b, rounding_mode="floor"), len(roots))
    return nodes, pair, place - rows(parts.starts, roots.number), parts


def _hops_of_each(hops: Sequence[Hop], roots: Parts, rank_events: bool) -> list[list[Hop]]:
    """Return the hops of each part of the roots; where gradients will need the order of nodes, with that."""
    found: list[list[Hop]] = []
    queries = roots
    for hop in hops:
        held, slots = hop.slots.each(queries)
        nothing = [None] * len(queries)
        by_node = rankings(hop.node, held).each() if torch.is_grad_enabled() else nothing
        by_event = rankings(hop.event, held).each() if rank_events else nothing
        fields = (held.split(field) for field in (hop.node, hop.event, hop.age))
        found.append([Hop(*those) for those in zip(*fields, slots, by_node, by_event, strict=True)])
        queries = held
    return [list(those) for those in zip(*found, strict=True)]


def once_each(things: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """Return where one of each distinct (thing, time) is, and for every position which of them it is."""
    times, group = torch.unique(t, return_inverse=True)
    found = ranking(things * len(times) + group)
    return found.order[found.starts], found.place


def _as_hops(found: Sequence[Neighbours], t: Tensor) -> list[Hop]:
    """Return neighbours with their age at the time of whoever asked for them."""
    hops: list[Hop] = []
    asking = torch.arange(len(t), device=t.device)  # the rows of queries; those of empty slots are left out
    for neighbours in found:
        fields = neighbours.nodes, neighbours.events, neighbours.t, neighbours.mask
        nodes, events, then, mask = (field[asking] for field in fields) if hops else fields
        slots = Slots.of(mask)
        then = slots.pack(then)
        hops.append(Hop(slots.pack(nodes), slots.pack(events), rows(t, slots.query) - then, slots))
        k = mask.shape[1]
        t, asking = then, rows(asking, slots.query) * k + slots.filled % k
    return hops
