"""One temporal batch of training: optimiser steps, then its events taken in."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits

from pres.data.incidence import distinct
from pres.data.stream import EventStream
from pres.errors import DivergedError
from pres.models import MDGNN, States
from pres.models.routing import MessageRouting
from pres.models.sample import Subgraph
from pres.smoothing import Role, movement


@dataclass(frozen=True, eq=False)
class Prepared:
    """A temporal batch with all that can be known of it before weights and memory have reached it."""

    batch: EventStream
    negatives: Tensor  # [b, count] other destinations
    routing: MessageRouting  # who gets mail
    step_size: int  # events per optimiser step
    seed: int  # of "uniform" neighbours
    subgraph: Subgraph  # what the first step looks at

    def steps(self, model: MDGNN) -> Iterator[tuple[EventStream, Subgraph]]:
        """Yield the events of each optimiser step, and what it looks at."""
        batch, size = self.batch, self.step_size
        yield batch[:size], self.subgraph
        for start in range(size, len(batch), size):
            part, negatives = batch[start : start + size], self.negatives[start : start + size]
            yield part, model.sample(part, negatives, batch.offset, self.seed)


@dataclass(frozen=True)
class Accumulation:
    """What a batch is of an optimiser step: all of it, or one of several whose gradients are accumulated."""

    share: float = 1.0  # of the step's events
    first: bool = True  # gradients begin anew
    last: bool = True  # the weights move


WHOLE = Accumulation()


def prepare(
    model: MDGNN, batch: EventStream, negatives: Tensor, step_size: int | None = None, seed: int = 0
) -> Prepared:
    """Return a batch to train on.

    Args:
        model: The model, its memory not beyond the batch.
        batch: The events.
        negatives: Other destinations `[b, count]`.
        step_size: Events per optimiser step; None for one step.
        seed: Of ``"uniform"`` neighbours.
    """
    size = step_size or max(1, len(batch))
    sending = negatives if model.smoothing is not None and model.smoothing.negatives_send else None
    subgraph = model.sample(batch[:size], negatives[:size], seed=seed)
    return Prepared(batch, negatives, model.route(batch, sending), size, seed, subgraph)


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
        if accumulation.first:
            optimiser.zero_grad()
        torch.autograd.backward(objective, objective.new_tensor(accumulation.share))
        for name, value in move_weights(objective, found, optimiser, batch, accumulation).items():
            total[name] = total.get(name, 0.0) + len(step) * value
    with torch.no_grad(), arithmetic(device, precision):
        _take_in(model, prepared, states if prepared.step_size >= len(batch) else None)
    return {name: value / len(batch) for name, value in total.items()}


def move_weights(
    objective: Tensor,
    found: dict[str, Tensor],
    optimiser: torch.optim.Optimizer,
    batch: EventStream,
    accumulation: Accumulation,
) -> dict[str, float]:
    """Move the weights against their gradients if the step has all; return what was ``found``.

    A loss or a gradient that is not finite raises before it would spoil the weights.
    """
    gradients = [p.grad for group in optimiser.param_groups for p in group["params"] if p.grad is not None]
    known = [*found.values(), objective, torch.nn.utils.get_total_norm(gradients)]
    *values, loss, norm = torch.stack([value.detach().double() for value in known]).tolist()
    if not (math.isfinite(loss) and math.isfinite(norm)):
        what = "a gradient became infinite" if math.isfinite(loss) else f"the loss became {loss}"
        raise DivergedError(
            f"{what} in the batch of events {batch.offset:,} to {batch.offset + len(batch) - 1:,}. "
            "The model keeps the weights it had. Try a smaller lr."
        )
    if accumulation.last:
        optimiser.step()
    return dict(zip(found, values, strict=True))


def link_loss(logits: Tensor) -> Tensor:
    """Return the mean loss of events, the first of each row `[b, 1 + count]`, plus that of negatives."""
    b, count = logits.shape[0], logits.shape[1] - 1
    real, share = logits.new_tensor([1] + [0] * count), logits.new_tensor([1 / b] + [1 / (b * count)] * count)
    return binary_cross_entropy_with_logits(logits, real.expand_as(logits), share, reduction="sum")


def _take_in(model: MDGNN, prepared: Prepared, states: States | None) -> None:
    """Take in the batch; smoothing, if any, observes what that does to memory."""
    batch, routing, smoothing = prepared.batch, prepared.routing, model.smoothing
    if smoothing is None or not smoothing.observes:
        model.update_state(batch, states, routing)
        return
    roles: dict[Role, Tensor] = {"event": routing.endpoints}
    if smoothing.negatives_send:  # which makes endpoints of the drawn, too
        roles["event"] = distinct(torch.cat([batch.src, batch.dst]))
    if "negative" in smoothing.observes:
        roles["negative"] = distinct(prepared.negatives)
    if states is None:
        states = model.updated_memory(distinct(torch.cat([routing.endpoints, *roles.values()])))
    update = model.pending_update(roles, states)
    model.update_state(batch, states, routing)
    smoothing.observe(*update)


def arithmetic(device: torch.device, precision: str) -> torch.autocast:
    """Return the context in which matrix products are made in ``precision``."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16")
