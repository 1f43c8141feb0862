"""Proposition 1 on a simulated linear state-space: is a corrected state nearer to the true one?

The system of the proof, in every dimension of every node: ``s(t) = s(t⁻) + (t − t⁻)·N(μ, σ₂²)``. A step is
what one temporal batch does to a node: ``missing + 1`` transitions at random gaps. The measurement ``ŝ``
applies only the last of them, so it lags behind by the others, and has zero-mean noise: ``ŝ = s − lag +
N(0, σ₁²)``. Without missing transitions this is the proof's. Noise is given by its standard deviation.

STANDARD takes the measurement for the state. PRES takes ``s̄ = γ ŝ + (1 − γ)(s(t⁻) + (t − t⁻)·δ̂)``, where
δ̂ is the running mean of ``(reached − start) / Δt`` over the node's steps so far; a node's first step,
which has no δ̂ yet, is the measurement. In the proof's setting (``previous="true"``) start and reached are
the true states, in that of the algorithm (``"filtered"``) they are the filter's own. A measurement is made
anew from the true state in both: an MDGNN's starts from its own memory, so that what it missed once is
missing from then on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import torch
from matplotlib.axes import Axes
from rich.console import Group
from torch import Tensor

from pres.errors import OptionError
from pres.figure import FIRST, GREY, SECOND
from pres.paper.theory.measured import Result, tracked
from pres.tables import table

Previous = Literal["true", "filtered"]
Gain = Literal["analytic", "learned"]

NOISES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0)
MISSING = (0, 1, 3, 7)
GAPS = (0.5, 1.5)  # a gap is uniform between these: one near 0 would make a rate of any size
_COLOURS = {"true": FIRST, "filtered": SECOND}
_DASHES = {"analytic": "o-", "learned": "s--"}
GAINS = torch.linspace(0.02, 1.0, 50, dtype=torch.float64)  # among which γ is learned


@dataclass(frozen=True)
class System:
    """A linear state-space and how much of it to simulate."""

    noise: float = 1.0  # of a measurement, σ₁
    missing: int = 0  # transitions that a measurement leaves out
    drift: float = 1.0  # mean of a transition's rate, μ
    spread: float = 0.5  # standard deviation of that rate, σ₂
    nodes: int = 30
    dims: int = 3
    steps: int = 50

    def __post_init__(self) -> None:
        if not all(map(math.isfinite, (self.noise, self.drift, self.spread))):
            raise OptionError("noise, drift and spread of a state-space are finite numbers.")
        if self.noise <= 0 or self.spread <= 0 or self.missing < 0:
            raise OptionError(
                f"noise={self.noise}, spread={self.spread}, missing={self.missing}: noise and spread must "
                "be positive, and no fewer than 0 transitions can be missing."
            )
        if min(self.nodes, self.dims) < 1 or self.steps < 2:
            raise OptionError(
                f"nodes={self.nodes}, dims={self.dims}, steps={self.steps}: simulate at least one node of "
                "one dimension, for two steps; the first has nothing to predict from."
            )


@dataclass(frozen=True, eq=False)
class Paths:
    """What happened in a simulation, for several seeds at once."""

    gap: Tensor  # [steps, seeds, nodes, 1]: time that a step takes
    state: Tensor  # [steps + 1, seeds, nodes, dims], the first before any step
    measured: Tensor  # [steps, seeds, nodes, dims]


@dataclass(frozen=True)
class StateSpaceRow:
    """Mean distances to the true state, over the seeds, of one system and one filter."""

    noise: float
    missing: int
    previous: Previous
    gain: Gain
    gamma: float  # mean over the seeds
    standard: float
    standard_std: float  # over the seeds
    pres: float
    pres_std: float
    seeds_below: int  # in how many of the seeds PRES is nearer
    holds: bool  # whether PRES's mean error is below STANDARD's, as Proposition 1 says


@dataclass(frozen=True, kw_only=True)
class StateSpace(Result):
    """How far STANDARD and PRES are from the true state, for each noise and each number of missing ones."""

    drift: float
    spread: float
    nodes: int
    dims: int
    steps: int
    seeds: int
    rows: tuple[StateSpaceRow, ...]

    @property
    def title(self) -> str:
        """What was simulated, for people."""
        return f"drift {self.drift:g}, spread {self.spread:g}, {self.steps} steps, {self.seeds} seeds"

    def shown(self) -> Group:
        """Return the errors of STANDARD and PRES, one row for each system and filter."""
        rows = [
            (
                *(f"{row.noise:g}", f"{row.missing}", row.previous, f"{row.gain} {row.gamma:.3f}"),
                f"{row.standard:.3f} ± {row.standard_std:.3f}",
                f"{row.pres:.3f} ± {row.pres_std:.3f}",
                f"{row.seeds_below}/{self.seeds}",
                "yes" if row.holds else "no",
            )
            for row in self.rows
        ]
        names = ("noise", "missing", "previous", "γ", "STANDARD", "PRES", "nearer", "holds")
        note = "nearer: in how many seeds PRES is; holds: whether it is in the mean"
        title = f"Mean distance to the true state ({self.title})"
        return Group(title, "", table(names, rows, left=("previous", "γ"), collapse_padding=True), note)

    def panels(self) -> tuple[str, Sequence[Callable[[Axes], None]]]:
        """Return errors against noise, errors against missing transitions, and γ against noise."""
        noises = sorted({row.noise for row in self.rows})
        fewest, noise = min(row.missing for row in self.rows), noises[len(noises) // 2]
        at_fewest = [row for row in self.rows if row.missing == fewest]
        at_noise = [row for row in self.rows if row.noise == noise]
        error = "mean distance to the true state"

        def against_noise(panel: Axes) -> None:
            _draw_errors(panel, at_fewest, "noise")
            panel.set(xscale="log", yscale="log", title=f"Missing transitions: {fewest}", ylabel=error)
            panel.set_xlabel("noise of a measurement, σ₁")

        def against_missing(panel: Axes) -> None:
            _draw_errors(panel, at_noise, "missing")
            panel.set(yscale="log", title=f"Noise of a measurement: {noise:g}", ylabel=error)
            panel.set_xlabel("transitions that a measurement misses")

        def gains(panel: Axes) -> None:
            for (previous, gain), rows in _by_setting(at_fewest).items():
                x, y = [row.noise for row in rows], [row.gamma for row in rows]
                panel.plot(x, y, _DASHES[gain], color=_COLOURS[previous])  # the legend is that of the errors
            panel.set(xscale="log", ylim=(0, 1.03), title=f"Weight of a measurement, missing: {fewest}")
            panel.set(xlabel="noise of a measurement, σ₁", ylabel="γ")

        return f"A linear state-space: {self.title}", (against_noise, against_missing, gains)


def _draw_errors(panel: Axes, rows: list[StateSpaceRow], against: Literal["noise", "missing"]) -> None:
    settings = _by_setting(rows)
    for (previous, gain), own in settings.items():
        x = [getattr(row, against) for row in own]
        label = f"PRES, previous {previous}, γ {gain}"
        error, spread = [row.pres for row in own], [row.pres_std for row in own]
        panel.errorbar(x, error, spread, fmt=_DASHES[gain], color=_COLOURS[previous], label=label)
    own = next(iter(settings.values()))
    x, error = [getattr(row, against) for row in own], [row.standard for row in own]
    panel.errorbar(x, error, [row.standard_std for row in own], fmt="^:", color=GREY, label="STANDARD")
    panel.legend(frameon=False, fontsize=8)


def _by_setting(rows: list[StateSpaceRow]) -> dict[tuple[str, str], list[StateSpaceRow]]:
    settings: dict[tuple[str, str], list[StateSpaceRow]] = {}
    for row in rows:
        settings.setdefault((row.previous, row.gain), []).append(row)
    return settings


def state_space_errors(
    noise: Sequence[float] = NOISES,
    missing: Sequence[int] = MISSING,
    *,
    seeds: int = 20,
    progress: bool = False,
    **system: Any,
) -> StateSpace:
    """Return the errors of STANDARD and PRES for every noise and every number of missing transitions.

    Args:
        noise: Standard deviations of a measurement, σ₁.
        missing: Numbers of transitions that a measurement leaves out.
        seeds: Independent simulations of each system.
        progress: Whether to show a progress bar on stderr.
        **system: The other fields of `System`.
    """
    if seeds < 1 or not noise or not missing:
        raise OptionError("give at least one seed, one noise and one number of missing transitions.")
    systems = [System(n, m, **system) for n, m in product(sorted(set(noise)), sorted(set(missing)))]
    rows = [row for one in tracked(systems, "simulating", progress) for row in _rows(one, seeds)]
    about = {name: getattr(systems[0], name) for name in ("drift", "spread", "nodes", "dims", "steps")}
    return StateSpace(**about, seeds=seeds, rows=tuple(rows))


def simulate(system: System, seeds: int) -> Paths:
    """Return what happens to the system under as many seeds, from 0 on."""
    transitions = system.missing + 1
    shape = (system.steps, transitions, system.nodes)
    gaps, rates, noises = [], [], []
    for seed in range(seeds):
        generator = torch.Generator().manual_seed(seed)
        draw: dict[str, Any] = {"generator": generator, "dtype": torch.float64}
        low, high = GAPS
        gaps.append(low + (high - low) * torch.rand(*shape, 1, **draw))
        rates.append(system.drift + system.spread * torch.randn(*shape, system.dims, **draw))
        noises.append(system.noise * torch.randn(system.steps, system.nodes, system.dims, **draw))
    gap, moved = torch.stack(gaps, dim=2), torch.stack(gaps, dim=2) * torch.stack(rates, dim=2)
    state = torch.cat([torch.zeros_like(moved[:1, 0]), moved.sum(dim=1).cumsum(dim=0)])
    measured = state[:-1] + moved[:, -1] + torch.stack(noises, dim=1)
    return Paths(gap.sum(dim=1), state, measured)


def follow(paths: Paths, gamma: Tensor, previous: Previous) -> tuple[Tensor, Tensor]:
    """Return, for each seed and γ `[…, seeds]`, the mean error, and the surprise at the next measurement.

    The error is ``E‖s̄ − s‖``. The surprise, ``E‖s̄ + Δt·δ̂ − ŝ‖²`` with s̄ and δ̂ of the step before that
    of the measurement ŝ, needs no true state of the time it is about.
    """
    gain = gamma.unsqueeze(-1).unsqueeze(-1)  # […, seeds, 1, 1]
    corrected, rates = paths.state[0], torch.zeros_like(paths.state[0])
    error = surprise = torch.zeros_like(gamma)
    for k, (gap, measured) in enumerate(zip(paths.gap, paths.measured, strict=True)):
        start = paths.state[k] if previous == "true" else corrected
        if k == 0:
            corrected = measured.expand_as(gain * measured)
        else:
            moved = gap * rates / k
            surprise = surprise + (corrected + moved - measured).square().sum(dim=-1).mean(dim=-1)
            corrected = gain * measured + (1 - gain) * (start + moved)
        reached = paths.state[k + 1] if previous == "true" else corrected
        rates = rates + (reached - start) / gap
        error = error + (corrected - paths.state[k + 1]).norm(dim=-1).mean(dim=-1)
    steps = len(paths.gap)
    return error / steps, surprise / (steps - 1)


def analytic_gamma(system: System, previous: Previous) -> float:
    """Return the γ of the smallest mean squared error, for a δ̂ that knows the drift μ.

    With ``c = missing + 1`` transitions of variance ``q = E[Δ²]·σ₂²`` each, the prediction from the true
    previous state has the variance ``Q = c·q``. The measurement has the mean square ``R = σ₁² + E[lag²]``.
    Neither knows what the ``c − 1`` transitions of the lag did at random, so that their errors have the
    covariance ``C = (c − 1)·q``.

    - previous true: ``γ = (Q − C) / (Q + R − 2C) = q / (q + σ₁² + μ²·E[(Δ₁ + … + Δ_{c−1})²])``.
    - previous filtered: what the lag is on average stays in every estimate, whatever γ. The rest is a
      Kalman filter in its steady state: ``γ = Q / x`` with ``x = (Q + √(Q² + 4·Q·y)) / 2`` and
      ``y = Var(ŝ − s) − C = σ₁² + (c − 1)·Var(Δ)·μ²``.

    Without missing transitions these are ``Q / (Q + σ₁²)``, and ``P / (P + σ₁²)`` with ``P`` the variance
    of a prediction from a filtered state.
    """
    low, high = GAPS
    mean, variance = (low + high) / 2, (high - low) ** 2 / 12
    one = (mean**2 + variance) * system.spread**2
    missing, drift = system.missing, system.drift
    if previous == "true":
        lag_squared = drift**2 * (missing * variance + (missing * mean) ** 2)
        return one / (one + system.noise**2 + lag_squared)
    predicted = (missing + 1) * one
    rest = system.noise**2 + missing * variance * drift**2
    return 2 * predicted / (predicted + math.sqrt(predicted**2 + 4 * predicted * rest))


def learned_gamma(paths: Paths, previous: Previous) -> Tensor:
    """Return, for each seed `[seeds]`, the γ among 50 whose corrected states surprise least.

    No true state of the step that is corrected is seen: a corrected state is good if, moved on by δ̂, it is
    near the next measurement. Where noise has zero mean this has the same minimum as the error itself.
    Where measurements lag, it is the lagging state that predicts them best.
    """
    seeds = paths.gap.shape[1]
    _, surprise = follow(paths, GAINS.unsqueeze(1).expand(-1, seeds), previous)
    return GAINS[surprise.argmin(dim=0)]


def _rows(system: System, seeds: int) -> list[StateSpaceRow]:
    paths = simulate(system, seeds)
    standard, _ = follow(paths, torch.ones(seeds, dtype=torch.float64), "true")  # whatever was before
    rows, one_less = [], min(1, seeds - 1)  # a single seed has a deviation of 0
    settings: tuple[Previous, Previous] = ("true", "filtered")
    for previous in settings:
        gammas: dict[Gain, Tensor] = {
            "analytic": torch.full_like(standard, analytic_gamma(system, previous)),
            "learned": learned_gamma(paths, previous),
        }
        for gain, gamma in gammas.items():
            error, _ = follow(paths, gamma, previous)
            rows.append(
                StateSpaceRow(
                    noise=system.noise,
                    missing=system.missing,
                    previous=previous,
                    gain=gain,
                    gamma=float(gamma.mean()),
                    standard=float(standard.mean()),
                    standard_std=float(standard.std(correction=one_less)),
                    pres=float(error.mean()),
                    pres_std=float(error.std(correction=one_less)),
                    seeds_below=int((error < standard).sum()),
                    holds=bool(error.mean() < standard.mean()),
                )
            )
    return rows
