"""What the numbers of an experiment come to, in a sentence or two that are made from them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from statistics import fmean

from pres.paper.experiments import paper
from pres.paper.experiments.columns import VARIANT_NAMES
from pres.paper.experiments.results import Group, Groups
from pres.paper.experiments.table import Spread, signed

VARIANTS = ("off", "equations", "algorithm", "ours")


def of_table_1(groups: Groups) -> list[str]:
    """Return what the larger batch changes, without PRES and with each reading of it, beside the paper's."""
    small, large = groups.budget.pair
    lines = []
    for smoothing in VARIANTS:
        own = groups.where(smoothing=smoothing, batch_size=large)
        changes, worth = _each(own, Group.against_small), _each(own, Group.against_same)
        times = _each(own, lambda g: g.speed_up)
        if changes:
            itself = (
                f", {_mean(worth)} against the same batch without" if smoothing != "off" and worth else ""
            )
            fast = f", at a speed-up of {fmean(times):.2f}" if times else ""
            lines.append(
                f"{VARIANT_NAMES[smoothing]} at b = {large:,} against b = {small:,} without PRES: AP "
                f"{_mean(changes)} points{itself}{fast}, {_averaged(changes)}."
            )
    speed_ups, lost = zip(*paper.trade_offs(), strict=True)
    return [
        *lines,
        f"The paper's Table 1: AP {signed(-fmean(lost))} points at a speed-up of {fmean(speed_ups):.2f}, on "
        f"average over its {len(lost)} pairs.",
    ]


def of_rates(groups: Groups) -> list[str]:
    """Return which rate is better on validation, for each model and dataset."""
    chosen = []
    for dataset, model, own in _pairs(groups):
        best = max(own, key=lambda group: group.mean("val_ap") or 0)
        chosen.append(f"{model.upper()} on {dataset} {best['lr']:g}")
    return [f"The better rate on validation: {', '.join(chosen)}."]


def of_steps(groups: Groups) -> list[str]:
    """Return how much of the larger batch's loss is left when its weights move as often as the smaller's."""
    small, large = groups.budget.pair
    whole, left = (
        _each(groups.where(batch_size=large, step_size=step), Group.against_small) for step in (None, small)
    )
    if not (whole and left):
        return []
    return [
        f"b = {large:,} changes AP by {_mean(whole)} points against b = {small:,}, and by {_mean(left)} with "
        f"steps of {small:,}, {_averaged(left)}."
    ]


def of_speed(groups: Groups) -> list[str]:
    """Return the mean speed-up of the larger batch, without PRES and with each reading of it."""
    small, large = groups.budget.pair
    said = []
    for smoothing in VARIANTS:
        times = _each(groups.where(smoothing=smoothing, batch_size=large), lambda g: g.speed_up)
        said += [f"{VARIANT_NAMES[smoothing]} {fmean(times):.2f}"] if times else []
    return [f"Speed-up of b = {large:,} against b = {small:,} without PRES: {', '.join(said)}."]


def of_batch_sizes(groups: Groups) -> list[str]:
    """Return how far AP falls from the smallest to the largest batch, with and without PRES."""
    sizes = groups.distinct("batch_size")

    def changes(smoothing: str) -> list[float]:
        ends = []
        for _, _, own in _pairs(groups):
            found = [group for group in own if group["smoothing"] == smoothing]
            if len(found) > 1:
                ordered = sorted(found, key=lambda group: int(group["batch_size"]))
                ends.append((ordered[0].mean("ap", 100), ordered[-1].mean("ap", 100)))
        return [last - first for first, last in ends if first is not None and last is not None]

    off, smoothed = changes("off"), changes("equations")
    if not (off and smoothed):
        return []
    return [
        f"From b = {min(sizes):,} to {max(sizes):,} AP changes by {_mean(off)} points without and by "
        f"{_mean(smoothed)} with PRES (Eqs. 6–8, 10), on average."
    ]


def of_small_batches(groups: Groups) -> list[str]:
    """Return at which of the small batches each model is best."""
    best: dict[str, list[str]] = {}
    for dataset, model, own in _pairs(groups):
        top = max(own, key=lambda group: group.mean("ap") or 0)
        told = f"{model.upper()} b = {top['batch_size']:,} ({100 * (top.mean('ap') or 0):.1f} %)"
        best.setdefault(dataset, []).append(told)
    return [f"Best on {dataset}: {', '.join(told)}." for dataset, told in best.items()]


def of_parts(groups: Groups) -> list[str]:
    """Return by how much each part of PRES changes AP against training without."""
    parts = []
    for smoothing in ("S", "V", "equations"):
        changes = _each(groups.where(smoothing=smoothing), Group.against_same)
        parts += [f"{VARIANT_NAMES[smoothing]} {_mean(changes)}"] if changes else []
    return [f"AP minus that without PRES, in points: {', '.join(parts)}."] if parts else []


def of_efficiency(groups: Groups) -> list[str]:
    """Return by how much PRES changes AP on validation after the first epoch, and at its best."""
    own = groups.where(smoothing="equations")
    first = _each(own, lambda g: g.against_same("first_ap"))
    best = _each(own, lambda g: g.against_same("val_ap"))
    if not (first and best):
        return []
    return [
        f"PRES (Eqs. 6–8, 10) changes validation AP by {_mean(first)} points after epoch 1, and by "
        f"{_mean(best)} at its best, {_averaged(best)}."
    ]


def of_extended(groups: Groups) -> list[str]:
    """Return how the gap between the larger batch with PRES and the smaller without goes with the epochs."""
    small, large = groups.budget.pair
    own = groups.where(smoothing="equations", batch_size=large)
    first = _each(own, lambda g: g.against_small("first_ap"))
    last = _each(own, lambda g: g.against_small("last_ap"))
    if not (first and last):
        return []
    return [
        f"b = {large:,} with PRES (Eqs. 6–8, 10) against b = {small:,} without changes validation AP by "
        f"{_mean(first)} points after epoch 1, and by {_mean(last)} after epoch {own[0]['epochs']}, "
        f"{_averaged(last)}."
    ]


def of_classification(groups: Groups) -> list[str]:
    """Return what the larger batch with each reading of PRES does to ROC-AUC, beside the paper's mean."""
    small, large = groups.budget.pair
    lines = []
    for smoothing in VARIANTS:
        own = groups.where(smoothing=smoothing, batch_size=large)
        changes = _each(own, lambda g: g.against_small("label_auc"))
        if changes:
            lines.append(
                f"{VARIANT_NAMES[smoothing]} at b = {large:,} against b = {small:,} without PRES: ROC-AUC "
                f"{_mean(changes)} points, {_averaged(changes)}."
            )
    printed = paper.auc_changes()
    return [
        *lines,
        f"The paper's Table 2: ROC-AUC {_mean(printed)} points, on average over its {len(printed)} pairs.",
    ]


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
        own = groups.where(smoothing="equations", batch_size=size)
        more = _each(own, lambda g: g.against_same("peak", 1))
        said += [f"{signed(fmean(more), 0)} MiB at b = {size:,}"] if more else []
    return [f"PRES adds to the peak of a process, on average over models: {', '.join(said)}."] if said else []


def of_datasets(groups: Groups) -> list[str]:
    """Return whether the counts are the paper's."""
    same, other = [], []
    for group in groups:
        if group["dataset"] in paper.DATASETS:
            name, features = group["dataset"], group.only("edge_features")
            nodes, events, theirs = paper.DATASETS[name]
            same += [name] if (group.only("nodes"), group.only("events")) == (nodes, events) else []
            other += [f"{name} has {features}, the paper's {theirs}"] if features != theirs else []
    lines = [f"Vertices and edges are the paper's for: {', '.join(same)}."] if same else []
    return lines + ([f"Edge features: {'; '.join(other)}."] if other else [])


def _pairs(groups: Groups) -> list[tuple[str, str, list[Group]]]:
    """Return every dataset and model with what was measured there."""
    pairs = itertools.product(groups.distinct("dataset"), groups.distinct("model"))
    found = [(*pair, groups.where(dataset=pair[0], model=pair[1])) for pair in pairs]
    return [each for each in found if each[-1]]


def _each(groups: Sequence[Group], of: Callable[[Group], Spread | float | None]) -> list[float]:
    """Return what is known of each place; of a spread its mean."""
    found = [of(group) for group in groups]
    return [value.mean if isinstance(value, Spread) else value for value in found if value is not None]


def _mean(values: Sequence[float]) -> str:
    return signed(fmean(values))


def _averaged(values: Sequence[float]) -> str:
    """Return over how many pairs of model and dataset a mean is taken."""
    return f"on average over {len(values)} pair{'s' if len(values) > 1 else ''}"
