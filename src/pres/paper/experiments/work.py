"""How each kind of job is done: from its settings to its result, in its folder."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import torch

from pres.data.stream import EventStream
from pres.errors import Notice, PresError, StorageError, one_line
from pres.evaluation.link import evaluate
from pres.evaluation.nodes import classify
from pres.evaluation.scorer import replay
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.paper.experiments.available import stream
from pres.paper.experiments.declaration import config_of
from pres.paper.experiments.job import PICTURE, Job, JobFolder
from pres.paper.experiments.peak import peak_memory
from pres.paper.theory import convergence_terms, gradient_variance, memory_coherence, state_space_errors
from pres.sampling import NegativeSampler
from pres.smoothing import PRES
from pres.training.config import FitConfig, TrainConfig
from pres.training.fit import fit
from pres.training.folder import RunFolder
from pres.training.run import Run, environment
from pres.training.trainer import Trainer

Settings = dict[str, Any]
Result = dict[str, Any]


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
        folder.forget_run()
    except Exception as error:  # one job that fails must not end the others
        reason = str(error) if isinstance(error, PresError) else f"{type(error).__name__}: {one_line(error)}"
        with contextlib.suppress(StorageError):  # a full disk, say; the reason itself is told all the same
            folder.fail(reason, traceback.format_exc())
        return reason
    return None


def train(settings: Settings, folder: JobFolder) -> Result:
    """Train a run, or go on with it; return `pres train --json`, further evaluations, and the labels' AUC."""
    kept, chosen, events = RunFolder(folder.run), config_of(settings), stream(settings)
    model = _built(chosen, events)
    if kept.finished:
        run = kept.run()
        run.restore(model)
    else:
        run = fit(model, events, out=kept.path, resume=kept.begun, **chosen.fit_options)
    found = run.to_dict() | {"evaluations": evaluations(model, events, run)}
    return found | {"labels": labels(model, events, run, settings["decoder_epochs"])}


def _built(chosen: TrainConfig, events: EventStream) -> MDGNN:
    return build_model(chosen.model, events, chosen.model_options, chosen.seed, chosen.protocol)


def evaluations(model: MDGNN, events: EventStream, run: Run) -> Result:
    """Return AP of a run's weights on validation and test, after a replay of all that is before.

    In batches of the training's size and of 200, against negatives from all nodes, in batches of 200 also
    from the destinations. Trackers follow the training part of the replay, and are frozen then; where it says
    so they are live, and follow validation and test too.
    """
    b, seed = run.config["batch_size"], run.config["seed"]
    protocols: dict[str, tuple[int, Literal["nodes", "destinations"], bool]] = {
        "batch": (b, "nodes", False),
        "200": (200, "nodes", False),
        "200, destinations": (200, "destinations", False),
    }
    if model.smoothing is not None and model.smoothing.observes:
        protocols |= {"batch, live": (b, "nodes", True), "200, live": (200, "nodes", True)}
    split, found = events.split(), {}
    for name, (batch_size, pool, live) in protocols.items():
        run.restore(model)
        if model.smoothing is not None:
            model.smoothing.live = live
        replay(model, [split.train], batch_size)
        sampler = NegativeSampler(events, pool=pool)
        for part, those in (("val", split.val), ("test", split.test)):
            metrics = evaluate(model, those, sampler, batch_size=batch_size, seed=seed)
            found[f"{part}, {name}"] = dataclasses.asdict(metrics)
    return found


def labels(model: MDGNN, events: EventStream, run: Run, epochs: int) -> Result | None:
    """Return how well labels are told from a run's embeddings, or why that is not known; None: no labels."""
    if events.label is None:
        return None
    run.restore(model)
    try:
        replayed = {"batch_size": run.config["batch_size"], "seed": run.config["seed"]}
        found = classify(model, events, epochs=epochs, **replayed).to_dict()
    except PresError as error:  # the first events of a stream may have no positive in one of its parts
        return {"reason": str(error)}
    return {name: found[name] for name in ("train", "val", "test", "best_epoch", "epochs")}


def speed(settings: Settings, folder: JobFolder) -> Result:
    """Return the seconds of an epoch of several trainings, in turns, after an epoch that does not count.

    Nothing else should run beside it.
    """
    trainers: dict[str, Trainer] = {}
    events = stream(settings)
    for name, arm in settings["arms"].items():
        chosen = config_of(settings | arm)
        trainers[name] = Trainer(_built(chosen, events), events, FitConfig.of(chosen.fit_options))
    seconds: dict[str, list[float]] = {name: [] for name in trainers}
    for round_ in range(1 + settings["rounds"]):
        for name, trainer in trainers.items():
            for _ in range(len(trainer.batches)):
                trainer.train_next_batch()
            if round_:
                seconds[name].append(trainer.seconds)
            trainer.epoch, trainer.batch, trainer.seconds, trainer.sums = trainer.epoch + 1, 0, 0.0, {}
    return {"epochs": seconds, "dataset": events.info.name, "variant": events.info.variant}


def dataset(settings: Settings, folder: JobFolder) -> Result:
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


def memory(settings: Settings, folder: JobFolder) -> Result:
    """Train for one epoch and return how much memory that took at most, beside what was there before."""
    chosen, events = config_of(settings), stream(settings)
    model = _built(chosen, events)
    with peak_memory() as peak:
        run = fit(model, events, **chosen.fit_options)
    return {"dataset": run.dataset, "variant": run.variant, "peak_bytes": peak()}


def theory(measure: Callable[..., Any], *, trained: bool = True) -> Callable[[Settings, JobFolder], Result]:
    """Return the work of a measurement: at the weights after an epoch, or along a training of its own.

    The epoch is with or without the objective that is to raise coherence; negatives avoid the pairs of the
    whole stream, as in the paper.
    """

    def work(settings: Settings, folder: JobFolder) -> Result:
        events, seed, options = stream(settings), settings["seed"], dict(settings["options"])
        batch_size, beta = settings["batch_size"], settings.get("beta", 0)
        model = build_model(settings["model"], events, settings["model_options"], seed)
        if trained:
            smoothing = PRES(beta=beta, filter=False) if beta else None
            once = {"epochs": 1, "batch_size": batch_size, "negative_window": None}
            fit(model, events, seed=seed, smoothing=smoothing, **once)
            objective = f", β {beta:g}" if beta else ""
            options["weights"] = f"of epoch 1 (batch_size {batch_size}, seed {seed}{objective})"
        else:
            options["batch_size"] = batch_size
        return _drawn(measure(model, events, seed=seed, **options), folder)

    return work


def _drawn(found: Any, folder: JobFolder) -> Result:
    """Return a measurement as plain values, once its picture is in the folder."""
    found.save_png(folder.path / PICTURE)
    plain: Result = json.loads(json.dumps(found.to_dict()))
    return plain


WORK: dict[str, Callable[[Settings, JobFolder], Result]] = {
    "dataset": dataset,
    "train": train,
    "memory": memory,
    "speed": speed,
    "state-space": lambda settings, folder: _drawn(state_space_errors(**settings), folder),
    "variance": theory(gradient_variance),
    "convergence": theory(convergence_terms, trained=False),
    "coherence": theory(memory_coherence),
}
