"""What the numbers of an experiment come to, in a sentence or two that are made from them."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from pres.experiments import paper
from pres.experiments.compared import lost, speed_up
from pres.experiments.groups import Group, Groups


def of_table_1(groups: Groups) -> list[str]:
    """Return what the larger batch with PRES gains in time and loses in AP, beside the paper's means."""
    lines = []
    small, large = groups.size.pair
    for reading in groups.distinct("reading"):
        for way, name in (("PRES", "with PRES"), ("off", "without PRES")):
            own = groups.where(reading=reading, way=way, batch_size=large)
            speeds, losses = (
                _known([speed_up(g, groups) for g in own]),
                _known([lost(g, groups) for g in own]),
            )
            if speeds and losses:
                lines.append(
                    f"{_reading(reading, groups)}: b = {large:,} {name} against b = {small:,} without "
                    f"changes AP by {_signed(-fmean(losses))} points at a speed-up of {fmean(speeds):.2f}, "
                    f"on average over {len(losses)} pair{'s' if len(losses) > 1 else ''}."
                )
    printed = paper.trade_offs()
    lines.append(
        f"The paper's Table 1: AP {_signed(-fmean(p[3] for p in printed))} points at a speed-up of "
        f"{fmean(p[2] for p in printed):.2f}, on average over its {len(printed)} pairs."
    )
    return lines


def of_batch_sizes(groups: Groups) -> list[str]:
    """Return how far AP falls from the smallest to the largest batch, with and without PRES."""
    lines = []
    for reading in groups.distinct("reading"):
        falls = {}
        for way in ("off", "PRES"):
            changes = [
                _change(groups.where(reading=reading, way=way, dataset=dataset, model=model))
                for dataset in groups.distinct("dataset")
                for model in groups.distinct("model")
            ]
            known = _known(changes)
            if known:
                falls[way] = fmean(known)
        if len(falls) == 2:
            sizes = groups.distinct("batch_size")
            lines.append(
                f"{_reading(reading, groups)}: from b = {min(sizes):,} to {max(sizes):,} AP changes by "
                f"{_signed(falls['off'])} points without and by {_signed(falls['PRES'])} with PRES, on "
                "average."
            )
    return lines


def of_small_batches(groups: Groups) -> list[str]:
    """Return at which of the small batches each model is best."""
    lines = []
    for dataset in groups.distinct("dataset"):
        best = []
        for model in groups.distinct("model"):
            own = groups.where(dataset=dataset, model=model)
            top = max(own, key=lambda group: group.mean("ap") or 0)
            best.append(f"{model.upper()} b = {top['batch_size']:,} ({100 * (top.mean('ap') or 0):.1f} %)")
        lines.append(f"Best on {dataset}: {', '.join(best)}.")
    return lines


def of_ways(groups: Groups) -> list[str]:
    """Return by how much each part of PRES changes AP against training without."""
    lines = []
    for reading in groups.distinct("reading"):
        changes: dict[str, list[float]] = {}
        for group in groups.where(reading=reading):
            same = {name: group[name] for name in ("dataset", "model", "batch_size")}
            off = groups.one(**same, reading=reading, way="off")
            now, was = group.mean("ap", 100), None if off is None else off.mean("ap", 100)
            if group["way"] != "off" and now is not None and was is not None:
                changes.setdefault(str(group["way"]), []).append(now - was)
        if changes:
            said = ", ".join(f"{way} {_signed(fmean(values))}" for way, values in changes.items())
            lines.append(f"{_reading(reading, groups)}: AP minus that without PRES, in points: {said}.")
    return lines


def of_efficiency(groups: Groups) -> list[str]:
    """Return how far training with PRES is ahead on validation after its first epoch, and at its best."""
    lines = []
    for reading in groups.distinct("reading"):
        ahead: list[tuple[float, float]] = []
        for group in groups.where(reading=reading, way="PRES"):
            same = {name: group[name] for name in ("dataset", "model", "batch_size")}
            off = groups.one(**same, reading=reading, way="off")
            if off is not None:
                first = _first(group) - _first(off)
                ahead.append((first, 100 * ((group.mean("val_ap") or 0) - (off.mean("val_ap") or 0))))
        if ahead:
            first, best = (fmean(values) for values in zip(*ahead, strict=True))
            lines.append(
                f"{_reading(reading, groups)}: with PRES validation AP is {_signed(first)} points ahead "
                f"after epoch 1, and {_signed(best)} at its best, on average over {len(ahead)} models."
            )
    return lines


def _first(group: Group) -> float:
    return 100 * fmean(curve[0] for curve in group.values["val_ap_of_epoch"])


def of_betas(groups: Groups) -> list[str]:
    """Return which β is best on validation, for each reading."""
    lines = []
    for reading in groups.distinct("reading"):
        own = groups.where(reading=reading)
        top = max(own, key=lambda group: group.mean("val_ap") or 0)
        lines.append(f"{_reading(reading, groups)}: the best validation AP is that of β = {top['beta']:g}.")
    return lines


def of_memory(groups: Groups) -> list[str]:
    """Return what PRES takes at the smallest and at the largest batch."""
    found: dict[int, list[float]] = {}
    for group in groups.where(way="PRES"):
        same = {name: group[name] for name in ("dataset", "model", "batch_size", "reading")}
        off = groups.one(**same, way="off")
        now, was = group.mean("peak"), None if off is None else off.mean("peak")
        if now is not None and was is not None:
            found.setdefault(group["batch_size"], []).append(now - was)
    said = ", ".join(f"{_signed(fmean(values), 0)} MiB at b = {size:,}" for size, values in found.items())
    return [f"PRES adds to the peak of a process, on average over models: {said}."] if found else []


def of_datasets(groups: Groups) -> list[str]:
    """Return whether the counts are the paper's."""
    same = [
        str(group["dataset"])
        for group in groups
        if group["dataset"] in paper.DATASETS
        and (group.only("nodes"), group.only("events")) == paper.DATASETS[group["dataset"]][:2]
    ]
    return [f"Vertices and edges are the paper's for: {', '.join(same)}."] if same else []


def _change(own: list[Group]) -> float | None:
    """Return AP at the largest batch less that at the smallest, in points."""
    if len(own) < 2:
        return None
    ordered = sorted(own, key=lambda group: int(group["batch_size"]))
    first, last = ordered[0].mean("ap", 100), ordered[-1].mean("ap", 100)
    return None if first is None or last is None else last - first


def _known(values: list[Any]) -> list[float]:
    return [float(value) for value in values if value is not None]


def _signed(value: float, digits: int = 1) -> str:
    return f"{value:+.{digits}f}".replace("-", "−")


def _reading(reading: str, groups: Groups) -> str:
    return "Step = batch" if reading == "one number" else f"Step = {groups.size.step}"
