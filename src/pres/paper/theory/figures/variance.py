"""The variance of the gradient as one picture."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.axes import Axes
from matplotlib.ticker import NullFormatter, ScalarFormatter

from pres.figure import FIRST, GREY, SECOND, save_panels

if TYPE_CHECKING:
    from pres.paper.theory.variance import Exponents, GradientVariance


def save_figure(found: GradientVariance, path: Path) -> Path:
    """Draw the variances of batches and of the epoch, for each normalisation, at ``path``."""
    title = f"{found.title}: {found.events:,} events, {found.draws} draws of negatives"
    panels = [
        partial(draw, found=found, exponents=exponents)
        for exponents in found.exponents
        for draw in (_draw_batches, _draw_epoch)
    ]
    return save_panels(path, title, *panels)


def _draw_batches(panel: Axes, found: GradientVariance, exponents: Exponents) -> None:
    rows = [row for row in found.rows if row.loss == exponents.loss]
    sizes = [row.batch_size for row in rows]
    label = f"mean, b to the {_power(exponents.fitted['mean'])}"
    panel.plot(sizes, [row.mean for row in rows], "o-", color=FIRST, label=label)
    low, high = [row.smallest for row in rows], [row.largest for row in rows]
    panel.fill_between(sizes, low, high, color=FIRST, alpha=0.15, label="σ²_min to σ²_max")
    _finish(panel, f"One batch's gradient, {exponents.loss} loss", sizes, max(row.largest for row in rows))


def _draw_epoch(panel: Axes, found: GradientVariance, exponents: Exponents) -> None:
    rows = [row for row in found.rows if row.loss == exponents.loss]
    sizes = [row.batch_size for row in rows]
    label = f"measured, b to the {_power(exponents.fitted['epoch'])}"
    panel.plot(sizes, [row.epoch for row in rows], "o-", color=FIRST, label=label)
    summed = [row.epoch_independent for row in rows]
    panel.plot(sizes, summed, "x:", color=GREY, label="sum of the batches'")
    panel.plot(sizes, [row.bound for row in rows], "s--", color=SECOND, label="Theorem 1: |E|/b · σ²_min")
    _finish(panel, f"The epoch's gradient, {exponents.loss} loss", sizes, max(row.largest for row in rows))


def _finish(panel: Axes, title: str, sizes: list[int], largest: float) -> None:
    panel.set(xscale="log", title=title, xlabel="batch size b", ylabel="variance")
    if largest > 0:
        panel.set_yscale(
            "log", nonpositive="clip"
        )  # σ²_min may be 0: an empty memory cannot tell nodes apart
        low, high = panel.get_ylim()
        panel.set_ylim(low / 2, high * 2)  # else a variance that hardly changes fills the panel
    panel.set_xticks(sizes)
    panel.xaxis.set_major_formatter(ScalarFormatter())
    panel.xaxis.set_minor_formatter(NullFormatter())
    panel.legend(frameon=False, fontsize=8)


def _power(exponent: float | None) -> str:
    return "?" if exponent is None else f"{exponent:.2f}"
