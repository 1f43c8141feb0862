"""How results are drawn: each kind of picture is declared with the experiment."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pres.figure import COLOURS, GREY, MARKERS, batch_size_axis, new_figure, tidy
from pres.paper.experiments import paper
from pres.paper.experiments.columns import VARIANT_NAMES
from pres.paper.experiments.results import Place, Results

Draw = Callable[[Results], Figure | None]
_NAMES: dict[str, Callable[[Any], str]] = {
    "model": str.upper,
    "smoothing": VARIANT_NAMES.__getitem__,
    "beta": "β {:g}".format,
}


def lines(
    y: str = "ap",
    y_title: str = "AP (%)",
    *,
    by: str = "smoothing",
    panels: Sequence[str] = ("dataset", "model"),
) -> Draw:
    """Return what draws the means of a measure, with their standard errors, against the batch size."""

    def line(panel: Axes, own: list[Place], style: dict[str, Any]) -> None:
        points = [(place["batch_size"], place[y]) for place in own]
        known = sorted((x, spread.mean, spread.error or 0.0) for x, spread in points if spread is not None)
        if known:
            x, mean, error = zip(*known, strict=True)
            panel.errorbar(x, mean, error, capsize=2, **style)

    def finish(panel: Axes, own: list[Place]) -> None:
        batch_size_axis(panel, sorted({place["batch_size"] for place in own}))

    return lambda results: _grid(results, by, panels, y_title, line, finish)


def curves(by: str = "smoothing", panels: Sequence[str] = ("dataset", "model")) -> Draw:
    """Return what draws validation AP against the steps of the weights: means, standard errors as bands."""

    def line(panel: Axes, own: list[Place], style: dict[str, Any]) -> None:
        for place in own:
            aps = np.array(place["val_ap_of_epoch"]) * 100
            x, mean = place["iteration"], aps.mean(axis=0)
            panel.plot(x, mean, **style)
            if len(aps) > 1:
                error = aps.std(axis=0, ddof=1) / len(aps) ** 0.5
                panel.fill_between(x, mean - error, mean + error, color=style["color"], alpha=0.12)

    def finish(panel: Axes, own: list[Place]) -> None:
        panel.set(xlabel="iteration (steps of the weights)")
        panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))

    return lambda results: _grid(results, by, panels, "validation AP (%)", line, finish)


def _grid(
    results: Results,
    by: str,
    names: Sequence[str],
    y_title: str,
    draw: Callable[[Axes, list[Place], dict[str, Any]], None],
    finish: Callable[[Axes, list[Place]], None],
) -> Figure | None:
    """Return a panel for each value of one or two factors, in it a line for each value of another.

    None where nothing was measured.
    """
    rows = results.distinct(names[0])
    columns = results.distinct(names[1]) if len(names) > 1 else [None]
    if not rows or not columns:
        return None
    width = 1 + 3.7 * len(columns)
    figure = new_figure(width, 0.7 + 2.9 * len(rows))
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    seen: dict[str, Any] = {}
    for row, in_row in zip(rows, panels, strict=True):
        for column, panel in zip(columns, in_row, strict=True):
            factors = dict(zip(names, (row, column), strict=False))
            own = results.where(**factors)
            if not own:
                panel.set_visible(False)
                continue
            for i, value in enumerate(dict.fromkeys(place[by] for place in own)):
                style: dict[str, Any] = {
                    "color": COLOURS[i % len(COLOURS)],
                    "marker": MARKERS[i % len(COLOURS)],
                }
                style |= {"linestyle": "-", "markersize": 4, "label": _named(by, value)}
                draw(panel, [place for place in own if place[by] == value], style)
            finish(panel, own)
            panel.set_title(" · ".join(_named(*factor) for factor in factors.items()), fontsize=10)
            tidy(panel)
            handles, labels = panel.get_legend_handles_labels()
            seen |= dict(zip(labels, handles, strict=True))
        in_row[0].set_ylabel(y_title)
    legend_below(figure, seen, ncols=int(width // 2.2))
    return figure


def legend_below(figure: Figure, seen: dict[str, Any], ncols: int) -> None:
    """Put a legend of lines by their labels below all panels."""
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": ncols, "fontsize": 9}
    figure.legend(seen.values(), seen.keys(), frameon=False, **place)


def trade_off(results: Results) -> Figure | None:
    """Return speed-up against AP lost: ours, and what Table 1 of the paper comes to."""
    figure = new_figure(8.5, 4.6)
    panel = figure.add_subplot()
    tidy(panel)
    x, y = zip(*paper.trade_offs(), strict=True)
    panel.scatter(x, y, color=GREY, marker="o", label="the paper's Table 1")
    star: dict[str, Any] = {"color": COLOURS[5], "marker": "*", "s": 160, "label": "its mean, “PRES (our)”"}
    panel.scatter([np.mean(x)], [np.mean(y)], **star)
    drawn = False
    for i, smoothing in enumerate(results.distinct("smoothing")):
        for model, marker in zip(results.distinct("model"), MARKERS, strict=False):
            own = results.where(smoothing=smoothing, batch_size=results.budget.pair[1], model=model)
            found = [(place["speed_up"], place["ap_against_small"]) for place in own]
            known = [(fast.mean, -more.mean) for fast, more in found if fast is not None and more is not None]
            if known:
                drawn = True
                label = f"here, {model.upper()}, {VARIANT_NAMES[smoothing]}"
                panel.scatter(*zip(*known, strict=True), color=COLOURS[i], marker=marker, label=label)
    panel.invert_yaxis()
    panel.axhline(0, color=GREY, linewidth=0.8)
    panel.set(xlabel="speed-up (times)", ylabel="AP lost (points; less is higher)")
    figure.legend(loc="outside right upper", frameon=False, fontsize=8)
    return figure if drawn else None


def rendered(figure: Figure, kind: str) -> bytes:
    """Return a picture as the bytes of a file; the same picture gives the same bytes."""
    found = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "pres", "svg.fonttype": "path"}):
        metadata: dict[str, Any] = {"Date": None} if kind == "svg" else {"Software": None}
        figure.savefig(found, format=kind, dpi=110, metadata=metadata)
    return found.getvalue()


def _named(name: str, value: Any) -> str:
    return "" if value is None else _NAMES.get(name, str)(value)
