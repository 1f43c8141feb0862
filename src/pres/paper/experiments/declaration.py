"""What an experiment is: what varies, what is measured, and how that is tabled and drawn."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from matplotlib.figure import Figure

from pres.models import registry
from pres.paper.experiments.available import has_labels
from pres.paper.experiments.budget import Budget
from pres.paper.experiments.job import Job, Kind, Point, arm_name
from pres.paper.experiments.results import Results
from pres.paper.experiments.table import Table
from pres.smoothing import PRES
from pres.training.config import TrainConfig

MODELS = ("tgn", "jodie", "apan")
# Without PRES; with both readings of the paper to the letter; with ours; and the parts of the first reading:
# its objective alone (S) and its filter alone (V). `smoothing_of` makes them.
VARIANTS: dict[str, dict[str, Any] | None] = {
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

# By a factor's name, or by the names of several that go together: its values, or which field of the budget
# has them.
Factors = Mapping[str | tuple[str, ...], Sequence[Any] | str]


@dataclass(frozen=True)
class Request:
    """What was asked for: how much is spent, and on which of the datasets that are at hand."""

    budget: Budget
    seeds: int | None  # None: as the budget says
    copies: dict[str, str]  # of each dataset that is at hand, which copy it is
    datasets: tuple[str, ...] | None = None  # None: those of each experiment

    def seeds_of(self, dataset: str) -> int:
        """Return how often a measurement on a dataset is repeated."""
        return self.seeds or self.budget.fewer_seeds.get(dataset, self.budget.seeds)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """One table or figure of the paper."""

    name: str
    title: str
    where: str  # it is in the paper
    says: str  # what the paper says of it
    kind: Kind = "train"
    datasets: tuple[str, ...]
    vary: Factors  # besides datasets and seeds
    table: Callable[[Results], Table]
    draw: Callable[[Results], Figure | None] | None = None
    findings: Callable[[Results], list[str]] = lambda results: []
    note: str = ""  # how this differs from the paper, beyond what all experiments share
    labelled: bool = False  # whether a dataset needs labels
    seeded: bool = True  # whether it is repeated with several seeds
    timed: bool = False  # whether the seconds of an epoch are measured too, in a job of their own
    alone: tuple[dict[str, Any], ...] = ()  # points that need no dataset

    def asked(self, request: Request) -> tuple[str, ...]:
        """Return the datasets that it is to be done on, at hand or not."""
        return self.datasets if request.datasets is None else request.datasets

    def points(self, request: Request) -> list[Point]:
        """Return the points, as far as the datasets are at hand."""
        at_hand = [name for name in self.asked(request) if name in request.copies]
        if self.labelled:
            at_hand = [name for name in at_hand if has_labels(name)]
        varied = {name: _values(of, request.budget) for name, of in self.vary.items()}
        found = list(self.alone)
        for name in at_hand:  # seed after seed, so that what is done so far can be compared
            seeds = range(request.seeds_of(name) if self.seeded else 1)
            found += product({"dataset": [name], "seed": seeds, **varied})
            if self.timed:
                measured = {"measurement": "speed", "dataset": name}
                found += [measured | {"model": model} for model in varied["model"]]
        return [Point(factors, job_of(self.kind, factors, request)) for factors in found]


def _values(stated: Sequence[Any] | str, budget: Budget) -> Sequence[Any]:
    """Return a factor's values; one that the budget has alone is a sequence of one."""
    found = getattr(budget, stated) if isinstance(stated, str) else stated
    return found if isinstance(found, Sequence) else [found]


def product(factors: Mapping[Any, Sequence[Any]]) -> Iterable[dict[str, Any]]:
    """Yield every combination; factors that go together stand as one, under all their names."""
    for values in itertools.product(*factors.values()):
        found: dict[str, Any] = {}
        for name, value in zip(factors, values, strict=True):
            found |= dict(zip(name, value, strict=True)) if isinstance(name, tuple) else {name: value}
        yield found


def job_of(kind: Kind, factors: Mapping[str, Any], request: Request) -> Job:
    """Return the job that measures at one point."""
    kind, budget = factors.get("measurement", kind), request.budget
    options = budget.theory.get(kind, {})
    options = {name: list(value) if isinstance(value, tuple) else value for name, value in options.items()}
    if kind == "state-space":
        return Job(kind, options)
    data = {"source": factors["dataset"], "copy": request.copies[factors["dataset"]]}
    if kind == "dataset":
        return Job(kind, data)
    data["events"] = budget.events
    if kind in ("variance", "convergence", "coherence"):
        more = {"beta": factors["beta"]} if kind == "coherence" else {}
        model = {"model": factors["model"], "model_options": dict(budget.model_options)}
        trained = {"batch_size": budget.theory_batch, "seed": 0, "options": options}
        return Job(kind, data | model | trained | more)
    if kind == "speed":
        return Job(kind, data | _speed(factors, budget))
    settings = data | training(factors, budget)
    if kind == "memory":
        return Job(kind, settings | {"epochs": 1})
    return Job(kind, settings | {"decoder_epochs": budget.decoder_epochs})


def training(factors: Mapping[str, Any], budget: Budget) -> dict[str, Any]:
    """Return what an experiment sets of a training run; the protocol sets all else.

    A test holds all the settings of the protocol, so that no default changes what a kept result is of.
    """
    dataset, model = factors["dataset"], factors["model"]
    smoothing = VARIANTS[factors.get("smoothing", "equations")]
    if "beta" in factors:
        smoothing = with_beta(factors["beta"])
    settings = {
        "source": dataset,
        "protocol": "tgl",
        "model": model,
        "batch_size": factors["batch_size"],
        "lr": _rate(model, dataset, factors.get("lr")),
        "epochs": factors.get("epochs", budget.epochs),
        "seed": factors.get("seed", 0),
        "smoothing": smoothing,
    }
    if factors.get("step_size"):
        settings["step_size"] = factors["step_size"]
    if budget.model_options:
        settings["model_options"] = dict(budget.model_options)
    return settings


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
    options = registry.MODELS[settings["model"]].tgl | settings.get("model_options", {})
    smoothing = smoothing_of(settings["smoothing"])
    return TrainConfig.of(stated | {"model_options": options, "smoothing": smoothing})


def _rate(model: str, dataset: str, asked: float | Literal["other"] | None) -> float:
    """Return a learning rate: that which was chosen, the other one, or as it is asked for."""
    chosen = RATE.get((model, dataset), USUAL_RATE)
    if asked == "other":
        return next(rate for rate in RATES if rate != chosen)
    return asked or chosen


def _speed(factors: Mapping[str, Any], budget: Budget) -> dict[str, Any]:
    """Return the settings of a job that times all arms of a model in turns."""
    each = {
        arm_name(smoothing, b): training({**factors, "smoothing": smoothing, "batch_size": b}, budget)
        for smoothing, b in budget.arms
    }
    first = next(iter(each.values()))
    own = {arm: {n: v for n, v in settings.items() if v != first[n]} for arm, settings in each.items()}
    return first | {"arms": own, "rounds": budget.rounds}
