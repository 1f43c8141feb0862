"""A saved run brought back to life: its result, its events and its model."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pres.data.source import events_from
from pres.data.stream import EventStream
from pres.errors import Notice, OptionError, SourceNotFoundError
from pres.models import MDGNN
from pres.models.registry import MODELS, build_model
from pres.training.folder import RunFolder
from pres.training.run import Run
from pres.training.trainer import usable_device


@dataclass(frozen=True, eq=False)
class OpenedRun:
    """A run with its stream, and its model as it was after validation of the best epoch."""

    run: Run
    events: EventStream
    model: MDGNN


def open_run(folder: str | Path, device: str = "cpu") -> OpenedRun:
    """Return the run in ``folder`` with its events and its model: best weights, memory before the test part.

    The events are read again from where they came, and must be the same as then.
    """
    usable_device(device)
    run = RunFolder(folder).run()
    if run.model_options is None or run.model_class.lower() not in MODELS:
        raise OptionError(
            f"the run in {folder} is of a model of your own ({run.model_class}): make it, and use "
            "pres.load_run(…).restore(model)."
        )
    events = events_again(run.events, str(folder)).to(device)
    model = build_model(run.model_class.lower(), events, run.model_options).to(device)
    run.restore(model)
    return OpenedRun(run, events, model)


def events_again(about: dict[str, Any], whose: str) -> EventStream:
    """Return the events a run was made from, read again and held against their fingerprint."""
    origin = about["origin"]
    if origin is None:
        raise OptionError(
            f"the events of {whose} were made in memory, not read from a file or a dataset: make them "
            "again, and use pres.load_run(…).restore(model)."
        )
    try:
        with warnings.catch_warnings(action="ignore", category=Notice):  # they were heard at training
            events = events_from(origin["source"], origin["options"])
    except SourceNotFoundError as error:
        raise SourceNotFoundError(f"the events of {whose} are gone: {error}") from None
    left = len(events) - about["count"]
    events = events[: about["count"]]
    if events.fingerprint() != about["fingerprint"]:
        raise OptionError(
            f"{origin['source']} holds other events or ids than when {whose} was made: restore it, or train "
            "anew."
        )
    if left > 0:
        warnings.warn(
            f"{origin['source']} has grown: its last {left:,} events came after {whose}, and are not used.",
            Notice,
            stacklevel=2,
        )
    return events
