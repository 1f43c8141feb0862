"""How results are drawn: each way is declared with the experiment, and makes one picture of it."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter

from pres.paper.experiments import paper
from pres.paper.experiments.columns import WAY_NAMES
from pres.paper.experiments.compared import against_baseline, speed_up
from pres.paper.experiments.groups import Group, Groups

Draw = Callable[[Groups], Figure | None]

_COLOURS = ("#1f5fa8", "#d9822b", "#2f8f5b", "#8e4aa8", "#b03a48", "#5b6770")
_MARKERS = ("o", "s", "^", "D", "v", "x")
_NAMES: dict[str, Callable[[Any], str]] = {
    "model": str.upper,
    "way": WAY_NAMES.__getitem__,
    "beta": "β {:g}".format,
}


@dataclass(frozen=True)
class Lines:
    """A measure against a factor, one panel per dataset and model, one line per way."""

    x: str
    y: str
    x_title: str
    y_title: str
    scale: float = 1.0
    lines: tuple[str, ...] = ("way",)
    panels: tuple[str, ...] = ("dataset", "model")

    def __call__(self, groups: Groups) -> Figure | None:
        """Return the picture, or None where nothing was measured."""

        def draw(panel: Axes, own: Sequence[Group]) -> None:
            for style, (label, line) in zip(_styles(self.lines, own), _by(self.lines, own), strict=True):
                points = [(g[self.x], g.spread(self.y, self.scale)) for g in line]
                known = sorted((x, s.mean, s.error or 0.0) for x, s in points if s is not None)
                if known:
                    x, mean, error = zip(*known, strict=True)
                    panel.errorbar(x, mean, error, label=label, capsize=2, **style)
            sizes = sorted({g[self.x] for g in own})
            panel.set(xscale="log", xlabel=self.x_title)
            panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
            panel.xaxis.set_minor_formatter(NullFormatter())

        return _panels(groups, self.panels, draw, self.y_title)


@dataclass(frozen=True)
class Curves:
    """Validation AP against the steps of the weights, one line per way."""

    lines: tuple[str, ...] = ("way",)
    panels: tuple[str, ...] = ("dataset", "model")

    def __call__(self, groups: Groups) -> Figure | None:
        """Return the picture, or None where nothing was measured."""

        def draw(panel: Axes, own: Sequence[Group]) -> None:
            for style, (label, line) in zip(_styles(self.lines, own), _by(self.lines, own), strict=True):
                for group in line:
                    curves = np.array(group.values["val_ap_of_epoch"]) * 100
                    x, mean = group.only("iteration"), curves.mean(axis=0)
                    panel.plot(x, mean, label=label, **style)
                    if len(curves) > 1:
                        error = curves.std(axis=0, ddof=1) / len(curves) ** 0.5
                        panel.fill_between(x, mean - error, mean + error, color=style["color"], alpha=0.12)
            panel.set(xlabel="iteration (steps of the weights)")
            panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
            panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))

        return _panels(groups, self.panels, draw, "validation AP (%)")


def trade_off(groups: Groups) -> Figure | None:
    """Return speed-up against AP lost: ours, and what Table 1 of the paper comes to."""
    figure, panel = _single()
    printed = paper.trade_offs()
    x, y = [point[2] for point in printed], [point[3] for point in printed]
    panel.scatter(x, y, color="#9aa3ad", marker="o", label="the paper's Table 1")
    panel.scatter(
        [np.mean(x)], [np.mean(y)], color="#5b6770", marker="*", s=160, label="its mean, “PRES (our)”"
    )
    drawn = False
    for i, way in enumerate(groups.distinct("way")):
        for model, marker in zip(groups.distinct("model"), _MARKERS, strict=False):
            own = groups.where(way=way, batch_size=groups.size.pair[1], model=model)
            found = [(speed_up(g, groups), against_baseline(g, groups)) for g in own]
            known = [(s, -a.mean) for s, a in found if s is not None and a is not None]
            if known:
                drawn = True
                label = f"here, {model.upper()}, {_named('way', way)}"
                panel.scatter(*zip(*known, strict=True), color=_COLOURS[i], marker=marker, label=label)
    panel.invert_yaxis()
    panel.axhline(0, color="#9aa3ad", linewidth=0.8)
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


def _single() -> tuple[Figure, Axes]:
    figure = Figure(figsize=(8.5, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    panel = figure.add_subplot()
    _plain(panel)
    return figure, panel


def _panels(
    groups: Groups, names: tuple[str, ...], draw: Callable[[Axes, Sequence[Group]], None], y_title: str
) -> Figure | None:
    """Return one panel for each combination of the named factors; the first makes the rows."""
    rows = groups.distinct(names[0])
    columns = groups.distinct(names[1]) if len(names) > 1 else [None]
    if not rows or not columns:
        return None
    size = (1 + 3.7 * len(columns), 0.7 + 2.9 * len(rows))
    figure = Figure(figsize=size, layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(rows), len(columns), squeeze=False)
    seen: dict[str, Any] = {}
    for row, values in zip(rows, panels, strict=True):
        for column, panel in zip(columns, values, strict=True):
            factors = {names[0]: row} | ({names[1]: column} if len(names) > 1 else {})
            own = groups.where(**factors)
            if not own:
                panel.set_visible(False)
                continue
            draw(panel, own)
            panel.set_title(" · ".join(_named(name, value) for name, value in factors.items()), fontsize=10)
            _plain(panel)
            handles, labels = panel.get_legend_handles_labels()
            seen |= dict(zip(labels, handles, strict=True))
        values[0].set_ylabel(y_title)
    place: dict[str, Any] = {"loc": "outside lower center", "ncols": int(size[0] // 2.2), "fontsize": 9}
    figure.legend(seen.values(), seen.keys(), frameon=False, **place)
    return figure


def _plain(panel: Axes) -> None:
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


def _by(names: tuple[str, ...], groups: Sequence[Group]) -> list[tuple[str, list[Group]]]:
    """Return groups by what they are labelled with, in the order they come."""
    found: dict[str, list[Group]] = {}
    for group in groups:
        label = ", ".join(_named(name, group[name]) for name in names if group[name] is not None)
        found.setdefault(label, []).append(group)
    return list(found.items())


def _styles(names: tuple[str, ...], groups: Sequence[Group]) -> list[dict[str, Any]]:
    """Return a style for each of `_by`, by the first factor."""
    firsts = list(dict.fromkeys(group[names[0]] for group in groups))
    styles = []
    for _, own in _by(names, groups):
        i = firsts.index(own[0][names[0]]) % len(_COLOURS)
        styles.append({"color": _COLOURS[i], "marker": _MARKERS[i], "linestyle": "-", "markersize": 4})
    return styles


def _named(name: str, value: Any) -> str:
    shown = _NAMES.get(name)
    return str(value) if shown is None else shown(value)
