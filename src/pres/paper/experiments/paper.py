"""What the paper prints: PRES, ICLR 2024, by the tables of its source.

The plots of its figures are not in the source and no number of them is printed, so there is none here.
"""

from __future__ import annotations

from dataclasses import dataclass

from pres.paper.experiments.size import PAPER_SEEDS
from pres.paper.experiments.table import Spread


@dataclass(frozen=True)
class Trained:
    """One pair of cells of Table 1."""

    ap: Spread
    speed_up: float
    seconds: int  # for one epoch, on one of four V100


def _printed(mean: float, std: float) -> Spread:
    """Return a cell in percent, as printed: mean and standard deviation over the paper's trials."""
    return Spread(mean, std, PAPER_SEEDS, printed=True)


def _row(*cells: tuple[float, float, float, int]) -> dict[str, Trained]:
    datasets = ("reddit", "wikipedia", "mooc", "lastfm", "gdelt")
    return {
        dataset: Trained(_printed(mean, std), speed_up, seconds)
        for dataset, (mean, std, speed_up, seconds) in zip(datasets, cells, strict=True)
    }


def _labels(*cells: tuple[float, float]) -> dict[str, Spread]:
    return {name: _printed(*cell) for name, cell in zip(("reddit", "wikipedia", "mooc"), cells, strict=True)}


# AP (%), its standard deviation, speed-up, seconds per epoch; by model and way, then by dataset.
TABLE_1 = {
    ("tgn", "off"): _row(
        (98.4, 0.1, 1, 321),
        (97.8, 0.1, 1, 87),
        (98.8, 0.2, 1, 212),
        (72.1, 1.0, 1, 648),
        (96.8, 0.1, 1, 1325),
    ),
    ("tgn", "PRES"): _row(
        (98.0, 0.2, 3.4, 94),
        (97.5, 0.3, 3.2, 27),
        (97.5, 0.1, 3.0, 71),
        (71.2, 1.5, 2.8, 231),
        (96.0, 0.1, 2.7, 491),
    ),
    ("jodie", "off"): _row(
        (96.6, 0.1, 1, 271),
        (94.7, 0.1, 1, 62),
        (98.0, 0.1, 1, 152),
        (75.2, 1.5, 1, 452),
        (95.1, 0.1, 1, 1123),
    ),
    ("jodie", "PRES"): _row(
        (95.8, 0.2, 3.1, 87),
        (94.4, 0.1, 2.4, 26),
        (98.1, 0.2, 2.6, 58),
        (73.2, 1.6, 1.9, 237),
        (94.3, 0.1, 2.8, 401),
    ),
    ("apan", "off"): _row(
        (98.6, 0.1, 1, 281),
        (99.0, 0.1, 1, 71),
        (98.5, 0.1, 1, 173),
        (69.8, 1.6, 1, 521),
        (96.7, 0.2, 1, 1215),
    ),
    ("apan", "PRES"): _row(
        (98.2, 0.1, 2.2, 127),
        (98.5, 0.1, 2.9, 24),
        (98.0, 0.1, 2.0, 86),
        (67.9, 1.9, 1.8, 289),
        (96.0, 0.3, 2.4, 506),
    ),
}

# ROC-AUC (%) of node classification and its standard deviation.
TABLE_2 = {
    ("tgn", "off"): _labels((65.6, 0.8), (86.8, 1.5), (57.8, 2.3)),
    ("tgn", "PRES"): _labels((65.0, 1.2), (84.7, 1.8), (56.9, 3.3)),
    ("jodie", "off"): _labels((60.6, 3.1), (85.2, 1.5), (66.5, 2.0)),
    ("jodie", "PRES"): _labels((60.9, 3.5), (85.0, 1.4), (66.0, 1.7)),
    ("apan", "off"): _labels((64.3, 1.4), (90.0, 1.7), (63.5, 2.6)),
    ("apan", "PRES"): _labels((64.5, 1.2), (88.6, 2.1), (65.5, 3.6)),
}

# Of the table of datasets: vertices, edges, edge features.
DATASETS = {
    "wikipedia": (9_227, 157_474, 172),
    "reddit": (10_984, 672_447, 172),
    "mooc": (7_144, 411_749, 0),
    "lastfm": (1_980, 1_293_103, 0),
    "gdelt": (16_682, 1_912_909, 186),
}

# Drawn beside PRES in the figure of the trade-off; where they lie is not printed.
OTHER_METHODS = ("PipeGCN", "SAPipe", "Sancus", "AdaQP", "FastGCN")


def trained(dataset: str, model: str, way: str) -> Trained | None:
    """Return what Table 1 has of a model on a dataset, without ("off") or with PRES."""
    return TABLE_1.get((model, way), {}).get(dataset)


def classified(dataset: str, model: str, way: str) -> Spread | None:
    """Return what Table 2 has of a model on a dataset."""
    return TABLE_2.get((model, way), {}).get(dataset)


def classification_changes() -> list[float]:
    """Return by how many points ROC-AUC changes with PRES, for every pair of cells of Table 2."""
    return [
        with_pres.mean - TABLE_2[model, "off"][dataset].mean
        for (model, way), row in TABLE_2.items()
        if way == "PRES"
        for dataset, with_pres in row.items()
    ]


def trade_offs() -> list[tuple[str, str, float, float]]:
    """Return dataset, model, speed-up and AP lost (in points) of every pair of rows of Table 1."""
    return [
        (dataset, model, with_pres.speed_up, TABLE_1[model, "off"][dataset].ap.mean - with_pres.ap.mean)
        for (model, way), row in TABLE_1.items()
        if way == "PRES"
        for dataset, with_pres in row.items()
    ]
