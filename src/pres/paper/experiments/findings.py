"""What the numbers of an experiment come to, in a sentence or two that are made from them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from pres.paper.experiments import paper
from pres.paper.experiments.columns import VARIANT_NAMES
from pres.paper.experiments.results import Place, Results
from pres.paper.experiments.table import signed

VARIANTS = ("off", "equations", "algorithm", "ours")


def of_table_1(results: Results) -> list[str]:
    """Return what the larger batch changes, without PRES and with each reading of it, beside the paper's."""
    speed_ups, lost = zip(*paper.trade_offs(), strict=True)
    return [
        *_of_larger_batch(results, "AP", "ap"),
        f"The paper's Table 1: AP {signed(-fmean(lost))} points at a speed-up of {fmean(speed_ups):.2f}, on "
        f"average over its {len(lost)} pairs.",
    ]


def of_classification(results: Results) -> list[str]:
    """Return what the larger batch with each reading of PRES does to ROC-AUC, beside the paper's mean."""
    printed = paper.auc_changes()
    return [
        *_of_larger_batch(results, "ROC-AUC", "label_auc"),
        f"The paper's Table 2: ROC-AUC {_mean(printed)} points, on average over its {len(printed)} pairs.",
    ]


def _of_larger_batch(results: Results, title: str, measure: str) -> list[str]:
    small, large = results.budget.pair
    lines = []
    for smoothing in VARIANTS:
        changes, worth, times = (
            results.means(name, smoothing=smoothing, batch_size=large)
            for name in (f"{measure}_against_small", f"{measure}_against_same", "speed_up")
        )
        if changes:
            itself = (
                f", {_mean(worth)} against the same batch without" if smoothing != "off" and worth else ""
            )
            fast = f", at a speed-up of {fmean(times):.2f}" if times and measure == "ap" else ""
            lines.append(
                f"{VARIANT_NAMES[smoothing]} at b = {large:,} against b = {small:,} without PRES: {title} "
                f"{_mean(changes)} points{itself}{fast}, {_averaged(changes)}."
            )
    return lines


def of_rates(results: Results) -> list[str]:
    """Return which rate is better on validation, for each model and dataset."""
    best = [(dataset, model, _best("val_ap", own)["lr"]) for dataset, model, own in results.pairs()]
    chosen = [f"{model.upper()} on {dataset} {lr:g}" for dataset, model, lr in best]
    return [f"The better rate on validation: {', '.join(chosen)}."]


def of_steps(results: Results) -> list[str]:
    """Return how much of the larger batch's loss is left when its weights move as often as the smaller's."""
    small, large = results.budget.pair
    whole, left = ({"batch_size": large, "step_size": step} for step in (None, small))
    return _told(
        results,
        f"b = {large:,} changes AP by {{}} points against b = {small:,}, and by {{}} with steps of {small:,}",
        ("ap_against_small", whole),
        ("ap_against_small", left),
    )


def of_efficiency(results: Results) -> list[str]:
    """Return by how much PRES changes AP on validation after the first epoch, and at its best."""
    return _told(
        results,
        "PRES (Eqs. 6–8, 10) changes validation AP by {} points after epoch 1, and by {} at its best",
        ("first_ap_against_same", {"smoothing": "equations"}),
        ("val_ap_against_same", {"smoothing": "equations"}),
    )


def of_extended(results: Results) -> list[str]:
    """Return how the gap between the larger batch with PRES and the smaller without goes with the epochs."""
    small, large = results.budget.pair
    own = {"smoothing": "equations", "batch_size": large}
    return _told(
        results,
        f"b = {large:,} with PRES (Eqs. 6–8, 10) against b = {small:,} without changes validation AP by {{}} "
        f"points after epoch 1, and by {{}} after epoch {results.budget.extended_epochs}",
        ("first_ap_against_small", own),
        ("last_ap_against_small", own),
    )


def _told(results: Results, sentence: str, *measures: tuple[str, dict[str, Any]]) -> list[str]:
    """Return a sentence with the mean of each measure over its places, unless one of them has none."""
    found = [results.means(measure, **factors) for measure, factors in measures]
    return [f"{sentence.format(*map(_mean, found))}, {_averaged(found[-1])}."] if all(found) else []


def of_speed(results: Results) -> list[str]:
    """Return the mean speed-up of the larger batch, without PRES and with each reading of it."""
    small, large = results.budget.pair
    times = {one: results.means("speed_up", smoothing=one, batch_size=large) for one in VARIANTS}
    said = [f"{VARIANT_NAMES[smoothing]} {fmean(found):.2f}" for smoothing, found in times.items() if found]
    return [f"Speed-up of b = {large:,} against b = {small:,} without PRES: {', '.join(said)}."]


def of_batch_sizes(results: Results) -> list[str]:
    """Return how far AP falls from the smallest to the largest batch, with and without PRES."""
    sizes = results.distinct("batch_size")
    changes: dict[str, list[float]] = {"off": [], "equations": []}
    for (_, _, own), (smoothing, found) in itertools.product(results.pairs(), changes.items()):
        line = {place["batch_size"]: place["ap"] for place in own if place["smoothing"] == smoothing}
        if len(line) > 1 and None not in (line[min(line)], line[max(line)]):
            found.append(line[max(line)].mean - line[min(line)].mean)
    if not all(changes.values()):
        return []
    return [
        f"From b = {min(sizes):,} to {max(sizes):,} AP changes by {_mean(changes['off'])} points without and "
        f"by {_mean(changes['equations'])} with PRES (Eqs. 6–8, 10), on average."
    ]


def of_small_batches(results: Results) -> list[str]:
    """Return at which of the small batches each model is best."""
    best: dict[str, list[str]] = {}
    for dataset, model, own in results.pairs():
        top = _best("ap", own)
        told = f"{model.upper()} b = {top['batch_size']:,} ({_at('ap', top):.1f} %)"
        best.setdefault(dataset, []).append(told)
    return [f"Best on {dataset}: {', '.join(told)}." for dataset, told in best.items()]


def of_parts(results: Results) -> list[str]:
    """Return by how much each part of PRES changes AP against training without."""
    changes = {one: results.means("ap_against_same", smoothing=one) for one in ("S", "V", "equations")}
    parts = [f"{VARIANT_NAMES[part]} {_mean(found)}" for part, found in changes.items() if found]
    return [f"AP minus that without PRES, in points: {', '.join(parts)}."] if parts else []


def of_betas(results: Results) -> list[str]:
    """Return which β is best on validation."""
    best = [
        f"β = {_best('val_ap', results.where(dataset=dataset))['beta']:g} on {dataset}"
        for dataset in results.distinct("dataset")
    ]
    return [f"The best validation AP is that of {', '.join(best)}."]


def of_memory(results: Results) -> list[str]:
    """Return what PRES takes at each batch size."""
    more = {
        size: results.means("peak_against_same", smoothing="equations", batch_size=size)
        for size in results.distinct("batch_size")
    }
    said = [f"{signed(fmean(found), 0)} MiB at b = {size:,}" for size, found in more.items() if found]
    return [f"PRES adds to the peak of a process, on average over models: {', '.join(said)}."] if said else []


def of_datasets(results: Results) -> list[str]:
    """Return whether the counts are the paper's."""
    known = [place for place in results.places if place["dataset"] in paper.DATASETS]
    same = [
        place["dataset"]
        for place in known
        if all(place[name] == place[f"paper_{name}"] for name in ("nodes", "events"))
    ]
    other = [
        f"{place['dataset']} has {place['edge_features']}, the paper's {place['paper_edge_features']}"
        for place in known
        if place["edge_features"] != place["paper_edge_features"]
    ]
    lines = [f"Vertices and edges are the paper's for: {', '.join(same)}."] if same else []
    return lines + ([f"Edge features: {'; '.join(other)}."] if other else [])


def _best(measure: str, places: Sequence[Place]) -> Place:
    """Return the first of the places with the largest mean."""
    return max(places, key=lambda place: _at(measure, place))


def _at(measure: str, place: Place) -> float:
    return 0.0 if place[measure] is None else float(place[measure].mean)


def _mean(values: Sequence[float]) -> str:
    return signed(fmean(values))


def _averaged(values: Sequence[float]) -> str:
    """Return over how many pairs of model and dataset a mean is taken."""
    return f"on average over {len(values)} pair{'s' if len(values) > 1 else ''}"
