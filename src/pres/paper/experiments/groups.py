"""What was measured at the points of an experiment, the seeds of each gathered."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pres.paper.experiments.declaration import Point
from pres.paper.experiments.size import Size
from pres.paper.experiments.table import Spread

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
        """The places, without those that only time others."""
        return [group for group in self._places if group["measurement"] != "speed"]

    @cached_property
    def timings(self) -> dict[tuple[str, str], dict[str, float]]:
        """The seconds of an epoch of each arm, by dataset and model, where arms were timed in turns."""
        timed = [group for group in self._places if group["measurement"] == "speed"]
        return {(group["dataset"], group["model"]): group.only("seconds_of_arm") for group in timed}

    @cached_property
    def _places(self) -> list[Group]:
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
    if point.job.kind in ("train", "memory"):
        factors |= {name: point.job.settings[name] for name in ("epochs", "lr")}
    measures = _MEASURES.get(point.job.kind, _as_it_is)(result)
    return {"factors": factors, "measures": {"seed_of": point.factors.get("seed"), **measures}}


def _of_training(result: dict[str, Any]) -> dict[str, Any]:
    """Return what was measured of a run: AP by TGL's way is the mean over batches of the training's size."""
    history, further, labels = result["history"], result["evaluations"], result["labels"]
    told = {} if labels is None else labels.get("test", {})
    batches = -(-result["train_events"] // result["step_size"])

    def of(name: str, metric: str) -> float | None:
        found: float | None = further.get(name, {}).get(metric)
        return found

    return {
        "ap": of("test, batch", "ap_batches"),
        "auc": of("test, batch", "auc_batches"),
        "ap_200": of("test, 200", "ap"),
        "ap_destinations": of("test, 200, destinations", "ap"),
        "ap_live": of("test, batch, live", "ap_batches"),
        "ap_200_live": of("test, 200, live", "ap"),
        "val_ap": result["val"]["ap_batches"],
        "first_ap": history[0]["val"]["ap_batches"],
        "last_ap": history[-1]["val"]["ap_batches"],
        "best_epoch": result["best_epoch"],
        "seconds": result["seconds_per_epoch"],
        "train_events": result["train_events"],
        "iteration": [batches * epoch["epoch"] for epoch in history],
        "val_ap_of_epoch": [epoch["val"]["ap_batches"] for epoch in history],
        "gain": history[-1]["memory"].get("gain"),
        "movement": history[-1]["memory"].get("movement"),
        "coherence": history[-1]["memory"].get("coherence"),
        "label_auc": told.get("auc"),
        "positives": told.get("positives"),
        "variant": result["variant"],
    }


def _of_memory(result: dict[str, Any]) -> dict[str, Any]:
    peak = result["peak_bytes"]
    return {"peak": None if peak is None else peak / MEBI, "variant": result["variant"]}


def _as_it_is(result: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in result.items() if name not in ("seconds", "environment")}


def _of_speed(result: dict[str, Any]) -> dict[str, Any]:
    medians = {arm: statistics.median(seconds) for arm, seconds in result["epochs"].items()}
    return {"seconds_of_arm": medians, "variant": result["variant"]}


_MEASURES = {"train": _of_training, "memory": _of_memory, "speed": _of_speed}
