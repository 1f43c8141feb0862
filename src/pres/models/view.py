"""What a step looks at: nodes, times and neighbours, prepared without the weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pres.nn.embedding import Hop
from pres.sampling import Neighbours

Find = Callable[[Tensor, Tensor], Sequence[Neighbours]]


@dataclass(frozen=True, eq=False)
class View:
    """Everything a step looks at, prepared without the weights.

    ``src``, ``dst`` and ``negatives`` are positions among the roots; ``roots`` and the hops' nodes are
    positions among ``nodes``.
    """

    nodes: Tensor  # [u] distinct nodes, increasing
    roots: Tensor  # [r]
    t: Tensor  # [r] the time each root is asked for
    hops: list[Hop]
    src: Tensor  # [b]
    dst: Tensor  # [b]
    negatives: Tensor  # [b, count]


def view_of(
    src: Tensor,
    dst: Tensor,
    negatives: Tensor,
    t: Tensor,
    cutoffs: Tensor | None,
    find: Find,
    *,
    once: bool,
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
    """
    b, count = negatives.shape
    nodes = torch.cat([src, dst, negatives.flatten()])
    pair = torch.arange(b, device=nodes.device)
    pair = torch.cat([pair, pair, pair.repeat_interleave(count)])  # the pair that each root is of
    place = torch.arange(len(nodes), device=nodes.device)
    t = t[pair]
    if once:
        chosen, place = once_each(nodes, t)
        nodes, t, pair = nodes[chosen], t[chosen], pair[chosen]
    hops = [] if cutoffs is None else _as_hops(find(nodes, cutoffs[pair]), t)
    seen, inverse = torch.unique(
        torch.cat([nodes, *(hop.node.flatten() for hop in hops)]), return_inverse=True
    )
    roots, *rest = torch.split(inverse, [len(nodes), *(hop.node.numel() for hop in hops)])
    hops = [replace(hop, node=at.view_as(hop.node)) for hop, at in zip(hops, rest, strict=True)]
    of_src, of_dst, of_negatives = torch.split(place, [b, b, b * count])
    return View(seen, roots, t, hops, of_src, of_dst, of_negatives.view(b, count))


def once_each(things: Tensor, t: Tensor) -> tuple[Tensor, Tensor]:
    """Return where one of each distinct (thing, time) is, and for every position which of them it is."""
    times, moment = torch.unique(t, return_inverse=True)
    distinct, place = torch.unique(things * len(times) + moment, return_inverse=True)
    chosen = torch.empty_like(distinct)
    chosen[place] = torch.arange(len(things), device=things.device)  # any of equal ones
    return chosen, place


def _as_hops(found: Sequence[Neighbours], t: Tensor) -> list[Hop]:
    """Return neighbours with their age at the time of whoever asked for them."""
    hops = []
    for neighbours in found:
        age = (t.unsqueeze(1) - neighbours.t).masked_fill_(~neighbours.mask, 0)
        hops.append(Hop(neighbours.nodes, neighbours.events, age, neighbours.mask))
        t = neighbours.t.flatten()
    return hops
