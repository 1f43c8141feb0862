"""The model that a command measures on: new, trained for a while, or of a saved run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pres.cli.console import say, stderr
from pres.cli.source import open_events
from pres.cli.train import named_values
from pres.errors import OptionError
from pres.settings import Settings

if TYPE_CHECKING:
    from pres.data.stream import EventStream
    from pres.models import MDGNN


@dataclass(frozen=True, eq=False)
class Subject:
    """A model to measure on, its stream, and where its weights come from."""

    model: MDGNN
    events: EventStream
    weights: str


def chosen_subject(
    source: str | None,
    run: Path | None,
    reading: dict[str, Any],
    making: dict[str, Any],
    batch_size: int,
    seed: int,
    device: str,
    limit: int | None,
    needed: int,
) -> Subject:
    """Return the model of a saved run, or a new one on a source of events after some training.

    ``making`` holds ``model``, ``option``, ``epochs`` and further settings of training, each None if it is
    not given; none may be for a saved run. ``batch_size`` is that of training. If the first ``limit``
    training events are fewer than ``needed``, that is said before anything is trained.
    """
    if limit is not None and limit < 1:
        raise OptionError(f"--events {limit}: measure on at least one.")
    if source is None and run is None:
        raise OptionError("say what to measure on: a source of events, or a saved run with --run.")
    if run is not None:
        if reading or any(value not in (None, []) for value in making.values()):
            raise OptionError("--run knows its events and its model; leave out how to read and make them.")
        return saved_subject(run, device, source)
    assert source is not None
    given: dict[str, Any] = {"model": "tgn", "epochs": 1, "lr": 1e-3}
    given |= {name: value for name, value in making.items() if value is not None}
    model, option, epochs = given.pop("model"), given.pop("option", None), given.pop("epochs")
    made = made_subject(source, reading, model, option, seed, device)
    train = len(made.events.split().train)
    if needed > (train if limit is None else min(limit, train)):
        raise OptionError(
            f"the largest --batch-size needs {needed:,} events to measure on, of {train:,} training events"
            f"{'' if limit is None else f' and --events {limit:,}'}. Give smaller ones."
        )
    return trained_subject(made, epochs, {"batch_size": batch_size, **given, "seed": seed})


def made_subject(
    source: str, reading: dict[str, Any], model: str, option: list[str] | None, seed: int, device: str
) -> Subject:
    """Return a new model on the events of a file or a dataset."""
    from pres.models.registry import build_model
    from pres.training.trainer import usable_device

    usable_device(device)  # what cannot be is said before anything is read
    options = named_values(option or [], "option")
    events = open_events(source, reading)
    made = build_model(model, events, options, seed).to(device)
    return Subject(made, events, f"untrained (seed {seed})")


def trained_subject(subject: Subject, epochs: int, settings: dict[str, Any]) -> Subject:
    """Return the subject after some epochs of training, or as it is for 0."""
    from pres.training import fit

    if epochs < 0:
        raise OptionError(f"--epochs {epochs}: train for 0 or more.")
    if epochs == 0:
        return subject
    say(f"training for {epochs} epoch{'s' if epochs > 1 else ''} first")
    options = settings | {"eval_batch_size": min(200, settings["batch_size"])}
    run = fit(subject.model, subject.events, epochs=epochs, progress=stderr.is_terminal, **options)
    trained = ", ".join(f"{name} {_in_words(value)}" for name, value in settings.items())
    weights = f"of epoch {run.best_epoch} of {epochs} ({trained})"
    return Subject(subject.model, subject.events, weights)


def saved_subject(run: Path, device: str, source: str | None = None) -> Subject:
    """Return the model and the events of a saved run; they are in ``source`` if they were moved."""
    from pres.training.opened import open_run

    opened = open_run(run, device, source)
    return Subject(opened.model, opened.events, f"of the run {run}")


def _in_words(value: object) -> str:
    """Return a setting as people read it; of settings in settings, what was given."""
    if not isinstance(value, Settings):
        return str(value)
    given = value.model_dump(exclude_unset=True)
    return f"({', '.join(f'{name} {own}' for name, own in given.items())})"
