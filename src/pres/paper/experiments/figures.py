"""How results are drawn: each kind of picture is declared with the experiment."""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from pres.figure import COLOURS, GREY, MARKERS, batch_size_axis, new_figure, tidy
from pres.paper.experiments import paper
from pres.paper.experiments.columns import VARIANT_NAMES
from pres.paper.experiments.results import Group, Groups

_NAMES: dict[str, Callable[[Any], str]] = {
    "model": str.upper,
    "smoothing": VARIANT_NAMES.__getitem__,
    "beta": "β {:g}".format,
}


@dataclass(frozen=True)
class Panels(ABC):
    """One panel per dataset and model, and in it one line per variant."""

    lines: tuple[str, ...] = ("smoothing",)
    panels: tuple[str, ...] = ("dataset", "model")

    y_title = "validation AP (%)"

    @abstractmethod
    def draw(self, panel: Axes, line: Sequence[Group], label: str, style: dict[str, Any]) -> None:
        """Draw one line."""

    @abstractmethod
    def finish(self, panel: Axes, own: Sequence[Group]) -> None:
        """Give a panel its axes."""

    def __call__(self, groups: Groups) -> Figure | None:
        """Return the picture, or None where nothing was measured."""
        names = self.panels
        rows = groups.distinct(names[0])
        columns = groups.distinct(names[1]) if len(names) > 1 else [None]
        if not rows or not columns:
            return None
        width = 1 + 3.7 * len(columns)
        figure = new_figure(width, 0.7 + 2.9 * len(rows))
        panels = figure.subplots(len(rows), len(columns), squeeze=False)
        seen: dict[str, Any] = {}
        for row, values in zip(rows, panels, strict=True):
            for column, panel in zip(columns, values, strict=True):
                factors = dict(zip(names, (row, column), strict=False))
                own = groups.where(**factors)
                if not own:
                    panel.set_visible(False)
                    continue
                for line, label, style in self._lines(own):
                    self.draw(panel, line, label, style)
                self.finish(panel, own)
                panel.set_title(
                    " · ".join(_named(name, value) for name, value in factors.items()), fontsize=10
                )
                tidy(panel)
                handles, labels = panel.get_legend_handles_labels()
                seen |= dict(zip(labels, handles, strict=True))
            values[0].set_ylabel(self.y_title)
        place: dict[str, Any] = {"loc": "outside lower center", "ncols": int(width // 2.2), "fontsize": 9}
        figure.legend(seen.values(), seen.keys(), frameon=False, **place)
        return figure

    def _lines(self, groups: Sequence[Group]) -> list[tuple[list[Group], str, dict[str, Any]]]:
        """Return the groups of every line, in the order they come, its label and its style."""
        lines: dict[str, list[Group]] = {}
        for group in groups:
            label = ", ".join(_named(name, group[name]) for name in self.lines if group[name] is not None)
            lines.setdefault(label, []).append(group)
        firsts = list(dict.fromkeys(group[self.lines[0]] for group in groups))
        found = []
        for label, own in lines.items():
            i = firsts.index(own[0][self.lines[0]]) % len(COLOURS)
            style = {"color": COLOURS[i], "marker": MARKERS[i], "linestyle": "-", "markersize": 4}
            found.append((own, label, style))
        return found


@dataclass(frozen=True)
class Lines(Panels):
    """A measure against the batch size."""

    y: str = "ap"
    y_title: str = "AP (%)"
    scale: float = 100.0

    def draw(self, panel: Axes, line: Sequence[Group], label: str, style: dict[str, Any]) -> None:
        """Draw means with their standard errors."""
        points = [(group["batch_size"], group.spread(self.y, self.scale)) for group in line]
        known = sorted((x, s.mean, s.error or 0.0) for x, s in points if s is not None)
        if known:
            x, mean, error = zip(*known, strict=True)
            panel.errorbar(x, mean, error, label=label, capsize=2, **style)

    def finish(self, panel: Axes, own: Sequence[Group]) -> None:
        """Let x be batch sizes."""
        batch_size_axis(panel, sorted({group["batch_size"] for group in own}))


@dataclass(frozen=True)
class Curves(Panels):
    """Validation AP against the steps of the weights."""

    def draw(self, panel: Axes, line: Sequence[Group], label: str, style: dict[str, Any]) -> None:
        """Draw the mean over seeds, and its standard error as a band."""
        for group in line:
            curves = np.array(group.values["val_ap_of_epoch"]) * 100
            x, mean = group.only("iteration"), curves.mean(axis=0)
            panel.plot(x, mean, label=label, **style)
            if len(curves) > 1:
                error = curves.std(axis=0, ddof=1) / len(curves) ** 0.5
                panel.fill_between(x, mean - error, mean + error, color=style["color"], alpha=0.12)

    def finish(self, panel: Axes, own: Sequence[Group]) -> None:
        """Let x be steps."""
        panel.set(xlabel="iteration (steps of the weights)")
        panel.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        panel.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def trade_off(groups: Groups) -> Figure | None:
    """Return speed-up against AP lost: ours, and what Table 1 of the paper comes to."""
    figure = new_figure(8.5, 4.6)
    panel = figure.add_subplot()
    tidy(panel)
    x, y = zip(*paper.trade_offs(), strict=True)
    panel.scatter(x, y, color=GREY, marker="o", label="the paper's Table 1")
    star: dict[str, Any] = {"color": COLOURS[5], "marker": "*", "s": 160, "label": "its mean, “PRES (our)”"}
    panel.scatter([np.mean(x)], [np.mean(y)], **star)
    drawn = False
    for i, smoothing in enumerate(groups.distinct("smoothing")):
        for model, marker in zip(groups.distinct("model"), MARKERS, strict=False):
            own = groups.where(smoothing=smoothing, batch_size=groups.budget.pair[1], model=model)
            found = [(group.speed_up, group.against_small()) for group in own]
            known = [(s, -a.mean) for s, a in found if s is not None and a is not None]
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
    shown = _NAMES.get(name)
    return str(value) if shown is None else shown(value)
