"""The columns that tables are declared by: what each is called, and how a cell of it is found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from pres.paper.experiments.results import Place, Results
from pres.paper.experiments.table import Cell, Heading, Spread, Table

VARIANT_NAMES = {
    "off": "without",
    "equations": "Eqs. 6–8, 10",
    "algorithm": "Algorithm 2",
    "ours": "ours",
    "S": "PRES-S (Eq. 10 alone)",
    "V": "PRES-V (Eqs. 6–8 alone)",
}
Of = Callable[[Place], Cell]


class Column(NamedTuple):
    """A heading, and where its cells come from."""

    heading: Heading
    cell: Of


def columns(*chosen: str | Column) -> Callable[[Results], Table]:
    """Return what makes a table of columns, most by name; places that look alike in it are one row."""
    found = [COLUMNS[one] if isinstance(one, str) else one for one in chosen]
    return lambda results: table_of(found, results.places)


def table_of(chosen: Sequence[Column], places: Sequence[Place]) -> Table:
    """Return the table of these columns, one row for each place that does not look like another."""
    rows = dict.fromkeys(tuple(column.cell(place) for column in chosen) for place in places)
    return Table(tuple(column.heading for column in chosen), tuple(rows))


def measure(name: str, title: str, of: str | Of = "", **heading: Any) -> Column:
    """Return a column of a measure, by default the one of its name."""
    return Column(Heading(name, title, **heading), itemgetter(of or name) if isinstance(of, str) else of)


def difference(name: str, title: str, of: str | Of = "", **heading: Any) -> Column:
    """Return the same with signs."""
    return measure(name, title, of, signed=True, **heading)


def _value(cell: Cell) -> Any:
    return cell.mean if isinstance(cell, Spread) else cell


def _mean(name: str) -> Of:
    return lambda place: _value(place[name])


def _less(ours: str, theirs: str) -> Of:
    """Return what finds by how much a value is above another; of a spread its mean."""

    def found(place: Place) -> Cell:
        known = place[ours] is not None and place[theirs] is not None
        return _value(place[ours]) - _value(place[theirs]) if known else None

    return found


def _dataset(place: Place) -> str:
    name, variant = place["dataset"], place["variant"]
    return str(name) if variant is None else f"{name} ({variant})"


_ALL = (
    measure("dataset", "dataset", _dataset),
    measure("model", "model", lambda place: place["model"].upper()),
    measure("smoothing", "PRES", lambda place: VARIANT_NAMES[place["smoothing"]]),
    measure("batch_size", "b"),
    measure("step_size", "step", lambda place: place["step_size"] or place["batch_size"]),
    measure("lr", "learning rate", lambda place: f"{place['lr']:g}"),
    measure("epochs", "epochs"),
    measure("beta", "β", digits=2),
    measure("ap", "AP (%)"),
    measure("ap_200", "AP, b 200 (%)"),
    measure("ap_destinations", "AP, b 200, destinations (%)"),
    measure("ap_live", "AP, live (%)"),
    measure("ap_200_live", "AP, b 200, live (%)"),
    measure("val_ap", "validation AP (%)"),
    measure("first_ap", "after epoch 1 (%)"),
    measure("label_auc", "ROC-AUC (%)"),
    difference("against_small", "− smaller batch", "ap_against_small"),
    difference("against_same", "− same batch", "ap_against_same"),
    difference("auc_against_small", "− smaller batch", "label_auc_against_small"),
    difference("auc_against_same", "− same batch", "label_auc_against_same"),
    measure("paper_ap", "paper's AP (%)"),
    difference("ap_difference", "AP − paper's", _less("ap", "paper_ap")),
    measure("table_ap", "Table 1 (%)"),  # whatever the batch size or β
    difference("table_difference", "AP − Table 1", _less("ap", "table_ap")),
    measure("best_epoch", "best epoch", digits=0),
    measure("gain", "γ", digits=2),
    measure("movement", "movement", digits=2),
    measure("seconds", "s / epoch", _mean("seconds"), repeatable=False),
    measure("speed_up", "speed-up", _mean("speed_up"), digits=2, repeatable=False),
    measure("paper_seconds", "paper's s / epoch", digits=0),
    measure("paper_speed_up", "paper's speed-up"),
    difference(
        "speed_difference", "speed-up − paper's", _less("speed_up", "paper_speed_up"), repeatable=False
    ),
    measure("positives", "positives in test"),
    measure("paper_auc", "paper's ROC-AUC (%)"),
    difference("auc_difference", "ROC-AUC − paper's", _less("label_auc", "paper_auc")),
    measure("peak", "peak (MiB)", digits=0, repeatable=False),
    measure("nodes", "vertices"),
    measure("events", "edges"),
    measure("edge_features", "edge features"),
    measure("label_positives", "positive labels", "positives"),
    measure("paper_nodes", "paper's"),
    measure("paper_events", "paper's"),
    measure("paper_features", "paper's", "paper_edge_features"),
    difference("nodes_difference", "vertices − paper's", _less("nodes", "paper_nodes")),
    difference("events_difference", "edges − paper's", _less("events", "paper_events")),
    difference("features_difference", "features − paper's", _less("edge_features", "paper_edge_features")),
)
COLUMNS = {column.heading.name: column for column in _ALL}
