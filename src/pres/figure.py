"""How the project draws: one look for every picture, and files that are written whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter

from pres.errors import OptionError
from pres.storage import write_whole

COLOURS = ("#1f5fa8", "#d9822b", "#2f8f5b", "#8e4aa8", "#b03a48", "#5b6770")
FIRST, SECOND, THIRD, GREY = *COLOURS[:3], "#9aa3ad"
MARKERS = ("o", "s", "^", "D", "v", "x")


def new_figure(width: float, height: float, title: str = "") -> Figure:
    """Return an empty figure of a size in inches that needs no display."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    if title:
        figure.suptitle(title, fontsize=13)
    return figure


def tidy(panel: Axes) -> None:
    """Give a panel the look that all have: a light grid, and no frame above and on the right."""
    panel.grid(alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)


def batch_size_axis(panel: Axes, sizes: Sequence[int], title: str = "batch size b") -> None:
    """Let a panel's x be batch sizes: a logarithmic scale with a tick at each of them."""
    panel.set_xlabel(title)
    if not sizes:
        return  # an empty panel has no scale
    panel.set_xscale("log")
    panel.set_xticks(sizes, [f"{size:,}" for size in sizes])
    panel.xaxis.set_minor_formatter(NullFormatter())


def check_png(path: Path) -> None:
    """Raise unless ``path`` is named as a picture, so that no other file is ever written over."""
    if path.suffix.lower() != ".png":
        raise OptionError(f"{path}: a picture is written as .png; give a name that ends so.")


def save_png(figure: Figure, path: Path) -> Path:
    """Write a figure as a PNG at ``path`` in one step and return it."""
    check_png(path)
    return write_whole(path, lambda unfinished: figure.savefig(unfinished, dpi=110, format="png"))


def save_panels(path: Path, title: str, *draw: Callable[[Axes], None]) -> Path:
    """Let each function draw one panel, write them side by side as a PNG at ``path``, and return it."""
    check_png(path)
    figure = new_figure(5.2 * len(draw), 4.6, title)
    for i, draw_on in enumerate(draw, start=1):
        panel = figure.add_subplot(1, len(draw), i)
        draw_on(panel)
        tidy(panel)
    return save_png(figure, path)
