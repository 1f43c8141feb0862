"""What the numbers of an experiment come to, in a sentence or two that are made from them."""

from __future__ import annotations

from collections.abc import Callable
from statistics import fmean
from typing import Any

from pres.experiments import paper
from pres.experiments.compared import added, lost, speed_up
from pres.experiments.groups import Group, Groups
from pres.experiments.table import signed


def of_table_1(groups: Groups) -> list[str]:
    """Return what the larger batch with PRES gains in time and loses in AP, beside the paper's means."""
    large = groups.size.pair[1]

    def said(reading: str, way: str) -> str:
        own = groups.where(reading=reading, way=way, batch_size=large)
        speeds = _known([speed_up(g, groups) for g in own])
        losses = _known([lost(g, groups) for g in own])
        if not (speeds and losses):
            return ""
        return (
            f"{_against(groups, way)} changes AP by {signed(-fmean(losses))} points at a speed-up of "
            f"{fmean(speeds):.2f}, {_averaged(losses)}."
        )

    printed = paper.trade_offs()
    return [
        *_each_reading(groups, lambda reading: [said(reading, "PRES"), said(reading, "off")]),
        f"The paper's Table 1: AP {signed(-fmean(p[3] for p in printed))} points at a speed-up of "
        f"{fmean(p[2] for p in printed):.2f}, on average over its {len(printed)} pairs.",
    ]


def of_batch_sizes(groups: Groups) -> list[str]:
    """Return how far AP falls from the smallest to the largest batch, with and without PRES."""
    sizes = groups.distinct("batch_size")

    def change(reading: str, way: str) -> list[float]:
        return _known(
            [
                _change(groups.where(reading=reading, way=way, dataset=dataset, model=model))
                for dataset in groups.distinct("dataset")
                for model in groups.distinct("model")
            ]
        )

    def said(reading: str) -> list[str]:
        off, with_pres = change(reading, "off"), change(reading, "PRES")
        if not (off and with_pres):
            return []
        return [
            f"from b = {min(sizes):,} to {max(sizes):,} AP changes by {signed(fmean(off))} points without "
            f"and by {signed(fmean(with_pres))} with PRES, on average."
        ]

    return _each_reading(groups, said)


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

    def said(reading: str) -> list[str]:
        parts = []
        for way in ("S", "V", "PRES"):
            changes = _known([added(g, groups, "ap", 100) for g in groups.where(reading=reading, way=way)])
            parts += [f"{way} {signed(fmean(changes))}"] if changes else []
        return [f"AP minus that without PRES, in points: {', '.join(parts)}."] if parts else []

    return _each_reading(groups, said)


def of_efficiency(groups: Groups) -> list[str]:
    """Return by how much PRES changes AP on validation after the first epoch, and at its best."""

    def said(reading: str) -> list[str]:
        own = groups.where(reading=reading, way="PRES")
        first = _known([added(g, groups, "first_ap", 100) for g in own])
        best = _known([added(g, groups, "val_ap", 100) for g in own])
        if not (first and best):
            return []
        return [
            f"PRES changes validation AP by {signed(fmean(first))} points after epoch 1, and by "
            f"{signed(fmean(best))} at its best, {_averaged(best)}."
        ]

    return _each_reading(groups, said)


def of_extended(groups: Groups) -> list[str]:
    """Return how the gap between the larger batch with PRES and the smaller without goes with the epochs."""

    def said(reading: str) -> list[str]:
        own = groups.where(reading=reading, way="PRES", batch_size=groups.size.pair[1])
        first, last = (_known([lost(g, groups, name) for g in own]) for name in ("first_ap", "last_ap"))
        if not (first and last):
            return []
        return [
            f"{_against(groups)} changes validation AP by {signed(-fmean(first))} points after epoch 1, and "
            f"by {signed(-fmean(last))} after epoch {own[0]['epochs']}, {_averaged(last)}."
        ]

    return _each_reading(groups, said)


def of_classification(groups: Groups) -> list[str]:
    """Return what the larger batch with PRES does to ROC-AUC, beside the paper's mean."""

    def said(reading: str) -> list[str]:
        own = groups.where(reading=reading, way="PRES", batch_size=groups.size.pair[1])
        losses = _known([lost(g, groups, "label_auc") for g in own])
        change = f"{signed(-fmean(losses))} points, {_averaged(losses)}" if losses else ""
        return [f"{_against(groups)} changes ROC-AUC by {change}."] if losses else []

    printed = paper.classification_changes()
    means = f"ROC-AUC {signed(fmean(printed))} points, on average over its {len(printed)} pairs"
    return [*_each_reading(groups, said), f"The paper's Table 2: {means}."]


def of_betas(groups: Groups) -> list[str]:
    """Return which β is best on validation, for each reading."""

    def said(reading: str) -> list[str]:
        best = []
        for dataset in groups.distinct("dataset"):
            own = groups.where(reading=reading, dataset=dataset)
            if own:
                top = max(own, key=lambda group: group.mean("val_ap") or 0)
                best.append(f"β = {top['beta']:g} on {dataset}")
        return [f"the best validation AP is that of {', '.join(best)}."]

    return _each_reading(groups, said)


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


def _each_reading(groups: Groups, said: Callable[[str], list[str]]) -> list[str]:
    """Return what is said of each reading, with the reading's name before it."""
    names = {"one number": "Step = batch", "two numbers": f"Step = {groups.size.step}"}
    return [
        f"{names[reading]}: {line}"
        for reading in groups.distinct("reading")
        for line in said(reading)
        if line
    ]


def _against(groups: Groups, way: str = "PRES") -> str:
    """Return which two places of the pair are compared, in words."""
    small, large = groups.size.pair
    name = "with PRES" if way == "PRES" else "without PRES"
    return f"b = {large:,} {name} against b = {small:,} without"
