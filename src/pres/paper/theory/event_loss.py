"""The loss of single events at whatever memory their two nodes are said to have, and where it leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import softplus

from pres.data.stream import EventStream
from pres.models import MDGNN, States
from pres.models.sample import Subgraph
from pres.nn.embedding import Hop
from pres.nn.ops import Slots
from pres.paper.theory.exact import MemoryInside
from pres.paper.theory.gradients import flat_gradient, trainable
from pres.sampling.pending import pending_sets

Fresh = Literal["before", "after"]
Respect = Literal["memory", "parameters"]
AT_ONCE = 2_048  # losses computed together


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
            apart=False,
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


def coherence_of(
    model: MDGNN, batch: EventStream, negatives: Tensor, chosen: Tensor, fresh: Fresh, wrt: Respect
) -> tuple[Tensor, Tensor]:
    """Return, for events `[k]` with a pending set, the smallest inner product and ``‖fresh gradient‖²``.

    The memory of ``model`` must be the exact one before the batch, and ``negatives`` are `[b, 1]`.
    """
    loss, inside = EventLoss(model, batch, negatives), MemoryInside(model, batch)
    offsets, members = pending_sets(batch)
    begin, end = offsets[chosen].tolist(), offsets[chosen + 1].tolist()
    older = [members[first:last] for first, last in zip(begin, end, strict=True)]
    if fresh == "before":
        now = inside.before(chosen)
    else:
        now = inside.after(batch.src[chosen], chosen), inside.after(batch.dst[chosen], chosen)
    respecting = _by_memory if wrt == "memory" else _by_parameters
    return respecting(loss, inside, chosen, now, older)


def _by_memory(
    loss: EventLoss, inside: MemoryInside, chosen: Tensor, now: tuple[Tensor, Tensor], older: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the same by the two memories: one backward pass gives them for many losses at once."""

    def gradients(event: Tensor, src: Tensor, dst: Tensor) -> Tensor:
        memories = src.detach().requires_grad_(), dst.detach().requires_grad_()
        total = loss(event, *memories).sum()
        found = torch.autograd.grad(total, memories, allow_unused=True, materialize_grads=True)
        return torch.cat(found, dim=1).double()

    parts = zip(torch.split(chosen, AT_ONCE), *(torch.split(memory, AT_ONCE) for memory in now), strict=True)
    target = torch.cat([gradients(*part) for part in parts])
    batch, smallest = loss.batch, target.new_full((len(chosen),), torch.inf)
    of = torch.repeat_interleave(
        torch.arange(len(older), device=chosen.device),
        torch.tensor([len(pending) for pending in older], device=chosen.device),
    )
    for place, pending in zip(torch.split(of, AT_ONCE), torch.split(torch.cat(older), AT_ONCE), strict=True):
        event = chosen[place]
        memories = inside.after(batch.src[event], pending), inside.after(batch.dst[event], pending)
        inner = (gradients(event, *memories) * target[place]).sum(1)
        smallest.scatter_reduce_(0, place, inner, "amin")
    return smallest, target.square().sum(1)


def _by_parameters(
    loss: EventLoss, inside: MemoryInside, chosen: Tensor, now: tuple[Tensor, Tensor], older: list[Tensor]
) -> tuple[Tensor, Tensor]:
    """Return the same by all trainable parameters, event by event.

    The gradients of an event's pending set are never made. Their inner products with the fresh one are the
    derivative of all those losses in its direction: the gradient of a weighted sum of losses, multiplied by
    the fresh one, is linear in the weights, and its derivative by each weight is the inner product.
    """
    parameters, batch = trainable(loss.model), loss.batch
    smallest, squares = [], []
    for place, pending in enumerate(older):
        event = chosen[place : place + 1]
        at_fresh = loss(event, *(memory[place : place + 1] for memory in now)).sum()
        target = flat_gradient(at_fresh, parameters)
        inner = []
        for some in torch.split(pending, AT_ONCE):
            same = event.repeat(len(some))
            memories = inside.after(batch.src[same], some), inside.after(batch.dst[same], some)
            losses = loss(same, *memories)
            weight = torch.ones_like(losses, requires_grad=True)
            weighted = flat_gradient((weight * losses).sum(), parameters, differentiable=True)
            inner.append(torch.autograd.grad(weighted @ target, weight)[0])
        smallest.append(torch.cat(inner).min().double())
        squares.append(target.double().square().sum())
    return torch.stack(smallest), torch.stack(squares)
