"""Theorem 2: the terms of its bound, measured along two trainings from the same weights.

`Bound` has the bound and its terms. One training is plain SGD at the step size that the theorem asks for
(`Descent`): the bound is about this one. The other is by Adam, as in `fit`. The theorem does not cover it;
its terms are set beside the others.

- K: the batches of an epoch, T the epochs. The loss is that of a batch, a mean over its events, and
  ``L(θ)`` its mean over the batches of the replayed training part. The proof applies its inequalities to
  single batches, so loss, curvature and variance are all on this scale. Along plain SGD L(θ) is the loss
  of the events in sequence, as in the theorem; along Adam it is that of the batches as they are trained on.
- L (the constant): the largest curvature of some batches' losses, by power iteration: a local, lower
  estimate.
- σ²_max: the largest variance of a batch's gradient over the draw of negatives (Theorem 1), at the weights
  before and after training.
- θ*: the weights of the smallest loss seen. A lower loss would make the bound larger.
- μ: the lower bound of memory coherence: given, or the smallest of sampled events, by the parameters as the
  proof needs it (an estimate from above: others may have less). Where it is not above 0 the theorem's
  assumption fails: there is no step size and no bound, nothing is clamped, and plain SGD is not run.

The step size of plain SGD is made of μ and L before training; those after training are reported beside them.
Along Adam, μ is the smaller and L the larger of the two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from rich.console import Group
from rich.table import Table

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.figure import FIRST, GREY, SECOND, THIRD
from pres.models import MDGNN
from pres.paper.theory.coherence import memory_coherence
from pres.paper.theory.descent import Bound, Descent, descend, restored, step_size
from pres.paper.theory.exact import replay_exactly
from pres.paper.theory.gradients import (
    batch_loss,
    largest_curvature,
    loss_and_gradient,
    replay,
    sequential_loss,
    trainable,
    training_part,
    whole_batches,
)
from pres.paper.theory.measured import Measured, about
from pres.paper.theory.variance import gradient_variance
from pres.sampling import NegativeSampler, TemporalBatches
from pres.tables import listed
from pres.training import fit
from pres.training.checkpoint import EpochResult


class Constants(NamedTuple):
    """What the theorem takes as constants, measured at some weights."""

    lipschitz: float
    sigma2_max: float
    mu: float | None


@dataclass(frozen=True, kw_only=True)
class Convergence(Bound, Measured):
    """The terms of Theorem 2's bound along plain SGD (``sgd``) and, all others, along Adam; from θ₀."""

    batch_size: int
    measured_events: int  # of the training part, from its beginning, that the terms are measured on
    lr: float  # used in training, with Adam
    mu_samples: int = 0  # events, before and after training, that μ is the smallest of; 0: it was given
    mu_before: float | None = None  # μ before training
    sgd: Descent | None = None  # None: there is no step size for it

    @property
    def no_descent(self) -> str | None:
        """Why plain SGD was not run; None if it was."""
        if self.sgd is not None:
            return None
        if self.mu_before is None:
            return "μ is not known"
        return "the assumption μ > 0 fails" if self.mu_before <= 0 else "L = 0: any step size will do"

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``pres theory convergence --json`` prints it."""
        sgd = None if self.sgd is None else self.sgd.to_dict()
        return super().to_dict() | {"sgd": sgd, "no_descent": self.no_descent}

    def shown(self) -> Group:
        """Return the terms of the bound: what both trainings share, then those along each, one row each."""
        shared = listed(
            ("batches, K", f"{self.batches:,} of {self.batch_size:,} events"),
            ("epochs, T", f"{self.epochs:,}"),
            ("measured on", f"the first {self.measured_events:,} training events"),
        )
        parts: list[Table | str] = [f"Terms of Theorem 2: {self.title}", shared, ""]
        if self.sgd is None:
            parts += [f"Plain SGD: not run, there is no step size: {self.no_descent}"]
        else:
            parts += [
                "Plain SGD at the theorem's step size; L(θ) of the events in sequence",
                self.sgd.shown(),
            ]
        none = "μ is not known" if self.mu is None else "none: the assumption μ > 0 fails"
        adam = listed(
            ("lr", f"{self.lr:g}"),
            *self.along(),
            ("L", f"at least {self.lipschitz:.4g} (power iteration, a local estimate)"),
            ("μ", self._mu_in_words()),
            *self.terms(none),
        )
        note = "The variance term has 1 + log T, which is at least Σ 1/t; the paper has log T."
        return Group(
            *parts, "", "Adam, which the theorem does not cover; L(θ) of the batches", adam, "", note
        )

    def _mu_in_words(self) -> str:
        if self.mu is None:
            return "not given" if not self.mu_samples else "no sampled event has one"
        measured = f" (the smallest of {self.mu_samples:,} sampled events, before and after training)"
        return f"{self.mu:.4g}{measured if self.mu_samples else ''}"

    def panels(self) -> tuple[str, Sequence[Callable[[Axes], None]]]:
        """Return losses and step sizes of both trainings, and the bound beside what it bounds.

        The bound is that of plain SGD; where there is none, the terms along Adam are drawn.
        """
        sgd = self.sgd
        without = "" if sgd is not None else f": none, {self.no_descent}"

        def losses(panel: Axes) -> None:
            panel.plot(range(len(self.losses)), self.losses, "o-", color=FIRST, label="Adam, in batches")
            if sgd is not None:
                at = range(len(sgd.losses))
                panel.plot(at, sgd.losses, "o-", color=SECOND, label="plain SGD, in sequence")
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
            panel.set(
                title="Loss at fixed weights", xlabel="epochs of training", ylabel="mean over the batches"
            )
            panel.legend(frameon=False)

        def steps(panel: Axes) -> None:
            panel.axhline(self.lr, linestyle=":", color=GREY, label="lr of Adam")
            if sgd is not None and sgd.step_sizes is not None:
                epochs = list(range(1, sgd.epochs + 1))
                panel.plot(epochs, sgd.step_sizes, "o-", color=SECOND, label="η of plain SGD")
            panel.xaxis.set_major_locator(MaxNLocator(integer=True))
            panel.set(yscale="log", title="Step size" + without, xlabel="epoch")
            panel.legend(frameon=False)

        def bound(panel: Axes) -> None:
            terms: Bound = self if sgd is None else sgd
            bars = {
                "‖∇L‖² before\ntraining": (terms.gradients[0], GREY),
                "smallest\n‖∇L‖² seen": (terms.smallest_gradient, FIRST),
                "variance\nterm": (terms.variance_term, THIRD),
            }
            if sgd is not None and sgd.gap_term is not None and sgd.bound is not None:
                bars |= {"loss gap\nterm": (sgd.gap_term, THIRD), "bound": (sgd.bound, SECOND)}
            drawn = {name: bar for name, bar in bars.items() if bar[0] > 0}  # a logarithmic scale has no 0
            panel.bar(
                list(drawn), [value for value, _ in drawn.values()], color=[c for _, c in drawn.values()]
            )
            title = f"Bound{without}" if sgd is None else "Bound, plain SGD"
            panel.set(yscale="log" if drawn else "linear", title=title)

        return f"{self.title}: batches of {self.batch_size:,}", (losses, steps, bound)


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
    """Train ``model`` twice from its weights, and return the terms of Theorem 2's bound along each.

    First by plain SGD at the theorem's step size, if there is one; then by Adam, whose weights it keeps.

    Args:
        model: A model made from ``events``, with the weights θ₀; it is trained.
        events: The whole stream.
        batch_size: Of training and of the measurements.
        epochs: T; all of them are trained.
        lr: Of Adam, the same throughout.
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
    if epochs < 1:
        raise OptionError(f"epochs={epochs}: train for at least one.")
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
        found.append(loss_and_gradient(model, replay(model, batches), batch_loss, sampler, seed))

    def in_sequence() -> tuple[float, float]:
        return loss_and_gradient(model, replay_exactly(model, batches), sequential_loss, sampler, seed)

    def constants() -> Constants:
        curvature = _lipschitz(model, batches, sampler, seed, curvature_batches, iterations)
        on: dict[str, Any] = {"batch_sizes": [batch_size], "limit": limit, "seed": seed, "progress": progress}
        variance = gradient_variance(model, events, draws=draws, **on).rows[0].largest
        if not sampled:
            return Constants(curvature, variance, mu)
        coherence = memory_coherence(model, events, wrt="parameters", samples=sampled, **on)
        return Constants(curvature, variance, coherence.minimum)

    measure()
    before = constants()
    all_batches = len(TemporalBatches(events.split().train, batch_size))
    sgd = None
    if before.mu is not None and before.mu > 0 and before.lipschitz > 0:
        etas = [step_size(before.mu, before.lipschitz, all_batches, t) for t in range(1, epochs + 1)]
        along = [in_sequence()]
        with restored(model):
            for _ in descend(model, events, sampler, etas, batch_size=batch_size, seed=seed):
                along.append(in_sequence())
            end = constants()
        sgd = Descent(
            batches=all_batches,
            epochs=epochs,
            losses=tuple(loss for loss, _ in along),
            gradients=tuple(gradient for _, gradient in along),
            lipschitz=before.lipschitz,
            sigma2_max=max(before.sigma2_max, end.sigma2_max),
            mu=before.mu,
            lipschitz_after=end.lipschitz,
            mu_after=end.mu if sampled else None,
        )
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
        batches=all_batches,
        epochs=epochs,
        measured_events=len(part) // batch_size * batch_size,
        lr=lr,
        losses=losses,
        gradients=gradients,
        lipschitz=max(before.lipschitz, after.lipschitz),
        sigma2_max=max(before.sigma2_max, after.sigma2_max),
        mu=min((each for each in (before.mu, after.mu) if each is not None), default=None),
        mu_samples=sampled,
        mu_before=before.mu,
        sgd=sgd,
    )


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
