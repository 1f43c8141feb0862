"""What the numbers of an experiment come to, in a sentence or two that are made from them."""

from __future__ import annotations

from statistics import fmean
from typing import Any

from pres.paper.experiments import paper
from pres.paper.experiments.columns import WAY_NAMES
from pres.paper.experiments.compared import against_baseline, against_counterpart, speed_up
from pres.paper.experiments.declaration import arm_name
from pres.paper.experiments.groups import Group, Groups
from pres.paper.experiments.table import Spread, signed

PRES_WAYS = ("equations", "algorithm", "ours")


def of_table_1(groups: Groups) -> list[str]:
    """Return what the larger batch changes, without PRES and with each reading of it, beside the paper's."""
    small, large = groups.size.pair

    def said(way: str) -> str:
        own = groups.where(way=way, batch_size=large)
        changes = _means([against_baseline(g, groups) for g in own])
        worth = _means([against_counterpart(g, groups) for g in own])
        if not changes:
            return ""
        itself = f", {signed(fmean(worth))} against the same batch without" if way != "off" and worth else ""
        times = _known([speed_up(g, groups) for g in own])
        fast = f", at a speed-up of {fmean(times):.2f}" if times else ""
        return (
            f"{WAY_NAMES[way]} at b = {large:,} against b = {small:,} without PRES: AP "
            f"{signed(fmean(changes))} points{itself}{fast}, {_averaged(changes)}."
        )

    printed = paper.trade_offs()
    return [
        *(line for line in map(said, ("off", *PRES_WAYS)) if line),
        f"The paper's Table 1: AP {signed(-fmean(p[3] for p in printed))} points at a speed-up of "
        f"{fmean(p[2] for p in printed):.2f}, on average over its {len(printed)} pairs.",
    ]


def of_rates(groups: Groups) -> list[str]:
    """Return which rate is better on validation, for each model and dataset."""
    chosen = []
    for dataset in groups.distinct("dataset"):
        for model in groups.distinct("model"):
            own = groups.where(dataset=dataset, model=model)
            best = max(own, key=lambda group: group.mean("val_ap") or 0)
            chosen.append(f"{model.upper()} on {dataset} {best['lr']:g}")
    return [f"The better rate on validation: {', '.join(chosen)}."]


def of_steps(groups: Groups) -> list[str]:
    """Return how much of the larger batch's loss is left when its weights move as often as the smaller's."""
    small, large = groups.size.pair
    whole, left = (
        _means([against_baseline(g, groups) for g in groups.where(batch_size=large, step_size=step)])
        for step in (None, small)
    )
    if not (whole and left):
        return []
    return [
        f"b = {large:,} changes AP by {signed(fmean(whole))} points against b = {small:,}, and by "
        f"{signed(fmean(left))} with steps of {small:,}, {_averaged(left)}."
    ]


def of_speed(groups: Groups) -> list[str]:
    """Return the mean speed-up of the larger batch, without PRES and with each reading of it."""
    small, large = groups.size.pair
    said = []
    for way in ("off", *PRES_WAYS):
        timed = [group.only("seconds_of_arm") for group in groups]
        times = [arm[arm_name("off", small)] / arm[arm_name(way, large)] for arm in timed]
        said.append(f"{WAY_NAMES[way]} {fmean(times):.2f}")
    return [f"Speed-up of b = {large:,} against b = {small:,} without PRES: {', '.join(said)}."]


def of_batch_sizes(groups: Groups) -> list[str]:
    """Return how far AP falls from the smallest to the largest batch, with and without PRES."""
    sizes = groups.distinct("batch_size")

    def change(way: str) -> list[float]:
        return _known(
            [
                _change(groups.where(way=way, dataset=dataset, model=model))
                for dataset in groups.distinct("dataset")
                for model in groups.distinct("model")
            ]
        )

    off, smoothed = change("off"), change("equations")
    if not (off and smoothed):
        return []
    return [
        f"From b = {min(sizes):,} to {max(sizes):,} AP changes by {signed(fmean(off))} points without and by "
        f"{signed(fmean(smoothed))} with PRES (Eqs. 6–8, 10), on average."
    ]


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
    parts = []
    for way in ("S", "V", "equations"):
        changes = _means([against_counterpart(g, groups) for g in groups.where(way=way)])
        parts += [f"{WAY_NAMES[way]} {signed(fmean(changes))}"] if changes else []
    return [f"AP minus that without PRES, in points: {', '.join(parts)}."] if parts else []


def of_efficiency(groups: Groups) -> list[str]:
    """Return by how much PRES changes AP on validation after the first epoch, and at its best."""
    own = groups.where(way="equations")
    first = _means([against_counterpart(g, groups, "first_ap") for g in own])
    best = _means([against_counterpart(g, groups, "val_ap") for g in own])
    if not (first and best):
        return []
    return [
        f"PRES (Eqs. 6–8, 10) changes validation AP by {signed(fmean(first))} points after epoch 1, and by "
        f"{signed(fmean(best))} at its best, {_averaged(best)}."
    ]


def of_extended(groups: Groups) -> list[str]:
    """Return how the gap between the larger batch with PRES and the smaller without goes with the epochs."""
    small, large = groups.size.pair
    own = groups.where(way="equations", batch_size=large)
    first, last = (
        _means([against_baseline(g, groups, name) for g in own]) for name in ("first_ap", "last_ap")
    )
    if not (first and last):
        return []
    return [
        f"b = {large:,} with PRES (Eqs. 6–8, 10) against b = {small:,} without changes validation AP by "
        f"{signed(fmean(first))} points after epoch 1, and by {signed(fmean(last))} after epoch "
        f"{own[0]['epochs']}, {_averaged(last)}."
    ]


def of_classification(groups: Groups) -> list[str]:
    """Return what the larger batch with each reading of PRES does to ROC-AUC, beside the paper's mean."""
    small, large = groups.size.pair
    lines = []
    for way in ("off", *PRES_WAYS):
        own = groups.where(way=way, batch_size=large)
        changes = _means([against_baseline(g, groups, "label_auc") for g in own])
        if changes:
            lines.append(
                f"{WAY_NAMES[way]} at b = {large:,} against b = {small:,} without PRES: ROC-AUC "
                f"{signed(fmean(changes))} points, {_averaged(changes)}."
            )
    printed = paper.classification_changes()
    means = f"ROC-AUC {signed(fmean(printed))} points, on average over its {len(printed)} pairs"
    return [*lines, f"The paper's Table 2: {means}."]


def of_betas(groups: Groups) -> list[str]:
    """Return which β is best on validation."""
    best = []
    for dataset in groups.distinct("dataset"):
        top = max(groups.where(dataset=dataset), key=lambda group: group.mean("val_ap") or 0)
        best.append(f"β = {top['beta']:g} on {dataset}")
    return [f"The best validation AP is that of {', '.join(best)}."]


def of_memory(groups: Groups) -> list[str]:
    """Return what PRES takes at each batch size."""
    said = []
    for size in groups.distinct("batch_size"):
        own = groups.where(way="equations", batch_size=size)
        more = _means([against_counterpart(g, groups, "peak", 1) for g in own])
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


def _means(spreads: list[Spread | None]) -> list[float]:
    return [spread.mean for spread in spreads if spread is not None]
