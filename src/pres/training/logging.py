"""What training shows: a progress bar, and its epochs as a table, as a picture and for TensorBoard."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import polars as pl
from matplotlib.ticker import MaxNLocator
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

from pres.errors import OptionError
from pres.figure import FIRST, GREY, SECOND, new_figure, save_png, tidy
from pres.storage import write_bytes
from pres.training.checkpoint import EpochResult
from pres.training.trainer import Trainer

Write = Callable[[EpochResult], None]


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
    if 0 < seconds < 1:
        return "1 s"  # never 0 s of what is still to do
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


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


def write_metrics(history: Sequence[EpochResult], path: Path) -> Path:
    """Write a table at ``path`` with a row for every epoch."""
    table = io.BytesIO()  # polars would report a full disk in a way of its own
    pl.DataFrame([_row(epoch) for epoch in history]).write_parquet(table)
    return write_bytes(path, table.getvalue())


def _row(epoch: EpochResult) -> dict[str, float]:
    """Return one epoch as a row of the table of metrics."""
    val = {f"val_{name}": value for name, value in dataclasses.asdict(epoch.val).items()}
    memory = {f"memory_{name}": value for name, value in epoch.memory.items()}
    about = {name: getattr(epoch, name) for name in ("epoch", "share", "lr", "loss", "seconds")}
    return about | val | memory


def epoch_writer(folder: Path | None, wanted: bool) -> AbstractContextManager[Write]:
    """Return a context that gives a function to call after every epoch; it writes if ``wanted``."""
    if not wanted:
        return nullcontext(lambda epoch: None)
    if folder is None:
        raise OptionError("tensorboard=True needs a folder to write into: give out=.")
    try:
        import tensorboard  # noqa: F401
    except ImportError:
        raise OptionError("TensorBoard is not installed: pip install tensorboard.") from None
    return _writing(folder / "tensorboard")


@contextmanager
def _writing(folder: Path) -> Iterator[Write]:
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(folder) as writer:

        def write(epoch: EpochResult) -> None:
            writer.add_scalar("train/loss", epoch.loss, epoch.epoch)
            writer.add_scalar("train/seconds", epoch.seconds, epoch.epoch)
            for name, value in dataclasses.asdict(epoch.val).items():
                writer.add_scalar(f"val/{name}", value, epoch.epoch)
            for name, value in epoch.memory.items():
                writer.add_scalar(f"memory/{name}", value, epoch.epoch)
            writer.flush()

        yield write
