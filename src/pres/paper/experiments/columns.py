"""The columns that tables are declared by: what each is called, and how a cell of it is found."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from pres.paper.experiments import paper
from pres.paper.experiments.results import Group, Groups
from pres.paper.experiments.table import Cell, Heading, Spread, Table

VARIANT_NAMES = {
    "off": "without",
    "equations": "Eqs. 6–8, 10",
    "algorithm": "Algorithm 2",
    "ours": "ours",
    "S": "PRES-S (Eq. 10 alone)",
    "V": "PRES-V (Eqs. 6–8 alone)",
}


class Column(NamedTuple):
    """A heading, and where its cells come from."""

    heading: Heading
    cell: Callable[[Group], Cell]


def columns(*names: str) -> Callable[[Groups], Table]:
    """Return what makes a table of these columns; places that look alike in it are one row."""
    chosen = [COLUMNS[name] for name in names]

    def table(groups: Groups) -> Table:
        rows = [tuple(column.cell(group) for column in chosen) for group in groups]
        return Table(tuple(column.heading for column in chosen), tuple(dict.fromkeys(rows)))

    return table


def _place(group: Group) -> tuple[str, str, str]:
    """Return which cell of the paper's tables a place is like, whatever its batch size."""
    return group["dataset"], group["model"], "off" if group["smoothing"] == "off" else "PRES"


def _printed(group: Group) -> paper.Trained | None:
    """Return the cell of Table 1 that a row of ours stands beside.

    It has the smaller batch without PRES and the larger one with it, not the larger one without.
    """
    small, large = group.all.budget.pair
    beside = group["batch_size"] == (small if group["smoothing"] == "off" else large)
    return paper.TABLE_1.get(_place(group)) if beside else None


def _paper(name: str) -> Callable[[Group], Spread | float | None]:
    """Return what finds a value of that cell."""

    def found(group: Group) -> Spread | float | None:
        printed = _printed(group)
        value = None if printed is None else getattr(printed, name)
        return float(value) if isinstance(value, int) else value

    return found


def _table_ap(group: Group) -> Spread | None:
    """Return what Table 1 has, whatever the batch size or β: a figure's own values are not printed."""
    printed = paper.TABLE_1.get(_place(group))
    return None if printed is None else printed.ap


def _paper_auc(group: Group) -> Spread | None:
    return None if _printed(group) is None else paper.TABLE_2.get(_place(group))


def _less(
    ours: Callable[[Group], float | None], theirs: Callable[[Group], Spread | float | None]
) -> Callable[[Group], float | None]:
    """Return what finds the difference between two cells."""

    def found(group: Group) -> float | None:
        value, printed = ours(group), theirs(group)
        printed = printed.mean if isinstance(printed, Spread) else printed
        return None if value is None or printed is None else value - printed

    return found


def _count(i: int, less_than: str | None = None) -> Callable[[Group], int | None]:
    """Return what finds one of the paper's counts of a dataset, or how much more there is here."""

    def found(group: Group) -> int | None:
        printed = paper.DATASETS.get(group["dataset"])
        if printed is None:
            return None
        return printed[i] if less_than is None else int(group.only(less_than)) - printed[i]

    return found


def _dataset(group: Group) -> str:
    variant = group.only("variant")
    return str(group["dataset"]) if variant is None else f"{group['dataset']} ({variant})"


def _mean(name: str) -> Callable[[Group], float | None]:
    return lambda group: group.mean(name, 100)


def _percent(name: str, title: str) -> Column:
    return Column(Heading(name, f"{title} (%)"), lambda group: group.spread(name, 100))


def _signed(name: str, title: str, cell: Callable[[Group], Cell], repeatable: bool = True) -> Column:
    return Column(Heading(name, title, signed=True, repeatable=repeatable), cell)


_SPEED_DIFFERENCE = _less(lambda g: g.speed_up, _paper("speed_up"))
_ALL = (
    Column(Heading("dataset", "dataset"), _dataset),
    Column(Heading("model", "model"), lambda g: g["model"].upper()),
    Column(Heading("smoothing", "PRES"), lambda g: VARIANT_NAMES[g["smoothing"]]),
    Column(Heading("batch_size", "b"), lambda g: g["batch_size"]),
    Column(Heading("step_size", "step"), lambda g: g["step_size"] or g["batch_size"]),
    Column(Heading("lr", "learning rate"), lambda g: f"{g['lr']:g}"),
    Column(Heading("epochs", "epochs"), lambda g: g["epochs"]),
    Column(Heading("beta", "β", digits=2), lambda g: float(g["beta"])),
    _percent("ap", "AP"),
    _percent("ap_200", "AP, b 200"),
    _percent("ap_destinations", "AP, b 200, destinations"),
    _percent("ap_live", "AP, live"),
    _percent("ap_200_live", "AP, b 200, live"),
    _percent("val_ap", "validation AP"),
    _percent("first_ap", "after epoch 1"),
    _percent("label_auc", "ROC-AUC"),
    _signed("against_small", "− smaller batch", lambda g: g.against_small()),
    _signed("against_same", "− same batch", lambda g: g.against_same()),
    _signed("auc_against_small", "− smaller batch", lambda g: g.against_small("label_auc")),
    _signed("auc_against_same", "− same batch", lambda g: g.against_same("label_auc")),
    Column(Heading("paper_ap", "paper's AP (%)"), _paper("ap")),
    _signed("ap_difference", "AP − paper's", _less(_mean("ap"), _paper("ap"))),
    Column(Heading("table_ap", "Table 1 (%)"), _table_ap),
    _signed("table_difference", "AP − Table 1", _less(_mean("ap"), _table_ap)),
    Column(Heading("best_epoch", "best epoch", digits=0), lambda g: g.spread("best_epoch")),
    Column(Heading("gain", "γ", digits=2), lambda g: g.spread("gain")),
    Column(Heading("movement", "movement", digits=2), lambda g: g.spread("movement")),
    Column(Heading("seconds", "s / epoch", repeatable=False), lambda g: g.seconds),
    Column(Heading("speed_up", "speed-up", digits=2, repeatable=False), lambda g: g.speed_up),
    Column(Heading("paper_seconds", "paper's s / epoch", digits=0), _paper("seconds")),
    Column(Heading("paper_speed_up", "paper's speed-up"), _paper("speed_up")),
    _signed("speed_difference", "speed-up − paper's", _SPEED_DIFFERENCE, repeatable=False),
    Column(Heading("positives", "positives in test"), lambda g: g.only("positives")),
    Column(Heading("paper_auc", "paper's ROC-AUC (%)"), _paper_auc),
    _signed("auc_difference", "ROC-AUC − paper's", _less(_mean("label_auc"), _paper_auc)),
    Column(Heading("peak", "peak (MiB)", digits=0, repeatable=False), lambda g: g.spread("peak")),
    Column(Heading("nodes", "vertices"), lambda g: g.only("nodes")),
    Column(Heading("events", "edges"), lambda g: g.only("events")),
    Column(Heading("edge_features", "edge features"), lambda g: g.only("edge_features")),
    Column(Heading("label_positives", "positive labels"), lambda g: g.only("positives")),
    Column(Heading("paper_nodes", "paper's"), _count(0)),
    Column(Heading("paper_events", "paper's"), _count(1)),
    Column(Heading("paper_features", "paper's"), _count(2)),
    _signed("nodes_difference", "vertices − paper's", _count(0, "nodes")),
    _signed("events_difference", "edges − paper's", _count(1, "events")),
    _signed("features_difference", "features − paper's", _count(2, "edge_features")),
)
COLUMNS = {column.heading.name: column for column in _ALL}
