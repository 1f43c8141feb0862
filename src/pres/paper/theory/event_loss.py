"""The loss of single events, at whatever memory their two nodes are said to have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

import torch
from torch import Tensor
from torch.nn.functional import softplus

from pres.data.stream import EventStream
from pres.models import MDGNN, States
from pres.models.subgraph import Subgraph
from pres.nn.embedding import Hop
from pres.nn.ops import Slots


class EventLoss:
    """``l(e_ij, s_i, s_j)``: the loss of an event and of its one negative, as a function of two memories.

    All else is as the batch finds it: the memory of neighbours and of the negative, and since when a node had
    no event. So the same function is asked at different memories.

    Args:
        model: The model, its memory as before the batch.
        batch: The next events.
        negatives: Other destinations `[b, 1]`.
    """

    def __init__(self, model: MDGNN, batch: EventStream, negatives: Tensor) -> None:
        self.model, self.batch = model, batch
        self.subgraph = model.sample(batch, negatives)
        with torch.no_grad():
            self.states = model.updated_memory(self.subgraph.nodes)

    def __call__(self, event: Tensor, src_memory: Tensor, dst_memory: Tensor) -> Tensor:
        """Return the losses `[p]` of events `[p]`, which may repeat, each at its own memories `[p, d]`.

        A self-loop has one memory, that of its source.
        """
        subgraph, states = self.subgraph, self.states
        p, known = len(event), len(states.nodes)
        row = torch.arange(p, device=event.device)
        loop = self.batch.src[event] == self.batch.dst[event]
        asked, place = torch.unique(event, return_inverse=True)  # negatives are the same at all memories
        src, dst, negatives = subgraph.src[event], subgraph.dst[event], subgraph.negatives[asked, 0]
        root = torch.cat([src, dst, negatives])
        # The given memories follow the known ones, a row for each loss: only its two roots look there.
        at = torch.cat([torch.arange(known, device=event.device), subgraph.roots[src], subgraph.roots[dst]])
        values = {field.name: getattr(states, field.name)[at] for field in fields(States)}
        values["memory"] = torch.cat([states.memory, src_memory, dst_memory])
        own = known + row
        seen = Subgraph(
            nodes=values["nodes"],
            roots=torch.cat([own, torch.where(loop, own, own + p), subgraph.roots[negatives]]),
            t=subgraph.t[root],
            hops=_of_roots(subgraph.hops, root),
            src=row,
            to=torch.stack([p + row, 2 * p + place], dim=1),
        )
        positive, negative = self.model.score(seen, States(**values))
        return softplus(-positive) + softplus(negative[:, 0])


def _of_roots(hops: Sequence[Hop], chosen: Tensor) -> list[Hop]:
    """Return the hops of some of the roots."""
    found = []
    for hop in hops:
        held, _ = hop.slots.held_by(chosen)
        slots = Slots.of(hop.slots.mask[chosen])
        found.append(Hop(hop.node[held], hop.event[held], hop.age[held], slots))
        chosen = held
    return found
