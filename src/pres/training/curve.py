"""The learning curve of a run as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from matplotlib.ticker import MaxNLocator

from pres.figure import FIRST, GREY, SECOND, new_figure, save_png, tidy
from pres.training.checkpoint import EpochResult


def draw_learning_curve(history: Sequence[EpochResult], path: Path) -> Path:
    """Draw loss and validation of every epoch as a PNG at ``path``."""
    figure = new_figure(9, 3.6)
    epochs = [done.epoch - 1 + done.share for done in history]
    best = max(history, key=lambda done: done.val.ap)
    loss, quality = figure.subplots(1, 2)
    loss.plot(epochs, [done.loss for done in history], color=FIRST, marker="o", markersize=3)
    loss.set(title="Training loss", xlabel="epoch")
    for label, values, color in (
        ("AP", [done.val.ap for done in history], FIRST),
        ("ROC-AUC", [done.val.auc for done in history], SECOND),
    ):
        quality.plot(epochs, values, color=color, marker="o", markersize=3, label=label)
    quality.axvline(
        epochs[history.index(best)], color=GREY, linestyle=":", label=f"best AP {best.val.ap:.4f}"
    )
    quality.set(title="Validation", xlabel="epoch")
    quality.legend(frameon=False)
    for panel in (loss, quality):
        tidy(panel)
        panel.xaxis.set_major_locator(MaxNLocator(integer=True))
    return save_png(figure, path)
