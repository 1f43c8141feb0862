"""Epochs as TensorBoard sees them (an extra)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from pres.errors import OptionError
from pres.training.checkpoint import EpochResult

Write = Callable[[EpochResult], None]


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
