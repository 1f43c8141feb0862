"""The bound of Theorem 2, from its terms, and plain SGD at its own step size, which it is about.

    min_t E‖∇L(θ_t)‖² ≤ (2·√K·L·(L(θ₀) − L(θ*)) / μ² + √K·σ²_max·(1 + log T)) / √T,  η_t = μ / (L·√(K·t))

The paper prints log T. Its proof sums 1/t over the epochs, and ``Σ_{t=1..T} 1/t ≤ 1 + log T``. log T itself
is below the sum: at T = 1 it is 0, and the sum is 1. So the bound here has 1 + log T.

    θ ← θ − η_t · ∇L̂_i(θ)   for each batch i = 1 … K of each epoch t = 1 … T,   η_t = μ / (L·√(K·t))

There is no momentum, no weight decay and no dropout. Only the negatives are random; they avoid the pairs of
their batch. L̂_i is the loss of a batch with standard memory: SGD descends on it. L is the loss of the events
in sequence: the theorem bounds its gradient. Every event is predicted from the exact memory just before it,
and gradients reach the last update of that memory, as in batches of one event.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from rich.table import Table

from pres.data.stream import EventStream
from pres.models import MDGNN
from pres.paper.theory.gradients import trainable, training_part
from pres.sampling import NegativeSampler, TemporalBatches
from pres.sampling.rng import derived
from pres.tables import listed
from pres.training.checkpoint import load_into, state_of
from pres.training.step import prepare, train_on_batch


def step_size(mu: float, lipschitz: float, batches: int, epoch: int) -> float:
    """Return the step size ``μ / (L·√(K·t))`` of epoch ``t = 1 … T``."""
    return mu / (lipschitz * math.sqrt(batches * epoch))


@dataclass(frozen=True, kw_only=True)
class Bound:
    """The terms of the bound along a run, and what they make of it."""

    batches: int  # K, of the training part
    epochs: int  # T
    losses: tuple[float, ...]  # at fixed weights: before training, and after every epoch
    gradients: tuple[float, ...]  # ‖∇L‖² there
    lipschitz: float  # L, from below
    sigma2_max: float
    mu: float | None  # None: not known

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
        epochs = range(1, self.epochs + 1)
        return tuple(step_size(self.mu, self.lipschitz, self.batches, t) for t in epochs)

    @property
    def gap_term(self) -> float | None:
        """What the bound has because of the distance to the optimum: the part that coherence divides."""
        if self.mu is None or self.mu <= 0:
            return None
        whole = 2 * math.sqrt(self.batches) * self.lipschitz * self.loss_gap / self.mu**2
        return whole / math.sqrt(self.epochs)

    @property
    def variance_term(self) -> float:
        """What the bound has because negatives are drawn, with 1 + log T."""
        return math.sqrt(self.batches / self.epochs) * self.sigma2_max * (1 + math.log(self.epochs))

    @property
    def bound(self) -> float | None:
        """The bound; None where μ is not known or not positive."""
        return None if self.gap_term is None else self.gap_term + self.variance_term

    def along(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Return loss and gradient before training and at their smallest, for a table."""
        losses, gradients = self.losses, self.gradients
        return (
            ("loss", f"{losses[0]:.4f} before training, {min(losses):.4f} the smallest seen"),
            ("‖∇L‖²", f"{gradients[0]:.4g} before training, {self.smallest_gradient:.4g} the smallest seen"),
        )

    def terms(self, none: str = "", comment: str = "") -> tuple[tuple[str, str], ...]:
        """Return σ²_max, the terms and the bound for a table; ``none`` stands where there is none."""
        return (
            ("σ²_max", f"{self.sigma2_max:.4g}"),
            ("loss gap term", none if self.gap_term is None else f"{self.gap_term:.4g}"),
            ("variance term", f"{self.variance_term:.4g}"),
            ("bound", none if self.bound is None else f"{self.bound:.4g}{comment}"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        names = ("loss_gap", "smallest_gradient", "gap_term", "variance_term", "bound")
        derived = {name: getattr(self, name) for name in ("assumption_holds", "step_sizes", *names)}
        return dataclasses.asdict(self) | derived


@dataclass(frozen=True, kw_only=True)
class Descent(Bound):
    """The terms along plain SGD: μ and L are those before training, which its step size is made of."""

    lipschitz_after: float  # L at the last weights: above `lipschitz` the steps were too long for the theorem
    mu_after: float | None  # μ at the last weights; None: it was given, or no event has one

    @property
    def holds(self) -> bool:
        """Whether the smallest ``‖∇L‖²`` is at most the bound."""
        return self.bound is not None and self.smallest_gradient <= self.bound

    @property
    def vacuous(self) -> bool:
        """Whether the bound is above ``‖∇L(θ₀)‖²``: then it holds without any training."""
        return self.bound is not None and self.bound >= self.gradients[0]

    @property
    def constants_hold(self) -> bool:
        """Whether the last weights still have the μ and the L that the step size was made of."""
        coherent = self.mu_after is None or (self.mu is not None and self.mu_after >= self.mu)
        return coherent and self.lipschitz_after <= self.lipschitz

    def shown(self) -> Table:
        """Return the terms, one row each."""
        steps, against = self.step_sizes or (), "holds" if self.holds else "does not hold"
        empty = "; it is above ‖∇L‖² before training, so it says nothing" if self.vacuous else ""
        after = "" if self.mu_after is None else f", {self.mu_after:.4g} after training"
        return listed(
            ("η", f"{steps[0]:.3g} in epoch 1, {steps[-1]:.3g} in the last"),
            *self.along(),
            ("L", f"{self.lipschitz:.4g} before training, {self.lipschitz_after:.4g} after it"),
            ("μ", f"{self.mu:.4g}{after}"),
            *self.terms(comment=f" {against}{empty}"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        names = ("holds", "vacuous", "constants_hold")
        return super().to_dict() | {name: getattr(self, name) for name in names}


def descend(
    model: MDGNN,
    events: EventStream,
    sampler: NegativeSampler,
    step_sizes: Sequence[float],
    *,
    batch_size: int,
    seed: int,
) -> Iterator[None]:
    """Move the weights by plain SGD through one epoch for each of the step sizes; yield after each."""
    batches = TemporalBatches(training_part(model, events, None), batch_size)
    optimiser = torch.optim.SGD(trainable(model), lr=step_sizes[0])
    model.eval()  # no dropout
    for epoch, eta in enumerate(step_sizes, start=1):
        of_epoch = derived(seed, epoch)
        optimiser.param_groups[0]["lr"] = eta
        model.reset()
        for batch in batches:
            negatives = sampler.sample(batch, seed=of_epoch).nodes
            train_on_batch(model, prepare(model, batch, negatives, seed=of_epoch), optimiser)
        yield
    optimiser.zero_grad()


@contextmanager
def restored(model: MDGNN) -> Iterator[None]:
    """Return a context that leaves ``model`` with the weights, the memory and the mode that it came with."""
    state, training = state_of(model), model.training
    try:
        yield
    finally:
        load_into(model, state)
        model.train(training)
