"""The folder of a run: written as training goes, whole at every moment."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import polars as pl

from pres.errors import SourceNotFoundError, StorageError, UnreadableSourceError, one_line
from pres.storage import write_whole
from pres.training.curve import draw_learning_curve
from pres.training.run import Run
from pres.training.state import EpochResult, Tensors, TrainingState, load_tensors, save_tensors


class RunFolder:
    """The files of one run.

    ``config.json`` repeats it, ``environment.json`` says what it ran on, ``metrics.parquet`` and
    ``learning.png`` show every epoch, ``best.safetensors`` and ``last.safetensors`` are its states, and
    ``run.json`` is its result, written last.
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
    def has_state(self) -> bool:
        """Whether there is a state to go on from."""
        return (self.path / "last.safetensors").exists()

    def check_free(self) -> None:
        """Raise if there is a run in the folder: it is never written over."""
        if self.path.exists() and not self.path.is_dir():
            raise StorageError(f"{self.path} is not a folder. Choose another name.")
        if self.finished:
            raise StorageError(f"{self.path} holds a run already. Choose another folder, or remove it first.")
        if self.begun:
            raise StorageError(
                f"{self.path} holds a run that was not finished. Go on with 'pres train --resume "
                f"{self.path}', choose another folder, or remove it first."
            )

    def begin(self, about: dict[str, Any]) -> None:
        """Claim the folder for a new run of this model, config, events and environment."""
        self.check_free()
        self._write_json("environment.json", about["environment"])
        origin = about["events"]["origin"] or {"source": None, "options": {}}
        source = {"source": origin["source"], "reading": origin["options"]}
        model = {"model": about["model"].lower(), "model_options": about["model_options"]}
        self._write_json("config.json", source | model | about["config"])

    def keep_best(self, state: Tensors, epoch: int) -> None:
        """Write the state of the best epoch so far."""
        save_tensors(self.path / "best.safetensors", state, {"epoch": epoch})

    def keep_last(self, state: TrainingState) -> None:
        """Write the state to go on from, and show the epochs so far."""
        state.save(self.path / "last.safetensors")
        if state.history:
            rows = [_row(epoch) for epoch in state.history]
            write_whole(self.path / "metrics.parquet", lambda path: pl.DataFrame(rows).write_parquet(path))
            draw_learning_curve(state.history, self.path / "learning.png")

    def finish(self, run: Run) -> None:
        """Write the result."""
        self._write_json("run.json", run.to_dict())

    def config(self) -> dict[str, Any]:
        """Return the settings in the folder."""
        if not self.begun:
            raise SourceNotFoundError(f"{self.path} holds no run: there is no config.json.")
        return self._read_json("config.json")

    def best(self) -> Tensors:
        """Return the state of the best epoch."""
        return load_tensors(self.path / "best.safetensors")[0]

    def last(self) -> TrainingState:
        """Return the state to go on from."""
        return TrainingState.load(self.path / "last.safetensors")

    def run(self) -> Run:
        """Return the finished run in the folder."""
        if self.begun and not self.finished:
            raise SourceNotFoundError(
                f"the run in {self.path} is not finished. Go on with 'pres train --resume {self.path}'."
            )
        for name in ("run.json", "best.safetensors", "last.safetensors"):
            if not (self.path / name).is_file():
                raise SourceNotFoundError(f"{self.path} holds no saved run: there is no {name}.")
        saved, best, last = self._read_json("run.json"), self.best(), self.last()
        try:
            return Run.of(saved, best, last)
        except (KeyError, TypeError) as error:
            raise UnreadableSourceError(f"the run in {self.path} is damaged: {one_line(error)}.") from None

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
    return {"epoch": epoch.epoch, "loss": epoch.loss, "seconds": epoch.seconds} | val
