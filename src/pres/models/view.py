"""What a step looks at: nodes, times and neighbours, prepared without the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pres.models.half_events import HalfEvents
from pres.nn.embedding import Hop
from pres.nn.gather import Picked
from pres.ranking import ranking
from pres.sampling import Neighbours

Find = Callable[[Tensor, Tensor], Sequence[Neighbours]]


@dataclass(frozen=True, eq=False)
class View:
    """Everything a step looks at, prepared without the weights.

    ``src`` and ``to`` are positions among the roots; ``roots`` and the hops' nodes are positions among
    ``nodes``.
    """

    nodes: Tensor  # [u] distinct nodes, increasing; or distinct with ``received``, in their stages' order
    roots: Tensor  # [r]
    t: Tensor  # [r] the time each root is asked for
    hops: list[Hop]
    src: Tensor  # [b]
    to: Tensor  # [b, 1 + count] the destination of each pair, then its negatives
    prepared: Sequence[Sequence[Picked]] | None = None  # what the embedding knows of the hops already
    received: Tensor | None = None  # [u] letters each has of its own batch; None: as the batch finds them
    apart: bool = False  # whether every pair has roots of its own: the sources, then row by row who they meet

    @property
    def dst(self) -> Tensor:
        """Positions `[b]` of the destinations among the roots."""
        return self.to[:, 0]

    @property
    def negatives(self) -> Tensor:
        """Positions `[b, count]` of the negatives among the roots."""
        return self.to[:, 1:]


@dataclass(frozen=True, eq=False)
class Inside:
    """Where in a temporal batch pairs are asked: what they see is the memory just before that place."""

    halves: HalfEvents
    places: Tensor  # [b] of each pair, counted from the batch's first event


def view_of(
    src: Tensor,
    dst: Tensor,
    negatives: Tensor,
    t: Tensor,
    cutoffs: Tensor | None,
    find: Find,
    *,
    once: bool,
    inside: Inside | None = None,
) -> View:
    """Return the view of pairs ``(src, dst)`` and ``(src, negatives)``, each asked at its time ``t`` `[b]`.

    Args:
        src: Sources `[b]`.
        dst: Destinations `[b]`.
        negatives: Further destinations `[b, count]` of the same sources, at the same times.
        t: When each pair is asked.
        cutoffs: The first event `[b]` that each pair must not see; None where no neighbours are needed.
        find: The neighbours, hop by hop, of nodes before their cutoffs.
        once: Whether a node that several pairs ask for at one time is one root.
        inside: The batch around the pairs, if they are to see memory inside it.
    """
    b, count = negatives.shape
    nodes = torch.cat([src, torch.cat([dst.unsqueeze(1), negatives], dim=1).flatten()])
    pair = torch.arange(b, device=nodes.device)
    pair = torch.cat([pair, pair.repeat_interleave(1 + count)])  # the pair that each root is of
    place = torch.arange(len(nodes), device=nodes.device)
    t = t[pair]
    if once:
        chosen, place = once_each(nodes, t if inside is None else inside.places[pair])
        nodes, t, pair = nodes[chosen], t[chosen], pair[chosen]
    hops = [] if cutoffs is None else _as_hops(find(nodes, cutoffs[pair]), t)
    everyone = torch.cat([nodes, *(hop.node.flatten() for hop in hops)])
    received = None
    if inside is None:
        seen = ranking(everyone)
        known = seen.values
    else:
        asked = inside.places[pair]
        places = [asked, *(asked.repeat_interleave(hop.node.numel() // len(asked)) for hop in hops)]
        received = inside.halves.received(everyone, torch.cat(places))
        seen = ranking(inside.halves.state_keys(everyone, received))
        _, known, received = inside.halves.of_state_keys(seen.values)
    roots, *rest = torch.split(seen.place, [len(nodes), *(hop.node.numel() for hop in hops)])
    hops = [replace(hop, node=at.view_as(hop.node)) for hop, at in zip(hops, rest, strict=True)]
    of_src, to = torch.split(place, [b, b * (1 + count)])
    return View(known, roots, t, hops, of_src, to.view(b, 1 + count), received=received, apart=not once)


def once_each(things: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """Return where one of each distinct (thing, time) is, and for every position which of them it is."""
    times, moment = torch.unique(t, return_inverse=True)
    found = ranking(things * len(times) + moment)
    return found.order[found.starts], found.place


def _as_hops(found: Sequence[Neighbours], t: Tensor) -> list[Hop]:
    """Return neighbours with their age at the time of whoever asked for them."""
    hops = []
    for neighbours in found:
        age = (t.unsqueeze(1) - neighbours.t).masked_fill_(~neighbours.mask, 0)
        hops.append(Hop(neighbours.nodes, neighbours.events, age, neighbours.mask))
        t = neighbours.t.flatten()
    return hops
