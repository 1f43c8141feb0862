"""Theorem 2: the terms of its bound, measured while a model is trained, and the step size it asks for.

    min_t E‖∇L(θ_t)‖² ≤ (2·√K·L·(L(θ₀) − L(θ*)) / μ² + √K·σ²_max·log T) / √T,  with  η_t = μ / (L·√(K·t))

- K: the batches of an epoch, T the epochs. The loss is that of a batch, a mean over its events, and
  ``L(θ)`` its mean over the batches of the replayed training part. The proof applies its inequalities to
  single batches, so loss, curvature and variance are all on this scale.
- L (the constant): the largest curvature of some batches' losses, by power iteration at the weights before
  and after training: a local, lower estimate.
- σ²_max: the largest variance of a batch's gradient over the draw of negatives (Theorem 1), at the same
  weights.
- θ*: the weights of the smallest loss seen. A lower loss would make the bound larger.
- μ: the lower bound of memory coherence: given, or the smallest of sampled events at the same weights, by
  the parameters as the proof needs it (an estimate from above: others may have less). Where it is not above 0
  the theorem's assumption fails; there is no step size and no bound, and nothing is clamped.

The theorem is about plain gradient descent; `fit` uses Adam, whose lr is a length per weight. The two step
sizes are of different methods, and are set beside each other, not equated.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from pres.errors import OptionError
from pres.events import EventStream
from pres.models import MDGNN
from pres.sampling import NegativeSampler, TemporalBatches
from pres.theory.coherence import memory_coherence
from pres.theory.gradients import batch_loss, flat_gradient, replay, trainable, training_part, whole_batches
from pres.theory.lipschitz import largest_curvature
from pres.theory.measured import Measured, about
from pres.theory.variance import gradient_variance
from pres.training import EpochResult, fit


@dataclass(frozen=True, kw_only=True)
class Convergence(Measured):
    """The terms of Theorem 2's bound, and what they make of it; the weights are those before training, θ₀."""

    batch_size: int
    batches: int  # K, of the training part
    epochs: int  # T
    measured_events: int  # of the training part, from its beginning, that the terms are measured on
    lr: float  # used in training, with Adam
    losses: tuple[float, ...]  # at fixed weights: before training, and after every epoch
    gradients: tuple[float, ...]  # ‖∇L‖² there
    lipschitz: float  # L, from below
    sigma2_max: float
    mu: float | None  # None: not known
    mu_samples: int = 0  # events, before and after training, that μ is the smallest of; 0: it was given

    @property
    def loss_gap(self) -> float:
        """How far the loss fell: that before training less the smallest seen."""
        return self.losses[0] - min(self.losses)

    @property
    def smallest_gradient(self) -> float:
        """The smallest ``‖∇L‖²`` seen: what the bound is a bound of."""
        return min(self.gradients)

    @property
    def assumption_holds(self) -> bool | None:
        """Whether memory coherence is bounded below by something positive; None if it is not known."""
        return None if self.mu is None else self.mu > 0

    @property
    def step_sizes(self) -> tuple[float, ...] | None:
        """The step size of each epoch ``t = 1 … T`` that the theorem asks for."""
        if self.mu is None or self.mu <= 0 or self.lipschitz == 0:
            return None
        scale = self.mu / (self.lipschitz * math.sqrt(self.batches))
        return tuple(scale / math.sqrt(t) for t in range(1, self.epochs + 1))

    @property
    def gap_term(self) -> float | None:
        """What the bound has because of the distance to the optimum: the part that coherence divides."""
        if self.mu is None or self.mu <= 0:
            return None
        whole = 2 * math.sqrt(self.batches) * self.lipschitz * self.loss_gap / self.mu**2
        return whole / math.sqrt(self.epochs)

    @property
    def variance_term(self) -> float:
        """What the bound has because negatives are drawn."""
        return math.sqrt(self.batches / self.epochs) * self.sigma2_max * math.log(self.epochs)

    @property
    def bound(self) -> float | None:
        """The bound; None where μ is not known or not positive."""
        return None if self.gap_term is None else self.gap_term + self.variance_term

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``pres theory convergence --json`` prints it."""
        names = ("loss_gap", "smallest_gradient", "gap_term", "variance_term", "bound")
        derived = {name: getattr(self, name) for name in ("assumption_holds", "step_sizes", *names)}
        return dataclasses.asdict(self) | derived

    def save_png(self, path: str | Path) -> Path:
        """Draw the terms as one picture at ``path`` and return it."""
        from pres.theory.figures.convergence import save_figure

        return save_figure(self, Path(path))


def convergence_terms(
    model: MDGNN,
    events: EventStream,
    *,
    batch_size: int = 200,
    epochs: int = 3,
    lr: float = 1e-3,
    mu: float | None = None,
    samples: int = 0,
    draws: int = 8,
    curvature_batches: int = 4,
    iterations: int = 20,
    limit: int | None = None,
    seed: int = 0,
    weights: str = "as given",
    progress: bool = False,
) -> Convergence:
    """Train ``model`` and return the terms of Theorem 2's bound.

    Args:
        model: A model made from ``events``, with the weights θ₀; it is trained.
        events: The whole stream.
        batch_size: Of training and of the measurements.
        epochs: T; all of them are trained.
        lr: Of training, the same throughout.
        mu: The lower bound of memory coherence.
        samples: Where μ is not given, events to measure it on; with none, what needs it is None.
        draws: Of negatives, for σ²_max.
        curvature_batches: How many batches, spread evenly, the curvature is measured on.
        iterations: Of power iteration.
        limit: Measure on so many events from the beginning of the training part; training uses all.
        seed: Of training and of the draws.
        weights: What to say of where θ₀ comes from.
        progress: Whether to show progress bars on stderr.
    """
    if mu is not None and not math.isfinite(mu):
        raise OptionError(f"mu={mu}: memory coherence is bounded by a finite number.")
    if curvature_batches < 1:
        raise OptionError(f"curvature_batches={curvature_batches}: measure on at least one.")
    if samples < 0:
        raise OptionError(f"samples={samples}: measure μ on 0 or more events.")
    part = training_part(model, events, limit)
    batches = whole_batches(part, batch_size)
    sampler = NegativeSampler(events.to(part.src.device))
    sampled = 0 if mu is not None else samples
    found: list[tuple[float, float]] = []

    def measure(_: EpochResult | None = None) -> None:
        found.append(_loss_and_gradient(model, batches, sampler, seed))

    def constants() -> tuple[float, float, float | None]:
        curvature = _lipschitz(model, batches, sampler, seed, curvature_batches, iterations)
        variance = gradient_variance(
            model, events, [batch_size], draws=draws, limit=limit, seed=seed, progress=progress
        )
        if not sampled:
            return curvature, variance.rows[0].largest, mu
        coherence = memory_coherence(
            model,
            events,
            [batch_size],
            wrt="parameters",
            samples=sampled,
            limit=limit,
            seed=seed,
            progress=progress,
        )
        return curvature, variance.rows[0].largest, coherence.minimum

    measure()
    before = constants()
    fit(
        model,
        events,
        batch_size=batch_size,
        epochs=epochs,
        patience=epochs,
        lr=lr,
        lr_decay="none",
        seed=seed,
        progress=progress,
        on_epoch=measure,
    )
    after = constants()
    losses, gradients = zip(*found, strict=True)
    return Convergence(
        **about(model, events, weights),
        batch_size=batch_size,
        batches=len(TemporalBatches(events.split().train, batch_size)),
        epochs=epochs,
        measured_events=len(part) // batch_size * batch_size,
        lr=lr,
        losses=losses,
        gradients=gradients,
        lipschitz=max(before[0], after[0]),
        sigma2_max=max(before[1], after[1]),
        mu=min((each for each in (before[2], after[2]) if each is not None), default=None),
        mu_samples=sampled,
    )


def _loss_and_gradient(
    model: MDGNN, batches: TemporalBatches, sampler: NegativeSampler, seed: int
) -> tuple[float, float]:
    """Return the mean of the batches' losses, and the squared norm of the mean of their gradients."""
    parameters = trainable(model)
    total, gradient = 0.0, torch.zeros(())
    for copied, batch in replay(model, batches):
        loss = batch_loss(copied, batch, sampler.sample(batch, seed=seed).nodes)
        gradient = gradient + flat_gradient(loss, parameters).double()
        total += loss.item()
    return total / len(batches), float((gradient / len(batches)).square().sum())


def _lipschitz(
    model: MDGNN, batches: TemporalBatches, sampler: NegativeSampler, seed: int, count: int, iterations: int
) -> float:
    """Return the largest curvature among ``count`` batches, the last and others spread evenly before it."""
    chosen = {len(batches) - 1 - i * len(batches) // count for i in range(count)}
    largest = 0.0
    for i, (copied, batch) in enumerate(replay(model, batches)):
        if i in chosen:
            loss = batch_loss(copied, batch, sampler.sample(batch, seed=seed).nodes)
            largest = max(largest, largest_curvature(loss, trainable(copied), iterations, seed))
    return largest
