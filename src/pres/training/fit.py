"""`pres.fit`: training with validation, early stopping, and the best and last state kept."""

from __future__ import annotations

import signal
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from pres.data.stream import EventStream
from pres.errors import DivergedError, Notice, OptionError, StorageError
from pres.models import MDGNN
from pres.training.batch_size import check_tolerance, options_for
from pres.training.checkpoint import EpochResult, TrainingState, load_into
from pres.training.config import FitConfig, with_batch_size
from pres.training.folder import RunFolder
from pres.training.logging import epoch_writer, progress_bar
from pres.training.run import Run, environment
from pres.training.trainer import Trainer


def fit(
    model: MDGNN,
    events: EventStream,
    *,
    out: str | Path | None = None,
    resume: bool = False,
    progress: bool = False,
    tensorboard: bool = False,
    on_epoch: Callable[[EpochResult], None] | None = None,
    checkpoint_minutes: float = 10.0,
    tolerance: float | None = None,
    **options: Any,
) -> Run:
    """Train ``model`` on the first part of ``events``, choose the epoch on the second, test on the third.

    The model ends with the weights of the epoch that was best on validation, and with the memory it had after
    the whole stream.

    Args:
        model: A model made from ``events``.
        events: The whole stream, split 70 / 15 / 15 in time.
        out: A new folder to keep the run in, written after every epoch and every ``checkpoint_minutes``; see
            `RunFolder`.
        resume: Go on with the run in ``out``, from where it stopped.
        progress: Whether to show a progress bar on stderr.
        tensorboard: Whether to log for TensorBoard, in the folder ``tensorboard`` of ``out``.
        on_epoch: Called after every epoch, for instance to print it.
        checkpoint_minutes: How much work inside an epoch a kill can cost at most, with ``out``.
        tolerance: With ``batch_size="auto"``: the points of AP that a larger batch may lose, by default 0.5;
            see `find_batch_size`.
        **options: The fields of `FitConfig`.
    """
    folder = None if out is None else RunFolder(out)
    if resume and folder is None:
        raise OptionError("resume=True goes on with the run in a folder: give out=.")
    if folder is not None and not resume:
        folder.check_free()
    if not checkpoint_minutes >= 0:
        raise OptionError(f"checkpoint_minutes={checkpoint_minutes}: it must be 0 or more.")
    check_tolerance(tolerance, options.get("batch_size") == "auto")
    if options.get("batch_size") == "auto":
        if folder is not None and resume:
            options = options | {name: folder.config()[name] for name in ("batch_size", "step_size")}
        else:
            options, found = options_for(model, events, tolerance, options)
            warnings.warn(f"batch_size='auto': {found}", Notice, stacklevel=2)
    elif folder is not None and resume and options.get("preset") is not None:
        options = {"batch_size": folder.config()["batch_size"]} | options
    else:
        options, why = with_batch_size(options, events)
        if why is not None:
            warnings.warn(why, Notice, stacklevel=2)
    config = FitConfig.of(options)
    writer = epoch_writer(None if folder is None else folder.path, tensorboard)
    trainer = Trainer(model, events, config)
    about = describe(trainer, events)
    with ExitStack() as held:
        if folder is not None:
            held.callback(folder.release)
            if resume:
                _take_up(folder, trainer, about)
            else:
                folder.begin(about, trainer.state())
        with progress_bar(progress, trainer) as show, writer as write:

            def ended(result: EpochResult) -> None:
                write(result)
                if on_epoch is not None:
                    on_epoch(result)

            last = _train(trainer, folder, 60 * checkpoint_minutes, show, ended)
        load_into(model, trainer.best)
        test = trainer.test()
        best = trainer.history[trainer.best_place]
        run = Run(
            **about,
            pool=config.pool,
            history=trainer.history,
            best_epoch=best.epoch,
            val=best.val,
            test=test,
            train_events=len(trainer.split.train),
            state=trainer.best,
            last=last,
        )
        if folder is not None:
            folder.finish(run)
    return run


def _take_up(folder: RunFolder, trainer: Trainer, about: dict[str, Any]) -> None:
    """Let ``trainer`` stand where the run in ``folder`` stopped, and hold that."""
    before = folder.config()["lr"]
    state, best = folder.take_up(about)
    trainer.restore(state)
    if trainer.finished and folder.finished:  # without a result, only the test is left to do
        raise OptionError(f"the run in {folder.path} is finished; give more epochs to go on with it.")
    trainer.best = best
    folder.go_on(about)
    if trainer.config.lr != before:
        where = f"epoch {trainer.epoch}, batch {trainer.batch + 1}"
        said = f"lr is {trainer.config.lr:g} from {where} on, and was {before:g}."
        warnings.warn(said, Notice, stacklevel=3)


def _train(
    trainer: Trainer,
    folder: RunFolder | None,
    seconds: float,
    show: Callable[[], None],
    ended: Callable[[EpochResult], None],
) -> TrainingState:
    """Train to the end, keep what an epoch leaves and where training stands every so many seconds.

    Return the last state.
    """
    with stopping_between_batches() as stop_if_asked:
        kept = time.monotonic()

        def on_batch() -> None:
            nonlocal kept
            show()
            stop_if_asked()
            if folder is not None and time.monotonic() >= kept + seconds:
                folder.keep_last(trainer.state())
                kept = time.monotonic()

        try:
            while not trainer.finished:
                result = trainer.run_epoch(on_batch)
                if folder is not None:
                    improved = trainer.history[trainer.best_place] is result
                    folder.keep_epoch(trainer.state(), trainer.best if improved else None)
                    kept = time.monotonic()
                trainer.between_batches = True
                if folder is not None:
                    folder.show(trainer.history)
                ended(result)
            return trainer.state()  # with the gradients of a step that is not whole
        except (KeyboardInterrupt, DivergedError) as stopped:
            raise _with_state_kept(stopped, trainer, folder) from None
        finally:
            trainer.model.zero_grad()  # gradients are as large as the weights


def describe(trainer: Trainer, events: EventStream) -> dict[str, Any]:
    """Return what a run is of, before it starts: model, settings, stream and environment."""
    origin = events.info.origin
    return {
        "dataset": events.info.name,
        "variant": events.info.variant,
        "model": trainer.model.title,
        "model_class": type(trainer.model).__name__,
        "model_options": trainer.model.options,
        "config": trainer.config.model_dump(),
        "events": {
            "count": len(events),
            "nodes": events.num_nodes,
            "fingerprint": events.fingerprint(),
            "origin": None if origin is None else {"source": origin.source, "options": dict(origin.options)},
        },
        "environment": environment(trainer.device),
    }


def _with_state_kept(
    stopped: KeyboardInterrupt | DivergedError, trainer: Trainer, folder: RunFolder | None
) -> BaseException:
    """Keep the state between the two batches where training stopped, and return what to raise."""
    where = f"epoch {trainer.epoch}, batch {trainer.batch + 1} of {len(trainer.batches)}"
    if folder is None:
        return stopped
    if isinstance(stopped, DivergedError):  # inside a batch: its earlier steps may have spoilt the weights
        return DivergedError(f"{stopped} {_what_is_kept(folder)} It may go on with a smaller lr.")
    if not trainer.between_batches:  # asked twice
        return KeyboardInterrupt(f"stopped inside {where}. {_what_is_kept(folder)}")
    try:
        folder.keep_last(trainer.state())
        folder.show(trainer.history, now=True)
    except StorageError as error:
        return StorageError(f"{error} {_what_is_kept(folder)}")
    return KeyboardInterrupt(f"stopped at {where}. {folder.path} keeps the state before it.")


def _what_is_kept(folder: RunFolder) -> str:
    epoch, batch = folder.kept
    if batch:
        return f"{folder.path} keeps the state before epoch {epoch}, batch {batch + 1}."
    return f"{folder.path} keeps what was done up to the epoch before."


@contextmanager
def stopping_between_batches() -> Iterator[Callable[[], None]]:
    """Give a function that raises `KeyboardInterrupt` if one (or a SIGTERM) has come since the last call.

    A second signal interrupts at once. Outside the main thread signals do not arrive, and nothing changes.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    def stop_if_asked() -> None:
        if asked:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield stop_if_asked
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop_if_asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
