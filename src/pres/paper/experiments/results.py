"""What was measured at the points of an experiment: seeds gathered, and places of the grid compared."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pres.paper.experiments.budget import Budget
from pres.paper.experiments.job import Point, arm_name
from pres.paper.experiments.table import Spread

MEBI = 2**20


@dataclass(frozen=True, eq=False)
class Group:
    """One place of the grid without its seed, and each measure of it, seed by seed."""

    factors: dict[str, Any]
    values: dict[str, list[Any]]
    all: Groups

    def __getitem__(self, name: str) -> Any:
        """Return a factor, or None where there is none of that name."""
        return self.factors.get(name)

    def spread(self, name: str, scale: float = 1.0) -> Spread | None:
        """Return the spread of a measure over the seeds."""
        return Spread.of(self.values.get(name, []), scale)

    def mean(self, name: str, scale: float = 1.0) -> float | None:
        """Return the mean of a measure over the seeds."""
        found = self.spread(name, scale)
        return None if found is None else found.mean

    def only(self, name: str) -> Any:
        """Return a measure that seeds do not change."""
        return self.values.get(name, [None])[0]

    def without(self, batch_size: int) -> Group | None:
        """Return the place without PRES at a batch size, otherwise the same."""
        same = {name: self[name] for name in ("dataset", "model", "lr", "epochs")}
        return self.all.one(**same, smoothing="off", batch_size=batch_size)

    def against_small(self, measure: str = "ap", scale: float = 100.0) -> Spread | None:
        """Return what this has more than the smaller batch of the pair without PRES, seed by seed."""
        return self._more_than(self.without(self.all.budget.pair[0]), measure, measure, scale)

    def against_same(self, measure: str = "ap", scale: float = 100.0, other: str = "") -> Spread | None:
        """Return what this has more than the same batch without PRES, of that maybe an ``other`` measure."""
        return self._more_than(self.without(self["batch_size"]), measure, other or measure, scale)

    def _more_than(self, place: Group | None, measure: str, theirs: str, scale: float) -> Spread | None:
        if place is None:
            return None
        was = place._by_seed(theirs)
        pairs = [(now, was.get(seed)) for seed, now in self._by_seed(measure).items()]
        return Spread.of([now - then for now, then in pairs if now is not None and then is not None], scale)

    def _by_seed(self, measure: str) -> dict[int, Any]:
        return dict(zip(self.values["seed_of"], self.values.get(measure, []), strict=False))

    @property
    def seconds(self) -> float | None:
        """The seconds of an epoch: timed in turns with other arms, if any were; or of the run itself."""
        if not self.all.timings:
            return self.mean("seconds")
        return self.all.timings.get(tuple(self[name] for name in ARM))

    @property
    def speed_up(self) -> float | None:
        """How many times shorter an epoch is than that of the smaller batch without PRES."""
        before, now = self.without(self.all.budget.pair[0]), self.seconds
        was = None if before is None else before.seconds
        return None if was is None or not now else was / now


ARM = ("dataset", "model", "smoothing", "batch_size")


@dataclass(frozen=True)
class Groups:
    """All places where something was measured, in the order of the declaration."""

    budget: Budget
    rows: tuple[dict[str, Any], ...]  # one per point and seed: factors and measures

    @cached_property
    def all(self) -> list[Group]:
        """The places, without those that only time others."""
        return [group for group in self._places if group["measurement"] != "speed"]

    @cached_property
    def timings(self) -> dict[tuple[Any, ...], float]:
        """The seconds of an epoch of each arm that was timed in turns with others."""
        timed = [group for group in self._places if group["measurement"] == "speed"]
        return {tuple(group[name] for name in ARM): group.only("seconds") for group in timed}

    @cached_property
    def _places(self) -> list[Group]:
        found: dict[str, Group] = {}
        for row in self.rows:
            factors = {name: value for name, value in row["factors"].items() if name != "seed"}
            group = found.setdefault(repr(factors), Group(factors, {}, self))
            for name, value in row["measures"].items():
                group.values.setdefault(name, []).append(value)
        return list(found.values())

    def __iter__(self) -> Iterator[Group]:
        return iter(self.all)

    def where(self, **factors: Any) -> list[Group]:
        """Return the places that have these factors."""
        return [g for g in self if all(g[name] == value for name, value in factors.items())]

    def one(self, **factors: Any) -> Group | None:
        """Return the first place that has these factors."""
        return next(iter(self.where(**factors)), None)

    def distinct(self, name: str) -> list[Any]:
        """Return the values of a factor, in the order they come."""
        return list(dict.fromkeys(g[name] for g in self if g[name] is not None))


def gathered(budget: Budget, done: Sequence[tuple[Point, dict[str, Any]]]) -> Groups:
    """Return points with their results as groups."""
    return Groups(budget, tuple(row for point, result in done for row in _rows(budget, point, result)))


def _rows(budget: Budget, point: Point, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the row of a point; a job that times all arms has one for each of them."""
    kind, settings = point.job.kind, point.job.settings
    if kind == "speed":
        for smoothing, batch_size in budget.arms:
            seconds = statistics.median(result["epochs"][arm_name(smoothing, batch_size)])
            arm = {"smoothing": smoothing, "batch_size": batch_size}
            measures = {"seed_of": 0, "seconds": seconds, "variant": result["variant"]}
            yield {"factors": point.factors | arm, "measures": measures}
        return
    factors = dict(point.factors)
    if kind in ("train", "memory"):
        factors |= {name: settings[name] for name in ("epochs", "lr")}
    measures = _MEASURES.get(kind, _as_it_is)(result)
    yield {"factors": factors, "measures": {"seed_of": point.factors.get("seed"), **measures}}


def _of_training(result: dict[str, Any]) -> dict[str, Any]:
    """Return what was measured of a run; as TGL does, AP is the mean over batches of the training's size."""
    history, further, labels = result["history"], result["evaluations"], result["labels"]
    told = {} if labels is None else labels.get("test", {})
    batches = -(-result["train_events"] // result["step_size"])
    names = {
        "ap": ("test, batch", "ap_batches"),
        "auc": ("test, batch", "auc_batches"),
        "ap_200": ("test, 200", "ap"),
        "ap_destinations": ("test, 200, destinations", "ap"),
        "ap_live": ("test, batch, live", "ap_batches"),
        "ap_200_live": ("test, 200, live", "ap"),
    }
    return {name: further.get(part, {}).get(metric) for name, (part, metric) in names.items()} | {
        "val_ap": result["val"]["ap_batches"],
        "first_ap": history[0]["val"]["ap_batches"],
        "last_ap": history[-1]["val"]["ap_batches"],
        "best_epoch": result["best_epoch"],
        "seconds": result["seconds_per_epoch"],
        "train_events": result["train_events"],
        "iteration": [batches * epoch["epoch"] for epoch in history],
        "val_ap_of_epoch": [epoch["val"]["ap_batches"] for epoch in history],
        **{name: history[-1]["memory"].get(name) for name in ("gain", "movement", "coherence")},
        "label_auc": told.get("auc"),
        "positives": told.get("positives"),
        "variant": result["variant"],
    }


def _of_memory(result: dict[str, Any]) -> dict[str, Any]:
    peak = result["peak_bytes"]
    return {"peak": None if peak is None else peak / MEBI, "variant": result["variant"]}


def _as_it_is(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("seconds", "environment")}


_MEASURES = {"train": _of_training, "memory": _of_memory}
