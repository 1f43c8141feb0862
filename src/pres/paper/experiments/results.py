"""What was measured at the points of an experiment: a frame of all seeds, and the places of its grid."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import polars as pl

from pres.paper.experiments import paper
from pres.paper.experiments.budget import Budget
from pres.paper.experiments.job import Point, arm_name
from pres.paper.experiments.table import Spread

MEBI = 2**20
ARM = ("dataset", "model", "smoothing", "batch_size")
_PLACE: dict[str, Any] = {
    **dict.fromkeys(("measurement", "dataset", "model", "smoothing"), pl.String),
    **dict.fromkeys(("batch_size", "step_size", "epochs"), pl.Int64),
    **dict.fromkeys(("lr", "beta"), pl.Float64),
}
_APS = ("ap", "ap_200", "ap_destinations", "ap_live", "ap_200_live", "val_ap", "first_ap", "last_ap")
_PERCENT = (*_APS, "label_auc")
_MEASURES = (*_PERCENT, "best_epoch", "gain", "movement", "peak", "seconds")
_COUNTS = ("nodes", "events", "edge_features", "positives")  # which seeds do not change
_SCHEMA: dict[str, Any] = {
    **_PLACE,
    "seed": pl.Int64,
    **dict.fromkeys(_MEASURES, pl.Float64),
    **dict.fromkeys(_COUNTS, pl.Int64),
    "variant": pl.String,
    "iteration": pl.List(pl.Int64),
    "val_ap_of_epoch": pl.List(pl.Float64),
}
_OTHERWISE_THE_SAME = ("dataset", "model", "lr", "epochs")

Place = dict[str, Any]  # a place of the grid: its factors, and the `Spread` over seeds of each measure


@dataclass(frozen=True, eq=False)
class Results:
    """All points of an experiment that have a result, in the order of the declaration."""

    budget: Budget
    rows: tuple[dict[str, Any], ...]  # one per point and seed: factors and measures

    @cached_property
    def frame(self) -> pl.DataFrame:
        """One row per point and seed; AP and AUC in per cent, and what they have more than others.

        ``ap_against_small`` is AP less that of the smaller batch of the pair without PRES, seed by seed, and
        ``ap_against_same`` AP less that of the same batch without PRES. ``seconds`` are those that were timed
        in turns with other arms, if any were.
        """
        measured = [row["measures"] | row["factors"] for row in self.rows]
        whole = pl.from_dicts(measured, schema=_SCHEMA).with_columns(pl.col(_PERCENT) * 100)
        timed = whole.filter(measurement="speed")
        found = whole.filter(pl.col("measurement").ne_missing("speed"))
        if len(timed):
            found = _join(found.drop("seconds"), timed.select(*ARM, "seconds"), ARM)
        off = found.filter(pl.col("step_size").is_null(), smoothing="off")
        small, seeded = off.filter(batch_size=self.budget.small), (*_OTHERWISE_THE_SAME, "seed")
        for name, others, by in (("small", small, seeded), ("same", off, (*seeded, "batch_size"))):
            theirs = others.select(*by, pl.col(_MEASURES).name.suffix(f"_{name}"))
            found = _join(found, theirs, by).with_columns(
                (pl.col(measure) - pl.col(f"{measure}_{name}")).alias(f"{measure}_against_{name}")
                for measure in _MEASURES
            )
        mean = pl.col("seconds").mean()
        slow = small.group_by(*_OTHERWISE_THE_SAME).agg(mean.alias("seconds_slow"))
        return _join(found, slow, _OTHERWISE_THE_SAME).with_columns(
            ap_live_against_same=pl.col("ap_live") - pl.col("ap_same"),  # without PRES nothing is live
            speed_up=pl.col("seconds_slow") / mean.over(*_PLACE),
        )

    @cached_property
    def places(self) -> list[Place]:
        """The places of the grid, with what the paper prints of them."""
        if not self.rows:
            return []
        numbers = [
            name for name, kind in self.frame.schema.items() if kind == pl.Float64 and name not in _PLACE
        ]
        spreads = [
            pl.struct(mean=pl.col(name).mean(), std=pl.col(name).std(), count=pl.col(name).count()).alias(
                name
            )
            for name in numbers
        ]
        gathered = self.frame.group_by(*_PLACE, maintain_order=True).agg(
            pl.col(*_COUNTS, "variant", "iteration").first(), "val_ap_of_epoch", *spreads, seeds=pl.len()
        )
        return [self._place(row, numbers) for row in gathered.iter_rows(named=True)]

    def _place(self, row: dict[str, Any], numbers: Sequence[str]) -> Place:
        spreads = {name: Spread(**row[name]) if row[name]["count"] else None for name in numbers}
        small, large = self.budget.pair
        off = row["smoothing"] == "off"
        table = paper.printed(row["dataset"], row["model"], pres=not off)
        # The paper's cell stands beside the smaller batch without PRES and the larger one with it.
        beside = table if row["batch_size"] == (small if off else large) else None
        cells = {
            f"paper_{name}": getattr(beside, name, None) for name in ("ap", "auc", "speed_up", "seconds")
        }
        counts = paper.DATASETS.get(row["dataset"], (None, None, None))
        cells |= dict(zip(("paper_nodes", "paper_events", "paper_edge_features"), counts, strict=True))
        cells |= {"paper_change": paper.ap_change(row["dataset"], row["model"])}
        return row | spreads | cells | {"table_ap": getattr(table, "ap", None)}

    def where(self, **factors: Any) -> list[Place]:
        """Return the places that have these factors."""
        return [
            place for place in self.places if all(place[name] == value for name, value in factors.items())
        ]

    def means(self, measure: str, **factors: Any) -> list[float]:
        """Return the mean over seeds of a measure, at each place with these factors that has it."""
        found = [place[measure] for place in self.where(**factors)]
        return [spread.mean for spread in found if spread is not None]

    def distinct(self, name: str) -> list[Any]:
        """Return the values of a factor, in the order they come."""
        return list(dict.fromkeys(place[name] for place in self.places if place[name] is not None))

    def pairs(self) -> list[tuple[str, str, list[Place]]]:
        """Return every dataset and model with its places."""
        pairs = [
            (d, m, self.where(dataset=d, model=m))
            for d in self.distinct("dataset")
            for m in self.distinct("model")
        ]
        return [pair for pair in pairs if pair[-1]]


def _join(frame: pl.DataFrame, other: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Return a frame with the columns of the first row of another that agrees."""
    first = other.unique(by, keep="first", maintain_order=True)
    return frame.join(first, on=by, how="left", nulls_equal=True, maintain_order="left")


def gathered(budget: Budget, done: Sequence[tuple[Point, dict[str, Any]]]) -> Results:
    """Return points with what their jobs found."""
    return Results(budget, tuple(row for point, result in done for row in _rows(budget, point, result)))


def _rows(budget: Budget, point: Point, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the row of a point; a job that times all arms has one for each of them."""
    kind, settings = point.job.kind, point.job.settings
    if kind == "speed":
        for smoothing, batch_size in budget.arms:
            seconds = statistics.median(result["epochs"][arm_name(smoothing, batch_size)])
            arm = {"smoothing": smoothing, "batch_size": batch_size}
            measures = {"seconds": seconds, "variant": result["variant"]}
            yield {"factors": point.factors | arm, "measures": measures}
        return
    factors = dict(point.factors)
    if kind in ("train", "memory"):
        factors |= {name: settings[name] for name in ("epochs", "lr")}
    yield {"factors": factors, "measures": _measures(kind, result)}


def _measures(kind: str, result: dict[str, Any]) -> dict[str, Any]:
    if kind == "train":
        return _of_training(result)
    if kind == "memory":
        peak = result["peak_bytes"]
        return {"peak": None if peak is None else peak / MEBI, "variant": result["variant"]}
    return {name: value for name, value in result.items() if name not in ("seconds", "environment")}


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
