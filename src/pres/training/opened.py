"""A saved run brought back to life: its settings, its events and its model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pres.data.datasets.registry import DATASETS
from pres.data.source import events_from
from pres.data.stream import EventStream
from pres.errors import Notice, OptionError, SourceNotFoundError
from pres.models import MDGNN
from pres.models.registry import MODELS, build_model
from pres.training.config import FitConfig
from pres.training.folder import RunFolder
from pres.training.run import restore
from pres.training.trainer import usable_device


@dataclass(frozen=True, eq=False)
class OpenedRun:
    """A run's settings and stream, and its model as it was after the best validation."""

    config: dict[str, Any]  # the fields of FitConfig
    events: EventStream
    model: MDGNN


def open_run(folder: str | Path, device: str = "cpu", source: str | Path | None = None) -> OpenedRun:
    """Return the run in ``folder`` with its events and its model: best weights, memory before the test part.

    The events are read again, and must be the same as then. A run that is not finished gives its best weights
    so far.

    Args:
        folder: Where the run is.
        device: Where to compute.
        source: A file, a store or a dataset that holds the events, if they are no longer where they were, or
            were made in memory. Columns are those named at training.
    """
    usable_device(device)
    run = RunFolder(folder)
    config, best = run.config(), run.best()
    if config["model_options"] is None or config["model"] not in MODELS:
        raise OptionError(
            f"the run in {folder} is of a model of your own ({config['model']}): make it, and use "
            "pres.load_run(…).restore(model)."
        )
    if not run.finished:
        so_far = f"the run in {folder} is not finished: these are its best weights so far."
        warnings.warn(so_far, Notice, stacklevel=2)
    events = events_again(run.events(), str(folder), source).to(device)
    model = build_model(config["model"], events, config["model_options"]).to(device)
    restore(model, config, best)
    return OpenedRun({name: config[name] for name in FitConfig.model_fields}, events, model)


def events_again(about: dict[str, Any], whose: str, source: str | Path | None = None) -> EventStream:
    """Return the events a run was made from, read again and held against their fingerprint.

    Args:
        about: What the run knows of its events.
        whose: The run, in words.
        source: Where they are now; None for where they were.
    """
    origin = about["origin"] or {"source": None, "options": {}}
    if source is None and origin["source"] is None:
        raise OptionError(
            f"the events of {whose} were made in memory, not read from a file or a dataset: name a file that "
            "holds them with source=, or make them again, and use pres.load_run(…).restore(model)."
        )
    place = origin["source"] if source is None else str(source)
    try:
        with warnings.catch_warnings(action="ignore", category=Notice):  # they were heard at training
            events = events_from(place, _reading(place, origin))
    except SourceNotFoundError as error:
        moved = " If they were moved, name their place with source=." if source is None else ""
        raise SourceNotFoundError(f"the events of {whose} are gone: {error}{moved}") from None
    left = len(events) - about["count"]
    events = events[: about["count"]]
    if events.fingerprint() != about["fingerprint"]:
        raise OptionError(
            f"{place} holds other events or ids than the {about['count']:,} that {whose} was made with: "
            "restore it, name a file that holds them with source=, or train anew."
        )
    if left > 0:
        warnings.warn(
            f"{place} has grown: its last {left:,} events came after {whose}, and are not used.",
            Notice,
            stacklevel=2,
        )
    return events


def _reading(place: str, origin: dict[str, Any]) -> dict[str, Any]:
    """Return how to read the events: as they were read, unless that was said of another kind of source."""

    def kind(source: str | None) -> str:
        if source is None:
            return "file"  # frames have columns as files have
        return source if source.casefold() in DATASETS else "store" if Path(source).is_dir() else "file"

    return dict(origin["options"]) if kind(place) == kind(origin["source"]) else {}
