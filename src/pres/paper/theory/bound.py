"""The bound of Theorem 2, from its terms.

    min_t E‖∇L(θ_t)‖² ≤ (2·√K·L·(L(θ₀) − L(θ*)) / μ² + √K·σ²_max·(1 + log T)) / √T,  η_t = μ / (L·√(K·t))

The paper prints log T. Its proof sums 1/t over the epochs, and ``Σ_{t=1..T} 1/t ≤ 1 + log T``. log T itself
is below the sum: at T = 1 it is 0, and the sum is 1. So the bound here has 1 + log T.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any


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
