"""The learning curve of a run as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from pres.storage import write_whole
from pres.training.checkpoint import EpochResult

_FIRST, _SECOND = "#1f5fa8", "#d9822b"


def draw_learning_curve(history: Sequence[EpochResult], path: Path) -> Path:
    """Draw loss and validation of every epoch as a PNG at ``path``."""
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    epochs = [done.epoch for done in history]
    best = max(history, key=lambda done: done.val.ap)
    loss, quality = figure.subplots(1, 2)
    loss.plot(epochs, [done.loss for done in history], color=_FIRST, marker="o", markersize=3)
    loss.set(title="Training loss", xlabel="epoch")
    for label, values, color in (
        ("AP", [done.val.ap for done in history], _FIRST),
        ("ROC-AUC", [done.val.auc for done in history], _SECOND),
    ):
        quality.plot(epochs, values, color=color, marker="o", markersize=3, label=label)
    quality.axvline(best.epoch, color="#9aa3ad", linestyle=":", label=f"best AP {best.val.ap:.4f}")
    quality.set(title="Validation", xlabel="epoch")
    quality.legend(frameon=False)
    for panel in (loss, quality):
        panel.grid(alpha=0.25)
        panel.spines[["top", "right"]].set_visible(False)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    return write_whole(path, lambda unfinished: figure.savefig(unfinished, dpi=110, format="png"))
