"""What an experiment is: what varies, what is measured, and how that is tabled and drawn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pres.experiments.available import has_labels
from pres.experiments.job import Job, Kind
from pres.experiments.size import Size
from pres.smoothing.config import PRES
from pres.training.config import TrainConfig

if TYPE_CHECKING:
    from pres.experiments.figures import Draw
    from pres.experiments.groups import Groups
    from pres.experiments.table import Table

MODELS = ("tgn", "jodie", "apan")
# Without PRES; with its objective alone, its filter alone, and both.
WAYS: dict[str, dict[str, Any] | None] = {"off": None, "S": {"filter": False}, "V": {"beta": 0.0}, "PRES": {}}
# The paper has one batch size for memory and weights. With a second one for the weights, a larger batch does
# not also mean fewer steps.
READINGS = ("one number", "two numbers")

Factors = Mapping[str | tuple[str, ...], Sequence[Any]]


@dataclass(frozen=True)
class Request:
    """What was asked for: how large, and on which of the datasets that are at hand."""

    size: Size
    seeds: int
    copies: Mapping[str, str]  # of each dataset that is at hand, which copy it is
    datasets: tuple[str, ...] | None = None  # None: those of each experiment


@dataclass(frozen=True)
class Point:
    """One place of the grid that an experiment spans, and the job that measures there."""

    factors: dict[str, Any]
    job: Job


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    title: str
    where: str  # it is in the paper
    says: str  # what the paper says of it
    kind: Kind
    datasets: tuple[str, ...]
    vary: Callable[[Size], Factors]  # besides datasets and seeds
    table: Callable[[Groups], Table]
    draw: Draw | None = None
    findings: Callable[[Groups], list[str]] = lambda groups: []
    note: str = ""  # how this differs from the paper, beyond what all experiments share
    labelled: bool = False  # whether a dataset needs labels
    seeded: bool = True  # whether it is repeated with several seeds
    alone: tuple[dict[str, Any], ...] = ()  # points that need no dataset

    def asked(self, request: Request) -> tuple[str, ...]:
        """Return the datasets that it is to be done on, at hand or not."""
        return self.datasets if request.datasets is None else request.datasets

    def points(self, request: Request) -> list[Point]:
        """Return the grid, as far as the datasets are at hand."""
        at_hand = [name for name in self.asked(request) if name in request.copies]
        if self.labelled:
            at_hand = [name for name in at_hand if has_labels(name)]
        factors: dict[str | tuple[str, ...], Sequence[Any]] = {"dataset": at_hand}
        factors |= self.vary(request.size)
        if self.seeded:
            factors["seed"] = range(request.seeds)
        return [Point(found, job_of(self.kind, found, request)) for found in (*self.alone, *product(factors))]


def product(factors: Factors) -> Iterable[dict[str, Any]]:
    """Yield every combination; factors that go together stand as one, under all their names."""
    for values in itertools.product(*factors.values()):
        found: dict[str, Any] = {}
        for name, value in zip(factors, values, strict=True):
            found |= dict(zip(name, value, strict=True)) if isinstance(name, tuple) else {name: value}
        yield found


def job_of(kind: Kind, factors: Mapping[str, Any], request: Request) -> Job:
    """Return the job that measures at one point."""
    kind, size = factors.get("measurement", kind), request.size
    if kind == "state-space":
        return Job(kind, plain(size.theory.get(kind, {})))
    data = {"source": factors["dataset"], "copy": request.copies[factors["dataset"]]}
    if kind == "dataset":
        return Job(kind, data)
    data["events"] = size.events
    if kind in ("variance", "convergence", "coherence"):
        more = {"beta": factors["beta"]} if kind == "coherence" else {}
        model = {"model": factors["model"], "model_options": dict(size.model_options)}
        options = plain(size.theory.get(kind, {}))
        return Job(kind, data | model | {"batch_size": size.step, "seed": 0, "options": options} | more)
    settings = data | training(factors, size)
    if kind == "memory":
        return Job(kind, settings | {"epochs": 1, "patience": 1})
    if kind == "classify":
        decoder = {"epochs": size.decoder_epochs, "seed": factors["seed"]}
        return Job(kind, {"train": settings} | decoder)
    return Job(kind, settings)


def training(factors: Mapping[str, Any], size: Size) -> dict[str, Any]:
    """Return all settings of a training run, said one by one, so that no default is left to change."""
    b, epochs = factors["batch_size"], size.epochs
    if factors.get("extended"):
        epochs = size.extended_epochs
    step = min(b, size.step) if factors.get("reading") == "two numbers" else b
    smoothing = WAYS[factors.get("way", "PRES")]
    if "beta" in factors:
        smoothing = {"beta": factors["beta"]}
    chosen = TrainConfig.of(
        {
            "source": factors["dataset"],
            "model": factors["model"],
            "model_options": dict(size.model_options),
            "batch_size": b,
            "step_size": step,
            "negative_window": None,  # the whole batch, as the paper has it
            "epochs": epochs,
            "patience": epochs,  # as many as are asked for: nothing stops early
            "seed": factors.get("seed", 0),
            "smoothing": None if smoothing is None else PRES(**smoothing),
        }
    )
    return {name: value for name, value in chosen.model_dump().items() if name != "reading"}


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON has them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
