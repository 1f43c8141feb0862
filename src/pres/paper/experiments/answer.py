"""Does PRES work? The two differences that tell, per model and stream, with confidence intervals."""

from __future__ import annotations

import math
from statistics import fmean

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pres.paper.experiments import paper
from pres.paper.experiments.columns import COLUMNS, WAY_NAMES
from pres.paper.experiments.compared import against_baseline, against_counterpart, counterpart, difference
from pres.paper.experiments.groups import Group, Groups
from pres.paper.experiments.table import Cell, Heading, Interval, Spread, Table, signed

WAYS = ("off", "equations", "algorithm", "ours")
_COLOURS = {"off": "#5b6770", "equations": "#1f5fa8", "algorithm": "#d9822b", "ours": "#2f8f5b"}
_MARKERS = {"off": "x", "equations": "o", "algorithm": "s", "ours": "^"}


def answer(groups: Groups) -> Table:
    """Return the differences of the larger batch, without PRES and with each reading of it."""
    small, large = groups.size.pair
    headings = (
        COLUMNS["dataset"].heading,
        COLUMNS["model"].heading,
        Heading("way", f"PRES at b = {large:,}"),
        Heading("seeds", "seeds"),
        Heading("against_small", f"AP − without at {small:,}", signed=True),
        Heading("against_same", f"AP − without at {large:,}", signed=True),
        Heading("small_200", f"AP (b 200) − without at {small:,}", signed=True),
        Heading("same_200", f"AP (b 200) − without at {large:,}", signed=True),
        Heading("same_live", f"AP (live) − without at {large:,}", signed=True),
        Heading("paper", "the paper's, of its pair", signed=True),
    )
    rows: list[tuple[Cell, ...]] = []
    for group in _larger(groups):
        changed = against_baseline(group, groups)
        if changed is not None:
            off = group["way"] == "off"
            worth, worth_200 = (
                None if off else Interval.of(against_counterpart(group, groups, name))
                for name in ("ap", "ap_200")
            )
            live = Interval.of(difference(group, counterpart(group, groups), "ap_live", other_measure="ap"))
            at_200 = Interval.of(against_baseline(group, groups, "ap_200")), worth_200, live
            place = COLUMNS["dataset"].cell(group, groups), COLUMNS["model"].cell(group, groups)
            shown = (*place, WAY_NAMES[group["way"]], changed.count)
            differences = Interval.of(changed), worth, *at_200
            rows.append((*shown, *differences, None if off else _printed(group)))
    return Table(headings, tuple(rows))


def findings(groups: Groups) -> list[str]:
    """Return the mean differences over the pairs of model and stream that every arm has."""
    small, large = groups.size.pair
    pairs = [pair for pair in _pairs(groups) if all(_of(groups, *pair, way) is not None for way in WAYS)]
    if not pairs:
        return []
    lines = []
    for way in WAYS:
        own = [group for pair in pairs if (group := _of(groups, *pair, way)) is not None]
        changed = _mean([against_baseline(group, groups) for group in own])
        worth = _mean([against_counterpart(group, groups) for group in own])
        itself = "" if way == "off" else f", and by {worth} against b = {large:,} without"
        lines.append(
            f"{WAY_NAMES[way]}: b = {large:,} changes AP by {changed} points against b = {small:,} without "
            f"PRES{itself}, on average over {len(pairs)} pairs of model and stream."
        )
    printed = [value for pair in pairs if (value := _paper_change(*pair)) is not None]
    if printed:
        lines.append(f"The paper's Table 1, for the same pairs: {signed(fmean(printed))} points.")
    return lines


def draw(groups: Groups) -> Figure | None:
    """Return both differences with their confidence intervals, one row for each model and stream."""
    pairs = _pairs(groups)
    if not pairs:
        return None
    small, large = groups.size.pair
    figure = Figure(figsize=(10, 1.4 + 0.62 * len(pairs)), layout="constrained")
    FigureCanvasAgg(figure)
    titles = f"b = {large:,} − b = {small:,} without PRES", f"b = {large:,} − b = {large:,} without PRES"
    for panel, title, compared in zip(
        figure.subplots(1, 2, sharey=True), titles, (against_baseline, against_counterpart), strict=True
    ):
        ways = WAYS if compared is against_baseline else WAYS[1:]
        for i, way in enumerate(ways):
            for row, pair in enumerate(pairs):
                group = _of(groups, *pair, way)
                found = None if group is None else Interval.of(compared(group, groups))
                if found is not None:
                    y = row + 0.16 * (i - (len(ways) - 1) / 2)
                    low, high = (found.mean if bound is None else bound for bound in (found.low, found.high))
                    style = {"color": _COLOURS[way], "marker": _MARKERS[way], "markersize": 5, "capsize": 2}
                    error = [[found.mean - low], [high - found.mean]]
                    panel.errorbar(found.mean, y, xerr=error, label=WAY_NAMES[way], linestyle="", **style)
        if compared is against_baseline:
            for row, pair in enumerate(pairs):
                printed = _paper_change(*pair)
                if printed is not None:
                    star = {"marker": "*", "s": 70, "color": "#b03a48", "zorder": 3}
                    panel.scatter(printed, row, label="the paper's Table 1", **star)
        panel.axvline(0, color="#9aa3ad", linewidth=0.8)
        panel.set(xlabel="AP (points)", title=title)
        panel.title.set_fontsize(10)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        panel.set_yticks(range(len(pairs)), [f"{model.upper()}, {dataset}" for dataset, model in pairs])
        handles, labels = panel.get_legend_handles_labels()
        if compared is against_baseline:
            panel.invert_yaxis()
            shown = dict(zip(labels, handles, strict=True))
    figure.legend(
        shown.values(), shown.keys(), loc="outside lower center", ncols=5, frameon=False, fontsize=9
    )
    return figure


def _pairs(groups: Groups) -> list[tuple[str, str]]:
    """Return the streams and models of which the larger batch was measured beside the smaller."""
    measured = [group for group in _larger(groups) if against_baseline(group, groups) is not None]
    return list(dict.fromkeys((group["dataset"], group["model"]) for group in measured))


def _larger(groups: Groups) -> list[Group]:
    return groups.where(batch_size=groups.size.pair[1])


def _of(groups: Groups, dataset: str, model: str, way: str) -> Group | None:
    return groups.one(dataset=dataset, model=model, way=way, batch_size=groups.size.pair[1])


def _printed(group: Group) -> float | None:
    return _paper_change(group["dataset"], group["model"])


def _paper_change(dataset: str, model: str) -> float | None:
    """Return what PRES at the larger batch changes in Table 1, in points."""
    with_pres, without = (paper.trained(dataset, model, way) for way in ("PRES", "off"))
    return None if with_pres is None or without is None else with_pres.ap.mean - without.ap.mean


def _mean(spreads: list[Spread | None]) -> str:
    """Return the mean over pairs, and its standard error by those of the pairs."""
    known = [spread for spread in spreads if spread is not None]
    errors = [spread.error for spread in known if spread.error is not None]
    mean = signed(fmean(spread.mean for spread in known))
    if len(errors) < len(known):
        return mean
    return f"{mean} ± {math.sqrt(sum(error**2 for error in errors)) / len(known):.1f}"
