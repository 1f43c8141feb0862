"""The folder of a run: written as training goes, whole at every moment."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import polars as pl

from pres.errors import OptionError, SourceNotFoundError, StorageError, UnreadableSourceError, one_line
from pres.storage import write_whole
from pres.training.checkpoint import EpochResult, Tensors, TrainingState, load_tensors, save_tensors
from pres.training.logging import draw_learning_curve
from pres.training.run import Run

MAY_CHANGE = ("epochs", "patience")


class RunFolder:
    """The files of one run.

    ``config.json`` repeats it, ``environment.json`` says what it ran on and ``events.json`` on which events,
    ``metrics.parquet`` and ``learning.png`` show every epoch, ``best.safetensors`` and ``last.safetensors``
    are its states, and ``run.json`` is its result, written last.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    @property
    def begun(self) -> bool:
        """Whether there is a run in the folder, finished or not."""
        return (self.path / "config.json").exists()

    @property
    def finished(self) -> bool:
        """Whether there is a finished run in the folder."""
        return (self.path / "run.json").exists()

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

    def begin(self, about: dict[str, Any]) -> None:
        """Claim the folder for a new run of this model, config, events and environment."""
        self.check_free()
        self._write_json("environment.json", about["environment"])
        self._write_json("events.json", about["events"])
        self._write_config(about)

    def _write_config(self, about: dict[str, Any]) -> None:
        origin = about["events"]["origin"] or {"source": None, "options": {}}
        source = {"source": origin["source"], "reading": origin["options"]}
        model = {"model": about["model_class"].lower(), "model_options": about["model_options"]}
        self._write_json("config.json", source | model | about["config"])

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

    def go_on(self, about: dict[str, Any]) -> None:
        """Take up a run again, also one that was finished: it has no result until it is finished anew.

        Its events are from now on where they were found; where they were, if they were made in memory.
        """
        origin = about["events"]["origin"]
        if origin is None or origin["source"] is None:
            about = about | {"events": about["events"] | {"origin": self.events()["origin"]}}
        (self.path / "run.json").unlink(missing_ok=True)
        self._write_json("events.json", about["events"])
        self._write_config(about)

    def keep_epoch(self, state: TrainingState, best: Tensors | None) -> None:
        """Write what an epoch leaves, its state also as the best if it is."""
        if best is not None:
            self.keep_best(best, state.history[-1].epoch)
        self.keep_last(state)

    def keep_best(self, state: Tensors, epoch: int) -> None:
        """Write the state of the best epoch so far."""
        save_tensors(self.path / "best.safetensors", state, {"epoch": epoch})

    def keep_last(self, state: TrainingState) -> None:
        """Write the state to go on from, and show the epochs so far."""
        state.save(self.path / "last.safetensors")
        if state.history:
            rows = [_row(epoch) for epoch in state.history]
            table = io.BytesIO()  # polars would report a full disk in a way of its own
            pl.DataFrame(rows).write_parquet(table)
            write_whole(self.path / "metrics.parquet", lambda path: path.write_bytes(table.getvalue()))
            draw_learning_curve(state.history, self.path / "learning.png")

    def finish(self, run: Run) -> None:
        """Write the result."""
        self._write_json("run.json", run.to_dict())

    def config(self) -> dict[str, Any]:
        """Return the settings in the folder."""
        self._check_begun()
        return self._read_json("config.json")

    def _check_begun(self) -> None:
        if not self.begun:
            missing = "config.json" if self.path.exists() else "such folder"
            raise SourceNotFoundError(f"{self.path} holds no run: there is no {missing}.")

    def events(self) -> dict[str, Any]:
        """Return what is known of the events of the run in the folder: how many, which, and where from."""
        self._check_begun()
        return self._read_json("events.json")

    def best(self) -> Tensors:
        """Return the state after the best validation so far."""
        self.check_usable()
        return load_tensors(self.path / "best.safetensors")[0]

    def check_usable(self) -> None:
        """Raise unless there is a run in the folder that has been validated."""
        self._check_begun()
        if not self.finished and not (self.path / "best.safetensors").is_file():
            raise SourceNotFoundError(
                f"the run in {self.path} has not been validated yet, and has no weights to use. "
                f"{self._how_to_go_on()}"
            )

    def last(self) -> TrainingState:
        """Return the state to go on from."""
        return TrainingState.load(self.path / "last.safetensors")

    def run(self) -> Run:
        """Return the finished run in the folder."""
        if self.begun and not self.finished:
            raise SourceNotFoundError(f"the run in {self.path} is not finished. {self._how_to_go_on()}")
        for name in ("run.json", "best.safetensors", "last.safetensors"):
            if not (self.path / name).is_file():
                raise SourceNotFoundError(f"{self.path} holds no saved run: there is no {name}.")
        saved, best, last = self._read_json("run.json"), self.best(), self.last()
        try:
            return Run.of(saved, best, last)
        except (KeyError, TypeError) as error:
            raise UnreadableSourceError(f"the run in {self.path} is damaged: {one_line(error)}.") from None

    def _how_to_go_on(self) -> str:
        if not self.repeatable:
            return f"Go on with pres.fit(model, events, out='{self.path}', resume=True)."
        return f"Go on with 'pres train --resume {self.path}'."

    def _write_json(self, name: str, value: dict[str, Any]) -> None:
        text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
        write_whole(self.path / name, lambda path: path.write_text(text))

    def _read_json(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads((self.path / name).read_text())
        except (OSError, ValueError) as error:
            raise UnreadableSourceError(f"{self.path / name} is damaged: {one_line(error)}.") from None
        if not isinstance(found, dict):
            raise UnreadableSourceError(f"{self.path / name} is damaged: it holds no object.")
        return found


def load_run(folder: str | Path) -> Run:
    """Return a run that was saved in ``folder``."""
    return RunFolder(folder).run()


def _row(epoch: EpochResult) -> dict[str, float]:
    """Return one epoch as a row of the table of metrics."""
    val = {f"val_{name}": value for name, value in dataclasses.asdict(epoch.val).items()}
    memory = {f"memory_{name}": value for name, value in epoch.memory.items()}
    about = {"epoch": epoch.epoch, "share": epoch.share, "loss": epoch.loss, "seconds": epoch.seconds}
    return about | val | memory
