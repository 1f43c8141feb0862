"""What an experiment is: what varies, what is measured, and how that is tabled and drawn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from pres.models.registry import TGL
from pres.paper.experiments.available import has_labels
from pres.paper.experiments.job import Job, Kind
from pres.paper.experiments.size import Size
from pres.smoothing import PRES
from pres.training.config import TrainConfig

if TYPE_CHECKING:
    from pres.paper.experiments.figures import Draw
    from pres.paper.experiments.groups import Groups
    from pres.paper.experiments.table import Table

MODELS = ("tgn", "jodie", "apan")
# Without PRES; with both readings of the paper to the letter; with ours; and the parts of the first reading:
# its objective alone (S) and its filter alone (V). `smoothing_of` makes them.
WAYS: dict[str, dict[str, Any] | None] = {
    "off": None,
    "equations": {"published": "equations"},
    "algorithm": {"published": "algorithm"},
    "ours": {},
    "S": {"published": "equations", "filter": False},
    "V": {"published": "equations", "beta": 0.0},
}
# The learning rate of a model on a stream, of TGL's 1e-4 and 1e-3 of the authors' code: the better one on
# validation after 10 epochs at the smaller batch without PRES, one seed (`pres reproduce rates --full`).
RATES = (1e-4, 1e-3)
RATE = {(model, dataset): 1e-3 for model in MODELS for dataset in ("wikipedia", "mooc")}
USUAL_RATE = 1e-3  # where nothing was tried

# Of a training job's settings, those that are not of the training.
NOT_CONFIG = ("events", "copy", "decoder_epochs", "arms", "rounds")

Factors = Mapping[Any, Sequence[Any]]  # by name; those that go together by all their names


@dataclass(frozen=True)
class Request:
    """What was asked for: how large, and on which of the datasets that are at hand."""

    size: Size
    seeds: int | None  # None: as the size says
    copies: Mapping[str, str]  # of each dataset that is at hand, which copy it is
    datasets: tuple[str, ...] | None = None  # None: those of each experiment

    def seeds_of(self, dataset: str) -> int:
        """Return how often a measurement on a dataset is repeated."""
        return self.seeds or self.size.fewer_seeds.get(dataset, self.size.seeds)


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
    timed: bool = False  # whether the seconds of an epoch are measured too, in a job of their own
    alone: tuple[dict[str, Any], ...] = ()  # points that need no dataset

    def asked(self, request: Request) -> tuple[str, ...]:
        """Return the datasets that it is to be done on, at hand or not."""
        return self.datasets if request.datasets is None else request.datasets

    def points(self, request: Request) -> list[Point]:
        """Return the grid, as far as the datasets are at hand."""
        at_hand = [name for name in self.asked(request) if name in request.copies]
        if self.labelled:
            at_hand = [name for name in at_hand if has_labels(name)]
        found = list(self.alone)
        for name in at_hand:  # seed after seed, so that what is done so far can be compared
            seeds = range(request.seeds_of(name) if self.seeded else 1)
            varied = self.vary(request.size)
            found += product({"dataset": [name], "seed": seeds, **varied})
            if self.timed:
                measured = {"measurement": "speed", "dataset": name}
                found += [measured | {"model": model} for model in varied["model"]]
        return [Point(factors, job_of(self.kind, factors, request)) for factors in found]


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
        trained = {"batch_size": size.theory_batch, "seed": 0, "options": options}
        return Job(kind, data | model | trained | more)
    if kind == "speed":
        return Job(kind, data | _speed(factors, size))
    settings = data | training(factors, size)
    if kind == "memory":
        return Job(kind, settings | {"epochs": 1})
    return Job(kind, settings | {"decoder_epochs": size.decoder_epochs})


def training(factors: Mapping[str, Any], size: Size) -> dict[str, Any]:
    """Return what an experiment sets of a training run; the protocol sets all else.

    A test holds all the settings of the protocol, so that no default changes what a kept result is of.
    """
    dataset, model = factors["dataset"], factors["model"]
    epochs = factors.get("epochs") or (size.extended_epochs if factors.get("extended") else size.epochs)
    smoothing = WAYS[factors.get("way", "equations")]
    if "beta" in factors:
        smoothing = with_beta(factors["beta"])
    step = {"step_size": factors["step_size"]} if factors.get("step_size") else {}
    options = {"model_options": dict(size.model_options)} if size.model_options else {}
    return {
        "source": dataset,
        "protocol": "tgl",
        "model": model,
        "batch_size": factors["batch_size"],
        "lr": _rate(model, dataset, factors.get("lr")),
        "epochs": epochs,
        "seed": factors.get("seed", 0),
        "smoothing": smoothing,
        **step,
        **options,
    }


def with_beta(beta: float) -> dict[str, Any]:
    """Return the equations with a weight of the objective, so named that the same method has one name."""
    usual = PRES.published("equations").beta
    return {"published": "equations"} | ({} if beta == usual else {"beta": beta})


def smoothing_of(stated: Mapping[str, Any] | None) -> PRES | None:
    """Return PRES as an experiment states it."""
    if stated is None:
        return None
    options = {name: value for name, value in stated.items() if name != "published"}
    return PRES.published(stated["published"], **options) if "published" in stated else PRES(**options)


def config_of(settings: Mapping[str, Any]) -> TrainConfig:
    """Return all settings of the training that a job states."""
    stated = {name: value for name, value in settings.items() if name not in NOT_CONFIG}
    options = TGL[settings["model"]] | settings.get("model_options", {})
    smoothing = smoothing_of(settings["smoothing"])
    return TrainConfig.of(stated | {"model_options": options, "smoothing": smoothing})


def _rate(model: str, dataset: str, asked: float | Literal["other"] | None) -> float:
    """Return a learning rate: that which was chosen, the other one, or as it is asked for."""
    chosen = RATE.get((model, dataset), USUAL_RATE)
    if asked == "other":
        return next(rate for rate in RATES if rate != chosen)
    return asked or chosen


def arms(size: Size) -> list[tuple[str, int]]:
    """Return what Tables 1 and 2 compare: which PRES, at which batch size."""
    small, large = size.pair
    return [("off", small), ("off", large), *((way, large) for way in ("equations", "algorithm", "ours"))]


def arm_name(way: str, batch_size: int) -> str:
    """Return what an arm is called in a job that measures several."""
    return f"{way} at {batch_size}"


def _speed(factors: Mapping[str, Any], size: Size) -> dict[str, Any]:
    """Return the settings of a job that times all arms of a model in turns."""
    each = {}
    for way, b in arms(size):
        each[arm_name(way, b)] = training({**factors, "way": way, "batch_size": b}, size)
    first = next(iter(each.values()))
    own = {
        name: {setting: value for setting, value in settings.items() if value != first[setting]}
        for name, settings in each.items()
    }
    return first | {"arms": own, "rounds": size.rounds}


def plain(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options as JSON has them."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
