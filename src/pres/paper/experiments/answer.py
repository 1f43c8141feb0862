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
from pres.paper.experiments.columns import COLUMNS, VARIANT_NAMES, Column, difference, measure, table_of
from pres.paper.experiments.figures import legend_below
from pres.paper.experiments.findings import VARIANTS
from pres.paper.experiments.results import Place, Results
from pres.paper.experiments.table import Heading, Spread, Table, signed

SMALL, SAME = "ap_against_small", "ap_against_same"
_COLOURS = dict(zip(VARIANTS, (COLOURS[5], *COLOURS[:3]), strict=True))
_MARKERS = dict(zip(VARIANTS, "xos^", strict=True))


def answer(results: Results) -> Table:
    """Return the differences of the larger batch, without PRES and with each reading of it."""
    small, large = results.budget.pair

    def of_pres(place: Place, name: str) -> Any:
        return None if place["smoothing"] == "off" else place[name]

    differences = (
        ("against_small", f"AP − without at {small:,}", SMALL),
        ("against_same", f"AP − without at {large:,}", lambda place: of_pres(place, SAME)),
        ("small_200", f"AP (b 200) − without at {small:,}", "ap_200_against_small"),
        (
            "same_200",
            f"AP (b 200) − without at {large:,}",
            lambda place: of_pres(place, "ap_200_against_same"),
        ),
        ("same_live", f"AP (live) − without at {large:,}", "ap_live_against_same"),
    )
    chosen = (
        COLUMNS["dataset"],
        COLUMNS["model"],
        Column(Heading("smoothing", f"PRES at b = {large:,}"), COLUMNS["smoothing"].cell),
        measure("seeds", "seeds", lambda place: place[SMALL].count),
        *(difference(*one, interval=True) for one in differences),
        difference("paper", "the paper's, of its pair", lambda place: of_pres(place, "paper_change")),
    )
    return table_of(chosen, _larger(results))


def findings(results: Results) -> list[str]:
    """Return the mean differences over the pairs of model and stream that every arm has."""
    small, large = results.budget.pair
    own = {smoothing: [_of(results, pair, smoothing) for pair in _pairs(results)] for smoothing in VARIANTS}
    whole = [arms for arms in zip(*own.values(), strict=True) if None not in arms]
    if not whole:
        return []
    lines = []
    for smoothing, places in zip(VARIANTS, zip(*whole, strict=True), strict=True):
        changed, worth = (_mean([place[name] for place in places if place]) for name in (SMALL, SAME))
        itself = "" if smoothing == "off" else f", and by {worth} against b = {large:,} without"
        lines.append(
            f"{VARIANT_NAMES[smoothing]}: b = {large:,} changes AP by {changed} points against b = "
            f"{small:,} without PRES{itself}, on average over {len(whole)} pairs of model and stream."
        )
    changes = [arms[0]["paper_change"] for arms in whole if arms[0]]
    printed = [change for change in changes if change is not None]
    if printed:
        lines.append(f"The paper's Table 1, for the same pairs: {signed(fmean(printed))} points.")
    return lines


def draw(results: Results) -> Figure | None:
    """Return both differences with their confidence intervals, one row for each model and stream."""
    pairs = _pairs(results)
    if not pairs:
        return None
    small, large = results.budget.pair
    figure = new_figure(10, 1.4 + 0.62 * len(pairs))
    left, right = figure.subplots(1, 2, sharey=True)
    _draw_differences(left, results, VARIANTS, SMALL)
    _draw_differences(right, results, VARIANTS[1:], SAME)
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
    legend_below(figure, dict(zip(labels, handles, strict=True)), ncols=5)
    return figure


def _draw_differences(panel: Axes, results: Results, variants: Sequence[str], measured: str) -> None:
    """Draw a difference of every variant and pair; those of a pair are one below the other."""
    for i, smoothing in enumerate(variants):
        for row, pair in enumerate(_pairs(results)):
            place = _of(results, pair, smoothing)
            found: Spread | None = None if place is None else place[measured]
            if found is not None:
                low, high = found.interval or (found.mean, found.mean)
                error = [[found.mean - low], [high - found.mean]]
                style: dict[str, Any] = {
                    "color": _COLOURS[smoothing],
                    "marker": _MARKERS[smoothing],
                    "linestyle": "",
                }
                y, name = row + 0.16 * (i - (len(variants) - 1) / 2), VARIANT_NAMES[smoothing]
                panel.errorbar(found.mean, y, xerr=error, label=name, markersize=5, capsize=2, **style)


def _larger(results: Results) -> list[Place]:
    """Return the larger batches that were measured beside the smaller."""
    return [place for place in results.where(batch_size=results.budget.pair[1]) if place[SMALL] is not None]


def _pairs(results: Results) -> list[tuple[str, str]]:
    """Return the streams and models of which there are some."""
    return list(dict.fromkeys((place["dataset"], place["model"]) for place in _larger(results)))


def _of(results: Results, pair: tuple[str, str], smoothing: str) -> Place | None:
    dataset, model = pair
    own = results.where(dataset=dataset, model=model, smoothing=smoothing, batch_size=results.budget.pair[1])
    return own[0] if own else None


def _mean(spreads: Sequence[Spread | None]) -> str:
    """Return the mean over pairs, and its standard error by those of the pairs."""
    known = [spread for spread in spreads if spread is not None]
    errors = [spread.error for spread in known if spread.error is not None]
    mean = signed(fmean(spread.mean for spread in known))
    if len(errors) < len(known):
        return mean
    return f"{mean} ± {math.sqrt(sum(error**2 for error in errors)) / len(known):.1f}"
