"""Plain SGD at Theorem 2's own step size: the training that the theorem is about.

    θ ← θ − η_t · ∇L̂_i(θ)   for each batch i = 1 … K of each epoch t = 1 … T,   η_t = μ / (L·√(K·t))

There is no momentum, no weight decay and no dropout. Only the negatives are random; they avoid the pairs of
their batch. L̂_i is the loss of a batch with standard memory: SGD descends on it. L is the loss of the events
in sequence: the theorem bounds its gradient. Every event is predicted from the exact memory just before it,
and gradients reach the last update of that memory, as in batches of one event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from rich.table import Table

from pres.data.stream import EventStream
from pres.models import MDGNN
from pres.paper.theory.bound import Bound
from pres.paper.theory.gradients import trainable, training_part
from pres.paper.theory.measured import listed
from pres.sampling import NegativeSampler, TemporalBatches
from pres.sampling.rng import derived
from pres.training.checkpoint import load_into, state_of
from pres.training.step import prepare, train_on_batch


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
            (prepared,) = prepare(model, batch, negatives, len(batch), seed=of_epoch)
            train_on_batch(model, prepared.ready(model), optimiser)
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
