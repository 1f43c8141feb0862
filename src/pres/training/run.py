"""What a training run leaves: its settings, its history, its best state, in memory and on disk."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from pres.errors import SourceNotFoundError, StorageError, UnreadableSourceError, one_line
from pres.models import MDGNN
from pres.storage import write_whole
from pres.training.evaluation import LinkMetrics


@dataclass(frozen=True)
class EpochResult:
    """One epoch: its mean training loss, its validation, its time without evaluation."""

    epoch: int
    loss: float
    val: LinkMetrics
    seconds: float


@dataclass(frozen=True, eq=False)
class Run:
    """A finished training run; ``val`` and ``test`` are of the epoch that was best on validation."""

    dataset: str
    variant: str | None
    model: str
    config: dict[str, Any]
    history: list[EpochResult]
    best_epoch: int
    val: LinkMetrics
    test: LinkMetrics
    train_events: int
    state: dict[str, Tensor]  # weights, and memory and mail after validation, of the best epoch

    @property
    def seconds_per_epoch(self) -> float:
        """Mean training time of an epoch, evaluation excluded."""
        return sum(epoch.seconds for epoch in self.history) / len(self.history)

    @property
    def events_per_second(self) -> float:
        """Training events per second of training time."""
        return self.train_events / self.seconds_per_epoch

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the state as plain values, as ``pres train --json`` prints it."""
        return {
            "dataset": self.dataset,
            "variant": self.variant,
            "model": self.model,
            **{name: self.config[name] for name in ("batch_size", "step_size", "seed")},
            "epochs": len(self.history),
            "best_epoch": self.best_epoch,
            "val": dataclasses.asdict(self.val),
            "test": dataclasses.asdict(self.test),
            "seconds_per_epoch": self.seconds_per_epoch,
            "events_per_second": self.events_per_second,
            "config": self.config,
            "history": [dataclasses.asdict(epoch) for epoch in self.history],
        }

    def save(self, folder: str | Path) -> Path:
        """Write ``run.json`` and ``state.safetensors`` into a folder that holds no run yet; return it."""
        folder = Path(folder)
        check_free(folder)
        state = {name: value.contiguous().cpu() for name, value in self.state.items()}
        write_whole(folder / "state.safetensors", lambda path: save_file(state, path))
        text = json.dumps(self.to_dict() | {"train_events": self.train_events}, indent=2)
        write_whole(folder / "run.json", lambda path: path.write_text(text + "\n"))
        return folder

    def restore(self, model: MDGNN) -> None:
        """Give ``model`` the run's best weights, and memory and mail as they were after validation."""
        model.load_state_dict(self.state)

    def __repr__(self) -> str:
        title = self.dataset if self.variant is None else f"{self.dataset} ({self.variant})"
        return (
            f"Run of {self.model} on {title}: test AP {self.test.ap:.4f}, validation AP {self.val.ap:.4f} "
            f"at epoch {self.best_epoch} of {len(self.history)}, {self.seconds_per_epoch:.1f} s per epoch"
        )


def load_run(folder: str | Path) -> Run:
    """Return a run that was saved in ``folder``."""
    folder = Path(folder)
    for name in ("run.json", "state.safetensors"):
        if not (folder / name).is_file():
            raise SourceNotFoundError(f"{folder} holds no saved run: there is no {name}.")
    try:
        saved = json.loads((folder / "run.json").read_text())
        return Run(
            dataset=saved["dataset"],
            variant=saved["variant"],
            model=saved["model"],
            config=saved["config"],
            history=[
                EpochResult(**epoch | {"val": LinkMetrics(**epoch["val"])}) for epoch in saved["history"]
            ],
            best_epoch=saved["best_epoch"],
            val=LinkMetrics(**saved["val"]),
            test=LinkMetrics(**saved["test"]),
            train_events=saved["train_events"],
            state=load_file(folder / "state.safetensors"),
        )
    except Exception as error:  # a damaged file makes the readers fail in many ways
        raise UnreadableSourceError(f"the run in {folder} is damaged: {one_line(error)}.") from None


def check_free(folder: Path) -> None:
    """Raise if a run is saved in ``folder``: it is never written over."""
    if folder.exists() and not folder.is_dir():
        raise StorageError(f"{folder} is not a folder. Choose another name.")
    if (folder / "run.json").exists():
        raise StorageError(f"{folder} holds a run already. Choose another folder, or remove it first.")


def state_of(model: MDGNN) -> dict[str, Tensor]:
    """Return a copy of the model's weights, memory and mail."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}
