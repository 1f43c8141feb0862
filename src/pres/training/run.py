"""What a training run leaves: its settings, its history, its best and last state."""

from __future__ import annotations

import dataclasses
import os
import platform
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch

from pres.evaluation.metrics import LinkMetrics
from pres.models import MDGNN
from pres.smoothing import SmoothingSettings
from pres.training.checkpoint import EpochResult, Tensors, TrainingState, load_into
from pres.training.config import FitConfig


@dataclass(frozen=True, eq=False)
class Run:
    """A finished training run; ``val`` and ``test`` are of the epoch that was best on validation."""

    dataset: str
    variant: str | None
    model: str  # what tables call it, see `MDGNN.title`
    model_class: str  # the name of its class
    model_options: dict[str, Any] | None  # the arguments it was made with; None for a model of one's own
    config: dict[str, Any]  # the fields of FitConfig
    events: dict[str, Any]  # of the stream: events, nodes, fingerprint, and where it came from
    environment: dict[str, Any]
    pool: str  # where the random negatives of validation and test come from
    history: list[EpochResult]  # one per validation
    best_epoch: int
    val: LinkMetrics
    test: LinkMetrics
    train_events: int
    state: Tensors = field(repr=False)  # weights, and memory and mail after validation, of the best epoch
    last: TrainingState = field(repr=False)  # where training ended

    @property
    def seconds_per_epoch(self) -> float:
        """Mean training time of an epoch, evaluation excluded."""
        epochs = {done.epoch: done for done in self.history}.values()  # the last validation of each
        return sum(done.seconds for done in epochs) / sum(done.share for done in epochs)

    @property
    def events_per_second(self) -> float:
        """Training events per second of training time."""
        return self.train_events / self.seconds_per_epoch

    def to_dict(self) -> dict[str, Any]:
        """Return everything but the states as plain values, as ``pres train --json`` prints it."""
        return {
            "dataset": self.dataset,
            "variant": self.variant,
            "model": self.model,
            "model_class": self.model_class,
            "batch_size": self.config["batch_size"],
            "step_size": self.config["step_size"] or self.config["batch_size"],
            "seed": self.config["seed"],
            "epochs": self.history[-1].epoch,
            "best_epoch": self.best_epoch,
            "val": dataclasses.asdict(self.val),
            "test": dataclasses.asdict(self.test),
            "pool": self.pool,
            "seconds_per_epoch": self.seconds_per_epoch,
            "events_per_second": self.events_per_second,
            "train_events": self.train_events,
            "model_options": self.model_options,
            "config": self.config,
            "events": self.events,
            "environment": self.environment,
            "history": [dataclasses.asdict(epoch) for epoch in self.history],
        }

    def save(self, folder: str | Path) -> Path:
        """Write the run into a folder that holds none yet (see `RunFolder`); return it."""
        from pres.training.folder import RunFolder

        target = RunFolder(folder)
        target.keep_whole(self)
        return target.path

    def restore(self, model: MDGNN) -> None:
        """Give ``model`` the run's best weights, and memory and mail as they were after validation."""
        restore(model, self.config, self.state)

    def _settings(self) -> str:
        """Return how batches and memory differ from standard training, in words; nothing if they do not."""
        has, usual = self.config, FitConfig.model_fields
        batch, step, delta = has["batch_size"], has["step_size"], has["max_time_delta"]
        differs = {
            f"protocol {has['protocol']}": has["protocol"] is not None,
            f"preset {has['preset']}": has["preset"] is not None,
            f"batches of {batch:,}": batch != usual["batch_size"].default,
            f"steps of {step or batch:,}": step not in (None, batch),
            f"optimiser {has['optimiser']}": has["optimiser"] != usual["optimiser"].default,
            f"a max_time_delta of {delta or 1:g} of the training's time": delta is not None,
            f"a staleness of {has['staleness'] or 0:,}": has["staleness"] is not None,
        }
        found = [words for words, differ in differs.items() if differ]
        if has["smoothing"]:
            found.append(SmoothingSettings.from_dict(has["smoothing"]).title)
        return f" with {', '.join(found)}" if found else ""

    def __repr__(self) -> str:
        title = self.dataset if self.variant is None else f"{self.dataset} ({self.variant})"
        return (
            f"Run of {self.model} on {title}{self._settings()}: "
            f"test AP {self.test.ap:.4f}, validation AP {self.val.ap:.4f} "
            f"at epoch {self.best_epoch} of {self.history[-1].epoch}, "
            f"{self.seconds_per_epoch:.1f} s per epoch"
        )


def restore(model: MDGNN, config: dict[str, Any], state: Tensors) -> None:
    """Give ``model`` a state of a run with these settings."""
    saved = config["smoothing"]
    settings = None if saved is None else SmoothingSettings.from_dict(saved)
    model.smoothing = None if settings is None else settings.build(model.memory)
    load_into(model, state)


def environment(device: torch.device) -> dict[str, Any]:
    """Return versions and hardware, as plain values."""
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
    return {
        "pres": version("pres"),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "polars": pl.__version__,
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": str(device),
        "gpu": gpu,
    }
