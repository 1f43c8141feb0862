"""Memory coherence μ (Definition 3): whether gradients at an older memory lead where those at a fresh one do.

    μ(e_ij, B) = min over e in P(e_ij, B) of ⟨∇l(e_ij, s^(e)), ∇l(e_ij, s^(e_ij))⟩ / ‖∇l(e_ij, s^(e_ij))‖²

- ``s^(e)``: the exact memory of both nodes just after the pending event e, as one event after the other makes
  it. A node that e does not have is as it was at that moment.
- ``s^(e_ij)``: the fresh memory. The paper takes that after the event, which has the event's own label in it;
  ``fresh="before"`` takes that just before, which is what a prediction may know.
- ∇: by the two memories, as the definition says, or by all parameters that training moves, as the proof of
  Theorem 2 needs it, through embedding and decoder at the given memories.
- l: the loss of the event and of one drawn negative. Neighbours, the negative, and the time since a node's
  last event are as the batch finds them, so that one function is asked at different memories.

Where the gradient at the fresh memory is next to nothing the quotient says nothing: those events are counted
apart. Nothing is clamped. Without ties, and where mail goes to endpoints alone, the memory after the last
pending event is that just before the event: with ``fresh="before"`` no μ exceeds 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import torch
from rich.console import Console
from rich.progress import Progress
from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import DivergedError, OptionError, check_choice
from pres.models import MDGNN
from pres.paper.theory.event_loss import EventLoss
from pres.paper.theory.exact import MemoryInside, replay_exactly
from pres.paper.theory.gradients import flat_gradient, sizes_to_try, trainable, training_part, whole_batches
from pres.paper.theory.measured import Measured, about
from pres.sampling import NegativeSampler, TemporalBatches
from pres.sampling.pending import PendingProfile, pending_sets

Fresh = Literal["before", "after"]
Respect = Literal["memory", "parameters"]
BATCH_SIZES = (200, 400, 800, 1600, 3200)
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95)
AT_ONCE = 2_048  # losses computed together


@dataclass(frozen=True)
class CoherenceRow:
    """The memory coherence of sampled events at one batch size; None where there is nothing to tell."""

    batch_size: int
    batches: int  # all of exactly that size
    with_pending: float  # share of all events that have a pending set: only those have a coherence
    sampled: int  # events, of those
    mean_pending: float | None  # mean size of the pending sets of the sampled events
    near_zero: int  # sampled events whose fresh gradient is next to nothing; not in what follows
    not_positive: float | None  # share of the others with μ ≤ 0
    minimum: float | None
    quantiles: dict[str, float] | None  # by share, as "0.05"


@dataclass(frozen=True, kw_only=True)
class Coherence(Measured):
    """The memory coherence of sampled events, at each batch size."""

    events: int  # of the training part, from its beginning
    fresh: Fresh
    wrt: Respect
    samples: int  # asked for, at each batch size
    near_zero: float  # a fresh gradient is next to nothing below so many times the median's length
    seed: int
    rows: tuple[CoherenceRow, ...]

    @property
    def minimum(self) -> float | None:
        """The smallest μ of all; None where no event has one."""
        return min((row.minimum for row in self.rows if row.minimum is not None), default=None)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``pres theory coherence --json`` prints it."""
        return dataclasses.asdict(self) | {"minimum": self.minimum}

    def save_png(self, path: str | Path) -> Path:
        """Draw the coherence against the batch size as one picture at ``path`` and return it."""
        from pres.paper.theory.figures.coherence import save_figure

        return save_figure(self, Path(path))


def memory_coherence(
    model: MDGNN,
    events: EventStream,
    batch_sizes: Sequence[int] | None = None,
    *,
    fresh: Fresh = "after",
    wrt: Respect = "memory",
    samples: int = 500,
    near_zero: float = 1e-6,
    limit: int | None = None,
    seed: int = 0,
    weights: str = "as given",
    progress: bool = False,
) -> Coherence:
    """Return the memory coherence of sampled events, at the model's weights and with exact memory.

    A filter that the model may have is left aside: what it mends is not there. The model is left as it was.

    Args:
        model: A model made from ``events``.
        events: The whole stream, of which the training part is replayed.
        batch_sizes: Sizes to try; by default 200 to 3,200 as far as the events reach. A smaller batch at the
            end is left out.
        fresh: Whether the fresh memory is that just ``"before"`` the event, or ``"after"`` it, as in the
            paper.
        wrt: Whether gradients are by the two nodes' ``"memory"`` or by all trainable ``"parameters"``.
        samples: Events to sample at each batch size, of those with a pending set.
        near_zero: Fresh gradients shorter than so many times the median's length are counted apart.
        limit: Use only so many events from the beginning of the training part.
        seed: Of the sample and of the negatives.
        weights: What to say of where the weights come from.
        progress: Whether to show a progress bar on stderr.
    """
    check_choice("fresh", fresh, ("before", "after"))
    check_choice("wrt", wrt, ("memory", "parameters"))
    if samples < 1:
        raise OptionError(f"samples={samples}: sample at least one event.")
    if not 0 <= near_zero < 1:
        raise OptionError(f"near_zero={near_zero}: give a share of the median length, from 0 to below 1.")
    part = training_part(model, events, limit)
    sampler = NegativeSampler(events.to(part.src.device))
    cut = {size: whole_batches(part, size) for size in sizes_to_try(part, batch_sizes, BATCH_SIZES)}
    rows: list[CoherenceRow] = []
    with Progress(console=Console(stderr=True), transient=True, disable=not progress) as bars:
        for size, batches in cut.items():
            profile = PendingProfile.of(batches.events, batches.edges)
            chosen = _sample(profile.sizes, samples, seed)
            task = bars.add_task(f"batches of {size:,}", total=len(batches))
            found: list[tuple[Tensor, Tensor]] = []
            for copied, batch in replay_exactly(model, batches):
                begin = batch.offset - part.offset
                own = chosen[(chosen >= begin) & (chosen < begin + size)] - begin
                if len(own):
                    negatives = sampler.sample(batch, seed=seed).nodes
                    found.append(coherence_of(copied, batch, negatives, own, fresh, wrt))
                bars.advance(task)
                if not len(chosen) or begin + size > int(chosen[-1]):
                    break  # what follows was not sampled
            rows.append(_row(size, batches, profile.sizes, chosen, found, near_zero))
    return Coherence(
        **about(model, events, weights),
        events=len(part),
        fresh=fresh,
        wrt=wrt,
        samples=samples,
        near_zero=near_zero,
        seed=seed,
        rows=tuple(rows),
    )


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


def _sample(sizes: Tensor, samples: int, seed: int) -> Tensor:
    """Return the places `[k]`, increasing, of events drawn from those with a pending set."""
    candidates = (sizes > 0).nonzero().squeeze(1)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randperm(len(candidates), generator=generator)[:samples]
    return torch.sort(candidates[drawn.to(candidates.device)]).values


def _row(
    size: int,
    batches: TemporalBatches,
    sizes: Tensor,
    chosen: Tensor,
    found: list[tuple[Tensor, Tensor]],
    near_zero: float,
) -> CoherenceRow:
    row = partial(
        CoherenceRow,
        batch_size=size,
        batches=len(batches),
        with_pending=float((sizes > 0).double().mean()),
        sampled=len(chosen),
        mean_pending=float(sizes[chosen].double().mean()) if len(chosen) else None,
    )
    if not found:
        return row(near_zero=0, not_positive=None, minimum=None, quantiles=None)
    inner, squares = (torch.cat(parts) for parts in zip(*found, strict=True))
    if not bool(inner.isfinite().all() and squares.isfinite().all()):
        raise DivergedError(
            f"a gradient is not finite in batches of {size:,} events. Train the model with a smaller lr."
        )
    length = squares.sqrt()
    tells = length > near_zero * length.median()
    left_out = len(tells) - int(tells.sum())
    if left_out == len(tells):
        return row(near_zero=left_out, not_positive=None, minimum=None, quantiles=None)
    mu = (inner / squares)[tells]
    shares = torch.quantile(mu, torch.tensor(QUANTILES, dtype=mu.dtype, device=mu.device)).tolist()
    return row(
        near_zero=left_out,
        not_positive=float((mu <= 0).double().mean()),
        minimum=float(mu.min()),
        quantiles={f"{share:g}": value for share, value in zip(QUANTILES, shares, strict=True)},
    )
