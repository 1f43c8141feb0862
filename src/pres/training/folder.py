"""The folder of a run: written as training goes, whole at every moment."""

from __future__ import annotations

import dataclasses
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pydantic
from filelock import BaseFileLock

from pres.errors import (
    Notice,
    OptionError,
    SourceNotFoundError,
    StorageError,
    UnreadableSourceError,
)
from pres.storage import (
    new_folder,
    read_json,
    storage_errors,
    sweep,
    sync,
    take,
    write_json,
)
from pres.training.checkpoint import EpochResult, Tensors, TrainingState, load_tensors
from pres.training.kept_states import BEST, LAST, KeptStates
from pres.training.logging import draw_learning_curve, write_metrics
from pres.training.run import Run
from pres.training.schema import Config, Events, Result, check

MAY_CHANGE = ("epochs", "patience", "lr")
SHOWN_EVERY = 60.0  # seconds at least between two pictures of a run that goes on


class RunFolder:
    """The files of one run.

    ``config.json`` repeats it, ``environment.json`` says what it ran on and ``events.json`` on which events.
    ``best.safetensors`` and ``last.safetensors`` are its states, each with the one before it beside it, and
    ``run.json`` is its result, written last. ``metrics.parquet`` and ``learning.png`` show every epoch; they
    are never read here. One process writes: it holds ``.lock`` until `release`.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self._states = KeptStates(self.path)
        self._lock: BaseFileLock | None = None
        self._shown = -SHOWN_EVERY  # when

    @property
    def begun(self) -> bool:
        """Whether there is a run in the folder, finished or not."""
        return (self.path / "config.json").exists()

    @property
    def finished(self) -> bool:
        """Whether there is a finished run in the folder."""
        return (self.path / "run.json").exists()

    @property
    def kept(self) -> tuple[int, int]:
        """The epoch and the batch that the last state stands before."""
        return self._states.kept

    @property
    def repeatable(self) -> bool:
        """Whether its settings are enough to make model and events again, neither being the user's own."""
        config = self.config()
        return config["source"] is not None and config["model_options"] is not None

    def check_free(self) -> None:
        """Raise if there is a run in the folder: it is never written over."""
        if self.path.exists() and not self.path.is_dir():
            raise StorageError(f"{self.path} is not a folder. Choose another name.")
        if self.path.exists() and not self.begun and any(self.path.iterdir()):
            raise StorageError(f"{self.path} holds other files. Choose a new or an empty folder.")
        if self.finished:
            raise StorageError(f"{self.path} holds a run already. Choose another folder, or remove it first.")
        if self.begun:
            raise StorageError(
                f"{self.path} holds a run that was not finished. {self._how_to_go_on()} Or choose another "
                "folder, or remove it first."
            )

    def begin(self, about: dict[str, Any], state: TrainingState) -> None:
        """Make the folder of a new run, with the state it begins with, and hold it."""
        self._make(about, lambda made: made.keep_last(state))

    def keep_whole(self, run: Run) -> None:
        """Make the folder of a run that is finished."""

        def keep(made: RunFolder) -> None:
            made.keep_best(run.state, run.best_epoch)
            made.keep_last(run.last)
            made.finish(run)

        self._make(run.to_dict(), keep)
        self.release()

    def _make(self, about: dict[str, Any], keep: Callable[[RunFolder], None]) -> None:
        self.check_free()
        with new_folder(self.path) as place:
            made = RunFolder(place)
            try:
                made._lock = take(place / ".lock", self.path)
                write_json(place / "environment.json", about["environment"])
                write_json(place / "events.json", about["events"])
                made._write_config(about)
                keep(made)
            except BaseException:
                made.release()
                raise
        self._lock, self._states = made._lock, dataclasses.replace(made._states, folder=self.path)

    def release(self) -> None:
        """Let another process write the run."""
        if self._lock is not None:
            self._lock.release()

    def _write_config(self, about: dict[str, Any]) -> None:
        origin = about["events"]["origin"] or {"source": None, "options": {}}
        source = {"source": origin["source"], "reading": origin["options"]}
        model = {"model": about["model_class"].lower(), "model_options": about["model_options"]}
        write_json(self.path / "config.json", source | model | about["config"])

    def check_same(self, about: dict[str, Any]) -> None:
        """Raise unless the run in the folder is of these events and settings, so that it can go on."""
        if about["events"]["fingerprint"] != self.events()["fingerprint"]:
            raise OptionError(
                f"the events are not those that the run in {self.path} was begun with: restore them, or "
                "train anew."
            )
        before = self.config()
        now = {"model": about["model_class"].lower(), "model_options": about["model_options"]} | about[
            "config"
        ]
        for name, value in now.items():
            if name not in MAY_CHANGE and before.get(name) != value:
                raise OptionError(
                    f"the run in {self.path} was begun with {name}={before.get(name)!r}, not {value!r}; only "
                    f"{', '.join(MAY_CHANGE)} may change when it goes on."
                )

    def take_up(self, about: dict[str, Any]) -> tuple[TrainingState, Tensors]:
        """Hold a run that goes on; return its state, and the best state before that, none if there is none.

        If the newest state is damaged it is the one before it, and a note says so.
        """
        self._check_begun()
        self._lock = take(self.path / ".lock", self.path)
        try:
            sweep(self.path)
            self.check_same(about)
            found = self._states.newest()
            self._check_result()
        except BaseException:
            self.release()
            raise
        return found

    def _check_result(self) -> None:
        """Remove a result that is damaged: the test is done again."""
        if self.finished:
            try:
                self.result()
            except UnreadableSourceError as error:
                warnings.warn(f"{error} The test is done again.", Notice, stacklevel=2)
                self._remove_result()

    def _remove_result(self) -> None:
        with storage_errors(self.path):
            (self.path / "run.json").unlink(missing_ok=True)
            sync(self.path)

    def go_on(self, about: dict[str, Any]) -> None:
        """Take up a run again, also one that was finished: it has no result until it is finished anew.

        Its events are from now on where they were found; where they were, if they were made in memory.
        """
        origin = about["events"]["origin"]
        if origin is None or origin["source"] is None:
            about = about | {"events": about["events"] | {"origin": self.events()["origin"]}}
        self._remove_result()
        write_json(self.path / "events.json", about["events"])
        self._write_config(about)

    def keep_epoch(self, state: TrainingState, best: Tensors | None) -> None:
        """Write what an epoch leaves, its state also as the best if it is."""
        if best is not None:
            self.keep_best(best, state.history[-1].epoch)
        self.keep_last(state)

    def keep_best(self, state: Tensors, epoch: int) -> None:
        """Write the state of the best epoch so far; `keep_last` must follow."""
        self._states.keep_best(state, epoch)

    def keep_last(self, state: TrainingState) -> None:
        """Write the state to go on from."""
        self._states.keep_last(state)

    def show(self, history: Sequence[EpochResult], *, now: bool = False) -> None:
        """Show the epochs so far as a table and a picture, at once or if that is some time ago."""
        if not history or (not now and time.monotonic() < self._shown + SHOWN_EVERY):
            return
        write_metrics(history, self.path / "metrics.parquet")
        draw_learning_curve(history, self.path / "learning.png")
        self._shown = time.monotonic()

    def finish(self, run: Run) -> None:
        """Write the result."""
        self.show(run.history, now=True)
        write_json(self.path / "run.json", run.to_dict())

    def config(self) -> dict[str, Any]:
        """Return the settings in the folder."""
        return self._read("config.json", Config)

    def events(self) -> dict[str, Any]:
        """Return what is known of the events of the run in the folder: how many, which, and where from."""
        return self._read("events.json", Events)

    def result(self) -> dict[str, Any]:
        """Return the result of the finished run in the folder, as `Run.to_dict` gives it."""
        return self._read("run.json", Result)

    def _read(self, name: str, schema: type[pydantic.BaseModel]) -> dict[str, Any]:
        self._check_begun()
        found = read_json(self.path / name)
        check(found, schema, self.path / name)
        return found

    def _check_begun(self) -> None:
        if not self.begun:
            missing = "config.json" if self.path.exists() else "such folder"
            raise SourceNotFoundError(f"{self.path} holds no run: there is no {missing}.")

    def best(self) -> Tensors:
        """Return the state after the best validation so far."""
        self.check_usable()
        try:
            return load_tensors(self.path / BEST)[0]
        except UnreadableSourceError as error:
            raise UnreadableSourceError(f"{error} {self._how_to_go_on()}") from None

    def best_epoch(self) -> int:
        """Return the epoch of the best validation so far."""
        self.check_usable()
        return int(load_tensors(self.path / BEST)[1]["epoch"])

    def check_usable(self) -> None:
        """Raise unless there is a run in the folder that has been validated."""
        self._check_begun()
        if not self.finished and not (self.path / BEST).is_file():
            raise SourceNotFoundError(
                f"the run in {self.path} has not been validated yet, and has no weights to use. "
                f"{self._how_to_go_on()}"
            )

    def last(self) -> TrainingState:
        """Return the state to go on from."""
        return TrainingState.load(self.path / LAST)

    def run(self) -> Run:
        """Return the finished run in the folder."""
        if self.begun and not self.finished:
            raise SourceNotFoundError(f"the run in {self.path} is not finished. {self._how_to_go_on()}")
        for name in ("run.json", BEST, LAST):
            if not (self.path / name).is_file():
                raise SourceNotFoundError(f"{self.path} holds no saved run: there is no {name}.")
        found = self.result()
        known = check(found, Result, self.path / "run.json")
        given = {field.name: found[field.name] for field in dataclasses.fields(Run) if field.name in found}
        given |= {name: getattr(known, name) for name in ("val", "test", "history")}
        return Run(**given, state=self.best(), last=self.last())

    def _how_to_go_on(self) -> str:
        if not self.repeatable:
            return f"Go on with pres.fit(model, events, out='{self.path}', resume=True)."
        return f"Go on with 'pres train --resume {self.path}'."


def load_run(folder: str | Path) -> Run:
    """Return a run that was saved in ``folder``."""
    return RunFolder(folder).run()
