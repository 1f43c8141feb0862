"""What larger batches do to one's own stream: standard training, a larger batch, and the preset's scan."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.table import Table

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.models.registry import build_model
from pres.tables import table
from pres.training.config import with_batch_size
from pres.training.fit import fit
from pres.training.run import Run


@dataclass(frozen=True, eq=False)
class Trial:
    """One way to train, and its run."""

    name: str
    run: Run

    def to_dict(self) -> dict[str, Any]:
        """Return what matters of it as plain values."""
        config = self.run.config
        return {
            "training": self.name,
            "batch_size": config["batch_size"],
            "step_size": config["step_size"] or config["batch_size"],
            "val_ap": self.run.val.ap,
            "test_ap": self.run.test.ap,
            "events_per_second": self.run.events_per_second,
        }


def try_batches(
    events: EventStream,
    model: str = "jodie",
    *,
    batch_size: int = 200,
    factor: int = 16,
    on_trial: Callable[[str], None] = lambda name: None,
    model_options: dict[str, Any] | None = None,
    **options: Any,
) -> list[Trial]:
    """Return standard training at ``batch_size``, at ``factor`` times that, and ``preset="large"``.

    The preset scans memory, and chooses its batch size as it always does, see `batch_size_for`.

    Args:
        events: The whole stream.
        model: A model's name.
        batch_size: Of the standard.
        factor: How many times as large the larger batches are.
        on_trial: Called before each training with its name.
        model_options: Arguments of the model.
        **options: Further fields of `FitConfig`, of all three.
    """
    if factor < 2:
        raise OptionError(f"factor={factor}: a larger batch is at least twice as large.")
    trainings: dict[str, dict[str, Any]] = {
        "standard": {"batch_size": batch_size},
        f"standard, {factor}x": {"batch_size": factor * batch_size},
        "preset, scan": {"preset": "large"},
    }
    largest, train = factor * batch_size, len(events.split().train)
    if largest >= train:
        fits = max(2, train // (4 * batch_size))
        smaller = f"a factor of {fits}, or " if fits * batch_size < train else ""
        raise OptionError(
            f"batches of {largest:,} events ({factor} times {batch_size}) make one batch of the {train:,} "
            f"training events: use {smaller}a batch size of {max(1, train // (4 * factor))}."
        )
    found = []
    for name, settings in trainings.items():
        on_trial(name)
        cell = {"cell": "scan"} if "preset" in settings else {}
        made = build_model(model, events, cell | (model_options or {}), options.get("seed", 0))
        settings, _ = with_batch_size(options | settings, events)
        found.append(Trial(name, fit(made, events, **settings)))
    return found


def as_table(trials: list[Trial]) -> Table:
    """Return the trials as a table for a terminal."""
    names = ("training", "batch", "step", "val AP", "test AP", "points", "events/s")
    rows, base = [], trials[0].run.test.ap
    for trial in trials:
        shown, test = trial.to_dict(), trial.run.test.ap
        sizes = trial.name, f"{shown['batch_size']:,}", f"{shown['step_size']:,}"
        points = "" if trial is trials[0] else f"{100 * (test - base):+.2f}"
        speed = f"{trial.run.events_per_second:,.0f}"
        rows.append((*sizes, f"{trial.run.val.ap:.4f}", f"{test:.4f}", points, speed))
    return table(names, rows, left=("training",), title="points: of test AP, against the first training")


def save_figure(trials: list[Trial], path: Path) -> Path:
    """Draw validation AP against the seconds of training as one picture at ``path``, and return it."""
    from matplotlib.axes import Axes

    from pres.figure import FIRST, SECOND, THIRD, save_panels

    def draw(panel: Axes) -> None:
        for trial, colour in zip(trials, (FIRST, SECOND, THIRD), strict=False):
            before, seconds = 0.0, []  # what whole epochs took; validations may be inside one, too
            for done in trial.run.history:
                seconds.append(before + done.seconds)
                before += done.seconds if done.share == 1 else 0.0
            aps = [done.val.ap for done in trial.run.history]
            panel.plot(seconds, aps, marker="o", color=colour, label=trial.name)
        panel.set_xlabel("seconds of training")
        panel.set_ylabel("validation AP")
        panel.legend(frameon=False)

    run = trials[0].run
    return save_panels(path, f"{run.model} on {run.dataset}: what larger batches do", draw)
