"""The frame of every picture: a title, panels side by side, and a file that is written whole."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from pres.storage import write_whole
from pres.tuning.diagnosis_figure import check_png

FIRST, SECOND, THIRD, GREY = "#1f5fa8", "#d9822b", "#2f8f5b", "#9aa3ad"


def save_panels(path: Path, title: str, *draw: Callable[[Axes], None]) -> Path:
    """Let each function draw one panel, and write them as a PNG at ``path``."""
    check_png(path)
    figure = Figure(figsize=(5.2 * len(draw), 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=13)
    for i, draw_on in enumerate(draw, start=1):
        panel = figure.add_subplot(1, len(draw), i)
        draw_on(panel)
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
    return write_whole(path, lambda unfinished: figure.savefig(unfinished, dpi=110, format="png"))
