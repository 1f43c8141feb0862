"""What was measured at the points of an experiment, the seeds of each gathered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pres.experiments.declaration import Point
from pres.experiments.size import Size
from pres.experiments.table import Spread

MEBI = 2**20


@dataclass(frozen=True)
class Group:
    """One place of the grid without its seed, and each measure of it, seed by seed."""

    factors: dict[str, Any]
    values: dict[str, list[Any]]

    def __getitem__(self, name: str) -> Any:
        """Return a factor, or None where there is none of that name."""
        return self.factors.get(name)

    def spread(self, name: str, scale: float = 1.0) -> Spread | None:
        """Return the spread of a measure over the seeds."""
        values = self.values.get(name, [])
        return Spread.of([None if value is None else scale * value for value in values])

    def mean(self, name: str, scale: float = 1.0) -> float | None:
        """Return the mean of a measure over the seeds."""
        found = self.spread(name, scale)
        return None if found is None else found.mean

    def only(self, name: str) -> Any:
        """Return a measure that seeds do not change."""
        return self.values.get(name, [None])[0]


@dataclass(frozen=True)
class Groups:
    """All places where something was measured, in the order of the declaration."""

    size: Size
    rows: tuple[dict[str, Any], ...]  # one per point and seed: factors and measures

    @cached_property
    def all(self) -> list[Group]:
        """The places."""
        found: dict[str, Group] = {}
        for row in self.rows:
            factors = {name: value for name, value in row["factors"].items() if name != "seed"}
            group = found.setdefault(repr(factors), Group(factors, {}))
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


def gathered(size: Size, done: Sequence[tuple[Point, dict[str, Any]]]) -> Groups:
    """Return points with their results as groups."""
    return Groups(size, tuple(_row(point, result) for point, result in done))


def _row(point: Point, result: dict[str, Any]) -> dict[str, Any]:
    factors = dict(point.factors)
    settings = point.job.settings.get("train", point.job.settings)
    factors |= {name: settings[name] for name in ("step_size", "epochs") if name in settings}
    return {"factors": factors, "measures": _MEASURES.get(point.job.kind, _as_it_is)(result)}


def _of_training(result: dict[str, Any]) -> dict[str, Any]:
    history = result["history"]
    batches = -(-result["train_events"] // result["step_size"])
    return {
        "ap": result["test"]["ap"],
        "auc": result["test"]["auc"],
        "ap_batches": result["test"]["ap_batches"],
        "val_ap": result["val"]["ap"],
        "first_ap": history[0]["val"]["ap"],
        "last_ap": history[-1]["val"]["ap"],
        "best_epoch": result["best_epoch"],
        "seconds": result["seconds_per_epoch"],
        "train_events": result["train_events"],
        "iteration": [batches * epoch["epoch"] for epoch in history],
        "val_ap_of_epoch": [epoch["val"]["ap"] for epoch in history],
        "gain": history[-1]["memory"].get("gain"),
        "movement": history[-1]["memory"].get("movement"),
        "variant": result["variant"],
    }


def _of_classification(result: dict[str, Any]) -> dict[str, Any]:
    test = result["test"]
    return {
        "label_auc": test["auc"],
        "positives": test["positives"],
        "label_events": test["events"],
        "variant": result["variant"],
    }


def _of_memory(result: dict[str, Any]) -> dict[str, Any]:
    peak = result["peak_bytes"]
    return {"peak": None if peak is None else peak / MEBI, "variant": result["variant"]}


def _as_it_is(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("seconds", "environment")}


_MEASURES = {"train": _of_training, "classify": _of_classification, "memory": _of_memory}
