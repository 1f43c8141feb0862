"""What the paper prints: PRES, ICLR 2024, by the tables of its source.

The plots of its figures are not in the source and no number of them is printed, so there is none here.
"""

from __future__ import annotations

from dataclasses import dataclass

from pres.paper.experiments.budget import PAPER_SEEDS
from pres.paper.experiments.table import Spread


@dataclass(frozen=True)
class Printed:
    """A cell of Table 1, and that of Table 2 if there is one."""

    ap: Spread
    speed_up: float
    seconds: float  # for one epoch, on one of four V100
    auc: Spread | None


# Vertices, edges and edge features of its datasets, in the order of its tables.
DATASETS = {
    "reddit": (10_984, 672_447, 172),
    "wikipedia": (9_227, 157_474, 172),
    "mooc": (7_144, 411_749, 0),
    "lastfm": (1_980, 1_293_103, 0),
    "gdelt": (16_682, 1_912_909, 186),
}

# AP (%), its standard deviation, speed-up, seconds per epoch; by model, "off" or "PRES", and dataset.
_TABLE_1 = """
tgn off     98.4 0.1 1 321    97.8 0.1 1 87     98.8 0.2 1 212    72.1 1.0 1 648    96.8 0.1 1 1325
tgn PRES    98.0 0.2 3.4 94   97.5 0.3 3.2 27   97.5 0.1 3.0 71   71.2 1.5 2.8 231  96.0 0.1 2.7 491
jodie off   96.6 0.1 1 271    94.7 0.1 1 62     98.0 0.1 1 152    75.2 1.5 1 452    95.1 0.1 1 1123
jodie PRES  95.8 0.2 3.1 87   94.4 0.1 2.4 26   98.1 0.2 2.6 58   73.2 1.6 1.9 237  94.3 0.1 2.8 401
apan off    98.6 0.1 1 281    99.0 0.1 1 71     98.5 0.1 1 173    69.8 1.6 1 521    96.7 0.2 1 1215
apan PRES   98.2 0.1 2.2 127  98.5 0.1 2.9 24   98.0 0.1 2.0 86   67.9 1.9 1.8 289  96.0 0.3 2.4 506
"""

# ROC-AUC (%) of node classification and its standard deviation, on the first three of the datasets.
_TABLE_2 = """
tgn off     65.6 0.8  86.8 1.5  57.8 2.3
tgn PRES    65.0 1.2  84.7 1.8  56.9 3.3
jodie off   60.6 3.1  85.2 1.5  66.5 2.0
jodie PRES  60.9 3.5  85.0 1.4  66.0 1.7
apan off    64.3 1.4  90.0 1.7  63.5 2.6
apan PRES   64.5 1.2  88.6 2.1  65.5 3.6
"""

# Drawn beside PRES in the figure of the trade-off; where they lie is not printed.
OTHER_METHODS = ("PipeGCN", "SAPipe", "Sancus", "AdaQP", "FastGCN")


def _cells(table: str, width: int) -> dict[tuple[str, str, str], tuple[float, ...]]:
    """Return the numbers of every cell, by dataset, model, and "off" or "PRES"."""
    found = {}
    for line in table.strip().splitlines():
        model, pres, *words = line.split()
        numbers = [float(word) for word in words]
        for dataset, i in zip(DATASETS, range(0, len(numbers), width), strict=False):
            found[dataset, model, pres] = tuple(numbers[i : i + width])
    return found


def _spread(mean: float, std: float) -> Spread:
    """Return a cell in percent, as printed: mean and standard deviation over the paper's trials."""
    return Spread(mean, std, PAPER_SEEDS, printed=True)


_AUCS = {place: _spread(*cell) for place, cell in _cells(_TABLE_2, 2).items()}
PRINTED = {
    place: Printed(_spread(mean, std), speed_up, seconds, _AUCS.get(place))
    for place, (mean, std, speed_up, seconds) in _cells(_TABLE_1, 4).items()
}
PAIRS = [(dataset, model) for dataset, model, pres in PRINTED if pres == "PRES"]


def printed(dataset: str, model: str, pres: bool) -> Printed | None:
    """Return the cells of a dataset and a model, with PRES at the larger batch or without at the smaller."""
    return PRINTED.get((dataset, model, "PRES" if pres else "off"))


def ap_change(dataset: str, model: str) -> float | None:
    """Return what PRES at the larger batch changes in Table 1, in points of AP."""
    after, before = (printed(dataset, model, pres) for pres in (True, False))
    return None if after is None or before is None else after.ap.mean - before.ap.mean


def auc_changes() -> list[float]:
    """Return by how many points ROC-AUC changes with PRES, for every pair of cells of Table 2."""
    places = [(d, m) for d, m, pres in _AUCS if pres == "PRES"]
    return [_AUCS[*place, "PRES"].mean - _AUCS[*place, "off"].mean for place in places]


def trade_offs() -> list[tuple[float, float]]:
    """Return speed-up and AP lost (in points) of every pair of cells of Table 1."""
    return [(PRINTED[d, m, "PRES"].speed_up, -(ap_change(d, m) or 0.0)) for d, m in PAIRS]
