"""How each kind of job is done: from its settings to its result, in its folder."""

from __future__ import annotations

import contextlib
import shutil
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from pres.errors import Notice, PresError, StorageError, one_line
from pres.experiments import measure
from pres.experiments.folder import JobFolder
from pres.experiments.job import Job
from pres.experiments.peak import peak_memory
from pres.experiments.stream import stream
from pres.models.build import build_model
from pres.training.classification import classify as run_classification
from pres.training.config import TrainConfig
from pres.training.environment import environment
from pres.training.fit import fit
from pres.training.folder import RunFolder
from pres.training.opened import open_run

NOT_CONFIG = ("events", "copy")  # of a training job's settings, those that `TrainConfig` does not know


def perform(job: Job, root: Path) -> str | None:
    """Do a job and keep its result in its folder under ``root``; return why it failed, or None.

    One thread, so that a number does not depend on how many jobs run beside it.
    """
    torch.set_num_threads(1)
    folder = JobFolder(root, job)
    start = time.perf_counter()
    try:
        folder.begin()
        with warnings.catch_warnings(action="ignore", category=Notice):
            result = WORK[job.kind](job.settings, folder)
        about = {"seconds": time.perf_counter() - start, "environment": environment(torch.device("cpu"))}
        folder.finish(about | result)
    except Exception as error:  # one job that fails must not end the others
        reason = str(error) if isinstance(error, PresError) else f"{type(error).__name__}: {one_line(error)}"
        with contextlib.suppress(StorageError):  # a full disk, say; the reason itself is told all the same
            folder.fail(reason, traceback.format_exc())
        return reason
    return None


def train(settings: dict[str, Any], folder: JobFolder) -> dict[str, Any]:
    """Train a run, or go on with it; return what `pres train --json` prints."""
    kept = RunFolder(folder.run)
    if not kept.finished:
        chosen = config_of(settings)
        events = stream(settings)
        model = build_model(chosen.model, events, chosen.model_options, chosen.seed)
        begun = kept.begun and (kept.path / "last.safetensors").exists()
        if not begun:  # or stopped before there was a state to go on from
            shutil.rmtree(kept.path, ignore_errors=True)
        return fit(model, events, out=kept.path, resume=begun, **chosen.fit_options).to_dict()
    return kept.run().to_dict()


def classify(settings: dict[str, Any], folder: JobFolder) -> dict[str, Any]:
    """Classify by the embeddings of the run that was trained for it; return `pres classify --json`."""
    root = folder.path.parent.parent
    opened = open_run(JobFolder(root, Job("train", settings["train"])).run)
    options = {name: value for name, value in settings.items() if name != "train"}
    return run_classification(opened.model, opened.events, **options).to_dict()


def dataset(settings: dict[str, Any], folder: JobFolder) -> dict[str, Any]:
    """Count what a dataset holds."""
    events = stream(settings | {"events": None})
    return {
        "dataset": events.info.name,
        "variant": events.info.variant,
        "nodes": events.num_nodes,
        "events": len(events),
        "edge_features": 0 if events.x is None else events.x.shape[1],
        "positives": None if events.label is None else int((events.label != 0).sum()),
    }


def memory(settings: dict[str, Any], folder: JobFolder) -> dict[str, Any]:
    """Train for one epoch and return how much memory that took at most, beside what was there before."""
    chosen, events = config_of(settings), stream(settings)
    model = build_model(chosen.model, events, chosen.model_options, chosen.seed)
    with peak_memory() as peak:
        run = fit(model, events, **chosen.fit_options)
    return {"dataset": run.dataset, "variant": run.variant, "peak_bytes": peak()}


def config_of(settings: dict[str, Any]) -> TrainConfig:
    """Return the settings of training."""
    return TrainConfig.of({name: value for name, value in settings.items() if name not in NOT_CONFIG})


WORK: dict[str, Callable[[dict[str, Any], JobFolder], dict[str, Any]]] = {
    "dataset": dataset,
    "train": train,
    "classify": classify,
    "memory": memory,
    "state-space": measure.state_space,
    "variance": measure.variance,
    "convergence": measure.convergence,
    "coherence": measure.coherence,
}
