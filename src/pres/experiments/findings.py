"""What the numbers of an experiment come to, in a sentence or two that are made from them."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from pres.experiments import paper
from pres.experiments.compared import added, lost, speed_up
from pres.experiments.groups import Group, Groups
from pres.experiments.table import signed


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
                    f"changes AP by {signed(-fmean(losses))} points at a speed-up of {fmean(speeds):.2f}, "
                    f"{_averaged(losses)}."
                )
    printed = paper.trade_offs()
    lines.append(
        f"The paper's Table 1: AP {signed(-fmean(p[3] for p in printed))} points at a speed-up of "
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
                f"{signed(falls['off'])} points without and by {signed(falls['PRES'])} with PRES, on "
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
        said = []
        for way in ("S", "V", "PRES"):
            changes = _known([added(g, groups, "ap", 100) for g in groups.where(reading=reading, way=way)])
            said += [f"{way} {signed(fmean(changes))}"] if changes else []
        if said:
            lines.append(
                f"{_reading(reading, groups)}: AP minus that without PRES, in points: {', '.join(said)}."
            )
    return lines


def of_efficiency(groups: Groups) -> list[str]:
    """Return by how much PRES changes AP on validation after the first epoch, and at its best."""
    lines = []
    for reading in groups.distinct("reading"):
        own = groups.where(reading=reading, way="PRES")
        first = _known([added(g, groups, "first_ap", 100) for g in own])
        best = _known([added(g, groups, "val_ap", 100) for g in own])
        if first and best:
            lines.append(
                f"{_reading(reading, groups)}: PRES changes validation AP by {signed(fmean(first))} points "
                f"after epoch 1, and by {signed(fmean(best))} at its best, {_averaged(best)}."
            )
    return lines


def of_extended(groups: Groups) -> list[str]:
    """Return how the gap between the larger batch with PRES and the smaller without goes with the epochs."""
    lines = []
    small, large = groups.size.pair
    for reading in groups.distinct("reading"):
        own = groups.where(reading=reading, way="PRES", batch_size=large)
        first, last = (_known([lost(g, groups, name) for g in own]) for name in ("first_ap", "last_ap"))
        if first and last:
            lines.append(
                f"{_reading(reading, groups)}: b = {large:,} with PRES against b = {small:,} without changes "
                f"validation AP by {signed(-fmean(first))} points after epoch 1, and by "
                f"{signed(-fmean(last))} after epoch {own[0]['epochs']}, {_averaged(last)}."
            )
    return lines


def of_classification(groups: Groups) -> list[str]:
    """Return what the larger batch with PRES does to ROC-AUC, beside the paper's mean."""
    lines = []
    small, large = groups.size.pair
    for reading in groups.distinct("reading"):
        own = groups.where(reading=reading, way="PRES", batch_size=large)
        losses = _known([lost(g, groups, "label_auc") for g in own])
        if losses:
            lines.append(
                f"{_reading(reading, groups)}: b = {large:,} with PRES against b = {small:,} without changes "
                f"ROC-AUC by {signed(-fmean(losses))} points, {_averaged(losses)}."
            )
    printed = paper.classification_changes()
    lines.append(
        f"The paper's Table 2: ROC-AUC {signed(fmean(printed))} points, on average over its "
        f"{len(printed)} pairs."
    )
    return lines


def of_betas(groups: Groups) -> list[str]:
    """Return which β is best on validation, for each reading."""
    lines = []
    for reading in groups.distinct("reading"):
        best = []
        for dataset in groups.distinct("dataset"):
            own = groups.where(reading=reading, dataset=dataset)
            top = max(own, key=lambda group: group.mean("val_ap") or 0)
            best.append(f"β = {top['beta']:g} on {dataset}")
        lines.append(f"{_reading(reading, groups)}: the best validation AP is that of {', '.join(best)}.")
    return lines


def of_memory(groups: Groups) -> list[str]:
    """Return what PRES takes at each batch size."""
    said = []
    for size in groups.distinct("batch_size"):
        more = _known([added(g, groups, "peak") for g in groups.where(way="PRES", batch_size=size)])
        said += [f"{signed(fmean(more), 0)} MiB at b = {size:,}"] if more else []
    return [f"PRES adds to the peak of a process, on average over models: {', '.join(said)}."] if said else []


def of_datasets(groups: Groups) -> list[str]:
    """Return whether the counts are the paper's."""
    known = [group for group in groups if group["dataset"] in paper.DATASETS]
    same, other = [], []
    for group in known:
        name, features = group["dataset"], group.only("edge_features")
        nodes, events, theirs = paper.DATASETS[name]
        same += [name] if (group.only("nodes"), group.only("events")) == (nodes, events) else []
        other += [f"{name} has {features}, the paper's {theirs}"] if features != theirs else []
    lines = [f"Vertices and edges are the paper's for: {', '.join(same)}."] if same else []
    return lines + ([f"Edge features: {'; '.join(other)}."] if other else [])


def _change(own: list[Group]) -> float | None:
    """Return AP at the largest batch less that at the smallest, in points."""
    if len(own) < 2:
        return None
    ordered = sorted(own, key=lambda group: int(group["batch_size"]))
    first, last = ordered[0].mean("ap", 100), ordered[-1].mean("ap", 100)
    return None if first is None or last is None else last - first


def _averaged(values: list[float]) -> str:
    """Return over how many pairs of model and dataset a mean is taken."""
    return f"on average over {len(values)} pair{'s' if len(values) > 1 else ''}"


def _known(values: list[Any]) -> list[float]:
    return [float(value) for value in values if value is not None]


def _reading(reading: str, groups: Groups) -> str:
    return "Step = batch" if reading == "one number" else f"Step = {groups.size.step}"
