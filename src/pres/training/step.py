"""One temporal batch of training: optimiser steps, then its events taken in."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from pres.data.incidence import distinct
from pres.data.stream import EventStream
from pres.errors import DivergedError
from pres.models import MDGNN, States
from pres.models.routing import MessageRouting
from pres.models.subgraph import Subgraph
from pres.nn.ops import Parts
from pres.smoothing import Role, movement

PREPARED_AT_ONCE = 4_096  # events with their neighbours, if several batches or steps fit in
ALONE = 4  # an event without neighbours takes so many times less room


def events_at_once(model: MDGNN, most: int = PREPARED_AT_ONCE) -> int:
    """Return how many events are looked at together: fewer where hops make each see many times as much."""
    hops = model.embedding.hops
    if not hops and model.deliver_to == "endpoints":
        return ALONE * most
    return int(most // model.neighbours ** max(0, hops - 1))


@dataclass(frozen=True, eq=False)
class Prepared:
    """A temporal batch with all that can be known of it before weights and memory have reached it."""

    batch: EventStream
    negatives: Tensor  # [b, count] other destinations
    routing: MessageRouting  # who gets mail
    step_size: int  # events per optimiser step
    seed: int  # of "uniform" neighbours
    subgraph: Subgraph | None  # what the step looks at, if there is one; several look when their turn comes
    places: Tensor | None  # where the batch's endpoints are among the nodes of the subgraph

    def ready(self, model: MDGNN) -> Prepared:
        """Return it with what the embedding can make of the subgraph before it has the weights."""
        return self if self.subgraph is None else replace(self, subgraph=model.with_prepared(self.subgraph))

    def steps(self, model: MDGNN) -> Iterator[tuple[EventStream, Subgraph]]:
        """Yield the events of each optimiser step, and what it looks at; see `MDGNN.sample`."""
        if self.subgraph is not None:
            yield self.batch, self.subgraph
            return
        start, whole = self.batch.offset, len(self.batch) // self.step_size * self.step_size
        together = max(1, events_at_once(model) // self.step_size) * self.step_size
        edges = [*range(0, whole, together), whole]  # the last step may be shorter than the others
        for first, stop in pairwise([*edges, len(self.batch)]):
            if first < stop:
                b, parts = min(self.step_size, stop - first), self.batch[first:stop]
                subgraphs = model.sample_batches(parts, self.negatives[first:stop], b, self.seed, start)
                for i, subgraph in enumerate(subgraphs):
                    yield parts[i * b : i * b + b], model.with_prepared(subgraph)


@dataclass(frozen=True)
class Accumulation:
    """What a batch is of an optimiser step: all of it, or one of several whose gradients are accumulated."""

    share: float = 1.0  # of the step's events
    first: bool = True  # gradients begin anew
    last: bool = True  # the weights move


WHOLE = Accumulation()


def prepare(
    model: MDGNN,
    batches: EventStream,
    negatives: Tensor,
    b: int,
    step_size: int | None = None,
    seed: int = 0,
) -> list[Prepared]:
    """Return batches to train on; `Prepared.ready` makes each of them ready when its turn comes.

    What many small batches need is found together: at b = 200 that takes a tenth of the operations.

    Args:
        model: The model, its memory not beyond the first batch.
        batches: The events, batch after batch.
        negatives: Other destinations `[n, count]`.
        b: Events of a batch; the last may have fewer if it is the only one.
        step_size: Events per optimiser step; None for one step per batch.
        seed: Of ``"uniform"`` neighbours.
    """
    parts = [batches[start : start + b] for start in range(0, max(1, len(batches)), b)]
    step_size = step_size or b
    sending = negatives if model.smoothing is not None and model.smoothing.negatives_send else None
    routings = model.route_batches(batches, len(parts[0]), sending)
    subgraphs: Sequence[Subgraph | None] = [None] * len(parts)
    places: Sequence[Tensor | None] = [None] * len(parts)
    if step_size >= len(parts[0]):
        subgraphs = seen = model.sample_batches(batches, negatives, len(parts[0]), seed)
        places = _places_of_endpoints(routings, seen, batches.num_nodes)
    fields = parts, torch.split(negatives, b), routings, subgraphs, places
    return [
        Prepared(part, of_part, routing, step_size, seed, subgraph, among)
        for part, of_part, routing, subgraph, among in zip(*fields, strict=True)
    ]


def _places_of_endpoints(
    routings: Sequence[MessageRouting], subgraphs: Sequence[Subgraph], num_nodes: int
) -> Sequence[Tensor]:
    """Return where the endpoints of each batch are among the nodes that its step looks at: all are."""
    endpoints, nodes = [routing.endpoints for routing in routings], [subgraph.nodes for subgraph in subgraphs]
    device = nodes[0].device
    wanted, known = (Parts([len(those) for those in each], device) for each in (endpoints, nodes))
    keys, sought = (
        those.number * num_nodes + torch.cat(each) for those, each in ((known, nodes), (wanted, endpoints))
    )
    return wanted.split(torch.searchsorted(keys, sought) - known.starts[wanted.number])


def train_on_batch(
    model: MDGNN,
    prepared: Prepared,
    optimiser: torch.optim.Optimizer,
    *,
    precision: str = "float32",
    accumulation: Accumulation = WHOLE,
) -> dict[str, float]:
    """Take one or more optimiser steps on a temporal batch, take it in, and return means over its events.

    Among them are the ``loss`` without what smoothing adds and the ``movement`` of memory. Every step
    measures memory anew from the same mail; the batch is taken in once: with the memory that its only step
    measured, or with what the weights after several make of the mail.

    Args:
        model: The model, its memory as before the batch.
        prepared: The next events.
        optimiser: What moves the weights.
        precision: See `arithmetic`.
        accumulation: What the batch is of the optimiser step, if several batches make one.
    """
    batch, device = prepared.batch, prepared.negatives.device
    total: dict[str, float] = {}
    states = None
    for step, subgraph in prepared.steps(model):
        with arithmetic(device, precision):
            states = model.updated_memory(subgraph.nodes)
            logits = model.logits(subgraph, states)
        objective = loss = link_loss(logits)
        found = {"loss": loss, "movement": movement(states.previous, states.kept, states.pending)}
        if model.smoothing is not None:
            memories = states.previous, states.corrected
            objective = loss + model.smoothing.loss(*memories, states.pending, subgraph.roots)
            found |= model.smoothing.stats()
        for name, value in take_step(objective, found, optimiser, batch, accumulation).items():
            total[name] = total.get(name, 0.0) + len(step) * value
    with torch.no_grad(), arithmetic(device, precision):
        _take_in(model, prepared, None if prepared.subgraph is None else states)
    return {name: value / len(batch) for name, value in total.items()}


def take_step(
    objective: Tensor,
    found: dict[str, Tensor],
    optimiser: torch.optim.Optimizer,
    batch: EventStream,
    accumulation: Accumulation,
) -> dict[str, float]:
    """Return what was ``found`` as numbers, after adding the objective's gradient to that of the step.

    The weights move with the last batch of a step.
    """
    if accumulation.first:
        optimiser.zero_grad()
    torch.autograd.backward(objective, objective.new_tensor(accumulation.share))
    return move_weights(objective, found, optimiser, batch, accumulation)


def move_weights(
    objective: Tensor,
    found: dict[str, Tensor],
    optimiser: torch.optim.Optimizer,
    batch: EventStream,
    accumulation: Accumulation,
) -> dict[str, float]:
    """Move the weights against their gradients if the step has all; return what was ``found``."""
    known = [*found.values(), objective, _gradient_norm(optimiser)]
    *values, last_objective, norm = torch.stack([value.detach().double() for value in known]).tolist()
    _check_finite(last_objective, norm, batch)
    if accumulation.last:
        optimiser.step()
    return dict(zip(found, values, strict=True))


def link_loss(logits: Tensor) -> Tensor:
    """Return the mean loss of events, the first of each row `[b, 1 + count]`, plus that of negatives."""
    b, count = logits.shape[0], logits.shape[1] - 1
    real, share = logits.new_zeros(1, 1 + count), logits.new_full((1, 1 + count), 1 / (b * count))
    real[0, 0], share[0, 0] = 1, 1 / b
    return binary_cross_entropy_with_logits(logits, real.expand_as(logits), share, reduction="sum")


def _take_in(model: MDGNN, prepared: Prepared, states: States | None) -> None:
    """Take in the batch; smoothing, if any, observes what that does to memory."""
    batch, routing, smoothing = prepared.batch, prepared.routing, model.smoothing
    if smoothing is None or not smoothing.observes:
        model.update_state(batch, states, routing=routing, places=prepared.places)
        return
    roles: dict[Role, Tensor] = {"event": routing.endpoints}
    if smoothing.negatives_send:  # which makes endpoints of the drawn, too
        roles["event"] = distinct(torch.cat([batch.src, batch.dst]))
    if "negative" in smoothing.observes:
        roles["negative"] = distinct(prepared.negatives)
    if states is None:
        states = model.updated_memory(distinct(torch.cat([routing.endpoints, *roles.values()])))
    update = model.pending_update(roles, states)
    model.update_state(batch, states, routing=routing)
    smoothing.observe(*update)


def _gradient_norm(optimiser: torch.optim.Optimizer) -> Tensor:
    """Return the norm of all gradients."""
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    return torch.nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])


def _check_finite(loss: float, norm: float, batch: EventStream) -> None:
    """Raise before a step that would spoil the weights."""
    if not (math.isfinite(loss) and math.isfinite(norm)):
        what = "a gradient became infinite" if math.isfinite(loss) else f"the loss became {loss}"
        raise DivergedError(
            f"{what} in the batch of events {batch.offset:,} to {batch.offset + len(batch) - 1:,}. "
            "The model keeps the weights it had. Try a smaller lr."
        )


def arithmetic(device: torch.device, precision: str) -> torch.autocast:
    """Return the context in which matrix products are made in ``precision``."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16")
