"""Loss and gradient at fixed weights, along a stream: what measurements of training are made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
from torch import Tensor
from torch.nn.functional import softplus

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.models import MDGNN
from pres.models.scratch import scratch_of
from pres.models.sequential import sequential_memory
from pres.sampling import NegativeSampler, TemporalBatches


def training_part(model: MDGNN, events: EventStream, limit: int | None) -> EventStream:
    """Return the events of the training part, or its first ``limit``, where the model is."""
    events = events.to(model.memory.device)
    model.check_stream(events)
    train = events.split().train
    if limit is None:
        return train
    if not 1 <= limit <= len(train):
        raise OptionError(f"events={limit:,}: the training part has {len(train):,}; take 1 or more of them.")
    return train[:limit]


def whole_batches(part: EventStream, size: int) -> TemporalBatches:
    """Return the batches of exactly ``size`` events; a smaller rest at the end is left out."""
    if not 1 <= size <= len(part):
        raise OptionError(f"batch_size={size:,} does not fit the {len(part):,} events that are measured on.")
    return TemporalBatches(part[: len(part) // size * size], size)


def batches_to_try(
    model: MDGNN,
    events: EventStream,
    batch_sizes: Sequence[int] | None,
    usual: Sequence[int],
    limit: int | None,
) -> tuple[EventStream, NegativeSampler, dict[int, TemporalBatches]]:
    """Return the training part, where its negatives come from, and its batches of each size, increasing.

    The sizes are those asked for, or those of the usual ones that fit the part.
    """
    part = training_part(model, events, limit)
    if batch_sizes is None:
        batch_sizes = [size for size in usual if size <= len(part)] or [len(part)]
    if not batch_sizes:
        raise OptionError("give at least one batch size.")
    cut = {size: whole_batches(part, size) for size in sorted(set(batch_sizes))}
    return part, NegativeSampler(events.to(part.src.device)), cut


def replay(model: MDGNN, batches: Iterable[EventStream]) -> Iterator[tuple[MDGNN, EventStream]]:
    """Yield a copy of ``model`` with each batch, its memory as a training epoch has it just before the batch.

    The copy shares the weights, is without dropout and has a memory of its own: the model is left as it
    was. A filter is on as in evaluation, with the trackers that the model came with.
    """
    copied = scratch_of(model)
    copied.memory.reset()
    for batch in batches:
        yield copied, batch
        copied.update_state(batch)


def batch_loss(model: MDGNN, batch: EventStream, negatives: Tensor) -> Tensor:
    """Return the loss that training takes of a batch: a mean over its events and one over negatives."""
    subgraph = model.sample(batch, negatives)
    positive, negative = model.score(subgraph, model.updated_memory(subgraph.nodes))
    return softplus(-positive).mean() + softplus(negative).mean()


def sequential_loss(model: MDGNN, batch: EventStream, negatives: Tensor) -> Tensor:
    """Return the same of events in sequence: each is predicted from the exact memory just before it.

    The memory of ``model``, which has no smoothing, must be the exact one before the batch. Gradients reach
    the last update of a memory, as in batches of one event.
    """
    inside = sequential_memory(model, batch)
    subgraph = inside.sample(batch, negatives)
    positive, negative = model.score(subgraph, inside.states_of(subgraph))
    return softplus(-positive).mean() + softplus(negative).mean()


def trainable(model: MDGNN) -> list[Tensor]:
    """Return the parameters that training moves."""
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def flat_gradient(value: Tensor, parameters: Sequence[Tensor], *, differentiable: bool = False) -> Tensor:
    """Return the gradient `[p]` of a number by all parameters; 0 for one it does not depend on."""
    found = torch.autograd.grad(
        value, list(parameters), create_graph=differentiable, allow_unused=True, materialize_grads=True
    )
    return torch.cat([gradient.flatten() for gradient in found])


def largest_curvature(
    loss: Tensor, parameters: Sequence[Tensor], iterations: int = 20, seed: int = 0
) -> float:
    """Return the largest absolute eigenvalue of the Hessian of ``loss``, from below.

    ``‖H v‖`` for a unit vector v that is turned by H again and again. It never exceeds the largest
    eigenvalue and comes closer to it with every iteration. The gradient's Lipschitz constant L is the
    largest such value over all weights; this one is of the weights as they are, so it is a lower estimate
    of L.
    """
    if iterations < 1:
        raise OptionError(f"iterations={iterations}: power iteration takes at least one.")
    gradient = flat_gradient(loss, parameters, differentiable=True)
    if not gradient.requires_grad:  # a straight line: the gradient depends on no weight
        return 0.0
    generator = torch.Generator(gradient.device).manual_seed(seed)
    v = torch.randn(len(gradient), generator=generator, dtype=gradient.dtype, device=gradient.device)
    length = v.norm()
    for _ in range(iterations):
        if float(length) == 0:  # no curvature in any direction reached
            return 0.0
        turned = torch.autograd.grad(
            gradient,
            list(parameters),
            v / length,
            retain_graph=True,
            allow_unused=True,
            materialize_grads=True,
        )
        v = torch.cat([part.flatten() for part in turned])
        length = v.norm()
    return float(length)


def loss_and_gradient(
    model: MDGNN,
    replayed: Iterable[tuple[MDGNN, EventStream]],
    loss: Callable[[MDGNN, EventStream, Tensor], Tensor],
    sampler: NegativeSampler,
    seed: int,
) -> tuple[float, float]:
    """Return the mean loss of replayed batches, and the squared norm of the mean of their gradients."""
    parameters, losses, gradient = trainable(model), [], torch.zeros(())
    for copied, batch in replayed:
        value = loss(copied, batch, sampler.sample(batch, seed=seed).nodes)
        gradient = gradient + flat_gradient(value, parameters).double()
        losses.append(value.item())
    return sum(losses) / len(losses), float((gradient / len(losses)).square().sum())
