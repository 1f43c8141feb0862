"""Does PRES work? The two differences that tell, per model and stream, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pres.figure import COLOURS, GREY, new_figure, tidy
from pres.paper.experiments import paper
from pres.paper.experiments.columns import COLUMNS, VARIANT_NAMES
from pres.paper.experiments.findings import VARIANTS
from pres.paper.experiments.results import Group, Groups
from pres.paper.experiments.table import Cell, Heading, Spread, Table, signed

_STYLES: dict[str, dict[str, Any]] = {
    "off": {"color": COLOURS[5], "marker": "x"},
    "equations": {"color": COLOURS[0], "marker": "o"},
    "algorithm": {"color": COLOURS[1], "marker": "s"},
    "ours": {"color": COLOURS[2], "marker": "^"},
}


def answer(groups: Groups) -> Table:
    """Return the differences of the larger batch, without PRES and with each reading of it."""
    small, large = groups.budget.pair
    differences = {
        "against_small": f"AP − without at {small:,}",
        "against_same": f"AP − without at {large:,}",
        "small_200": f"AP (b 200) − without at {small:,}",
        "same_200": f"AP (b 200) − without at {large:,}",
        "same_live": f"AP (live) − without at {large:,}",
    }
    headings = (
        COLUMNS["dataset"].heading,
        COLUMNS["model"].heading,
        Heading("smoothing", f"PRES at b = {large:,}"),
        Heading("seeds", "seeds"),
        *(Heading(name, title, signed=True, interval=True) for name, title in differences.items()),
        Heading("paper", "the paper's, of its pair", signed=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for group in _larger(groups):
        changed, off = group.against_small(), group["smoothing"] == "off"
        if changed is None:
            continue
        place = COLUMNS["dataset"].cell(group), COLUMNS["model"].cell(group)
        small_200, live = group.against_small("ap_200"), group.against_same("ap_live", other="ap")
        worth, worth_200 = (None, None) if off else (group.against_same(), group.against_same("ap_200"))
        printed = None if off else paper.ap_change(group["dataset"], group["model"])
        shown = *place, VARIANT_NAMES[group["smoothing"]], changed.count
        rows.append((*shown, changed, worth, small_200, worth_200, live, printed))
    return Table(headings, tuple(rows))


def findings(groups: Groups) -> list[str]:
    """Return the mean differences over the pairs of model and stream that every arm has."""
    small, large = groups.budget.pair
    pairs = [pair for pair in _pairs(groups) if all(_of(groups, pair, one) is not None for one in VARIANTS)]
    if not pairs:
        return []
    lines = []
    for smoothing in VARIANTS:
        own = [group for pair in pairs if (group := _of(groups, pair, smoothing)) is not None]
        changed, worth = _mean([g.against_small() for g in own]), _mean([g.against_same() for g in own])
        itself = "" if smoothing == "off" else f", and by {worth} against b = {large:,} without"
        lines.append(
            f"{VARIANT_NAMES[smoothing]}: b = {large:,} changes AP by {changed} points against b = "
            f"{small:,} without PRES{itself}, on average over {len(pairs)} pairs of model and stream."
        )
    printed = [value for pair in pairs if (value := paper.ap_change(*pair)) is not None]
    if printed:
        lines.append(f"The paper's Table 1, for the same pairs: {signed(fmean(printed))} points.")
    return lines


def draw(groups: Groups) -> Figure | None:
    """Return both differences with their confidence intervals, one row for each model and stream."""
    pairs = _pairs(groups)
    if not pairs:
        return None
    small, large = groups.budget.pair
    figure = new_figure(10, 1.4 + 0.62 * len(pairs))
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_differences(left, groups, pairs, VARIANTS, "against_small")
    _draw_differences(right, groups, pairs, VARIANTS[1:], "against_same")
    for row, pair in enumerate(pairs):
        printed = paper.ap_change(*pair)
        if printed is not None:
            left.scatter(
                printed, row, label="the paper's Table 1", marker="*", s=70, color=COLOURS[4], zorder=3
            )
    for panel, compared in ((left, small), (right, large)):
        panel.axvline(0, color=GREY, linewidth=0.8)
        panel.set(xlabel="AP (points)", title=f"b = {large:,} − b = {compared:,} without PRES")
        panel.title.set_fontsize(10)
        tidy(panel)
        panel.set_yticks(range(len(pairs)), [f"{model.upper()}, {dataset}" for dataset, model in pairs])
    left.invert_yaxis()
    handles, labels = left.get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": 5, "frameon": False, "fontsize": 9}
    figure.legend(shown.values(), shown.keys(), **place)
    return figure


def _draw_differences(
    panel: Axes, groups: Groups, pairs: Sequence[tuple[str, str]], variants: Sequence[str], compared: str
) -> None:
    """Draw a difference of every variant and pair; those of a pair are one below the other."""
    for i, smoothing in enumerate(variants):
        for row, pair in enumerate(pairs):
            group = _of(groups, pair, smoothing)
            found: Spread | None = None if group is None else getattr(group, compared)()
            if found is not None:
                low, high = found.interval or (found.mean, found.mean)
                error, y = (
                    [[found.mean - low], [high - found.mean]],
                    row + 0.16 * (i - (len(variants) - 1) / 2),
                )
                style = _STYLES[smoothing] | {"linestyle": "", "markersize": 5, "capsize": 2}
                panel.errorbar(found.mean, y, xerr=error, label=VARIANT_NAMES[smoothing], **style)


def _pairs(groups: Groups) -> list[tuple[str, str]]:
    """Return the streams and models of which the larger batch was measured beside the smaller."""
    measured = [group for group in _larger(groups) if group.against_small() is not None]
    return list(dict.fromkeys((group["dataset"], group["model"]) for group in measured))


def _larger(groups: Groups) -> list[Group]:
    return groups.where(batch_size=groups.budget.pair[1])


def _of(groups: Groups, pair: tuple[str, str], smoothing: str) -> Group | None:
    place = {"dataset": pair[0], "model": pair[1], "batch_size": groups.budget.pair[1]}
    return groups.one(**place, smoothing=smoothing)


def _mean(spreads: Sequence[Spread | None]) -> str:
    """Return the mean over pairs, and its standard error by those of the pairs."""
    known = [spread for spread in spreads if spread is not None]
    errors = [spread.error for spread in known if spread.error is not None]
    mean = signed(fmean(spread.mean for spread in known))
    if len(errors) < len(known):
        return mean
    return f"{mean} ± {math.sqrt(sum(error**2 for error in errors)) / len(known):.1f}"
