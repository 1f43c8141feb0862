"""A progress bar inside an epoch, with speed and time left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from pres.training.trainer import Trainer


@contextmanager
def progress_bar(wanted: bool, trainer: Trainer) -> Iterator[Callable[[], None]]:
    """Give a function to call after every batch, which shows where ``trainer`` stands."""
    if not wanted:
        yield lambda: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[about]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task("", total=len(trainer.split.train), about="")

        def show() -> None:
            done = trainer.batches.bounds[trainer.batch]
            bars.update(task, completed=done, description=_epoch(trainer), about=_about(trainer, done))

        yield show


def _epoch(trainer: Trainer) -> str:
    return f"epoch {trainer.epoch} of {trainer.config.epochs}"


def _about(trainer: Trainer, done: int) -> str:
    """Return speed, loss and the time left, of the epoch and of all epochs at most."""
    rate = done / max(trainer.seconds, 1e-9)
    train = len(trainer.split.train)
    epoch_left = (train - done) / rate
    all_left = epoch_left + (trainer.config.epochs - trainer.epoch) * train / rate
    return (
        f"loss {trainer.loss / done:.4f}  {rate:,.0f} events/s  {duration(epoch_left)} left of the epoch, "
        f"{duration(all_left)} of all"
    )


def duration(seconds: float) -> str:
    """Return a time as people say it."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
