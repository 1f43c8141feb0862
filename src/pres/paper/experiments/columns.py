"""The columns that tables are declared by: what each is called, and how a cell of it is found."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pres.paper.experiments import paper
from pres.paper.experiments.compared import against_baseline, against_counterpart, seconds, speed_up
from pres.paper.experiments.declaration import arm_name, arms
from pres.paper.experiments.groups import Group, Groups
from pres.paper.experiments.table import Cell, Heading, Spread, Table

WAY_NAMES = {
    "off": "without",
    "equations": "Eqs. 6–8, 10",
    "algorithm": "Algorithm 2",
    "ours": "ours",
    "S": "PRES-S (Eq. 10 alone)",
    "V": "PRES-V (Eqs. 6–8 alone)",
}


@dataclass(frozen=True)
class Column:
    """A heading, and where its cells come from."""

    heading: Heading
    cell: Callable[[Group, Groups], Cell]


def columns(*names: str) -> Callable[[Groups], Table]:
    """Return what makes a table of these columns; places that look alike in it are one row."""
    chosen = [COLUMNS[name] for name in names]

    def table(groups: Groups) -> Table:
        rows = [tuple(column.cell(group, groups) for column in chosen) for group in groups]
        return Table(tuple(column.heading for column in chosen), tuple(dict.fromkeys(rows)))

    return table


def speeds(groups: Groups) -> Table:
    """Return the table of jobs that time all arms: seconds of an epoch, and how many times shorter it is."""
    rows: list[tuple[Cell, ...]] = []
    for group in groups:
        timed: dict[str, float] = group.only("seconds_of_arm")
        for way, b in arms(groups.size):
            now, before = timed[arm_name(way, b)], timed[arm_name("off", groups.size.pair[0])]
            place = Group({**group.factors, "way": way, "batch_size": b}, group.values)
            printed = _printed(place, groups)
            theirs = (None, None) if printed is None else (float(printed.seconds), printed.speed_up)
            shown = _dataset(place, groups), place["model"].upper(), WAY_NAMES[way], b
            rows.append((*shown, now, before / now, *theirs))
    names = (
        "dataset",
        "model",
        "way",
        "batch_size",
        "seconds",
        "speed_up",
        "paper_seconds",
        "paper_speed_up",
    )
    return Table(tuple(COLUMNS[name].heading for name in names), tuple(rows))


def _printed(group: Group, groups: Groups) -> paper.Trained | None:
    """Return the cell of Table 1 that a row of ours stands beside.

    It has the smaller batch without PRES and the larger one with it, not the larger one without.
    """
    small, large = groups.size.pair
    if group["batch_size"] != (small if group["way"] == "off" else large):
        return None
    return paper.trained(group["dataset"], group["model"], _printed_as(group))


def _printed_as(group: Group) -> str:
    """Return which row of the paper's tables a place stands beside."""
    return "off" if group["way"] == "off" else "PRES"


def _paper_ap(group: Group, groups: Groups) -> Spread | None:
    printed = _printed(group, groups)
    return None if printed is None else printed.ap


def _table_ap(group: Group, _: Groups) -> Spread | None:
    """Return what Table 1 has, whatever the batch size or β: a figure's own values are not printed."""
    printed = paper.trained(group["dataset"], group["model"], _printed_as(group))
    return None if printed is None else printed.ap


def _less(ours: float | None, printed: Spread | float | None) -> float | None:
    value = printed.mean if isinstance(printed, Spread) else printed
    return None if ours is None or value is None else ours - value


def _paper_auc(group: Group, groups: Groups) -> Spread | None:
    if _printed(group, groups) is None:
        return None
    return paper.classified(group["dataset"], group["model"], _printed_as(group))


def _count(place: int) -> Callable[[Group, Groups], Cell]:
    def cell(group: Group, _: Groups) -> Cell:
        printed = paper.DATASETS.get(group["dataset"])
        return None if printed is None else printed[place]

    return cell


def _count_less(name: str, place: int) -> Callable[[Group, Groups], Cell]:
    def cell(group: Group, _: Groups) -> Cell:
        printed = paper.DATASETS.get(group["dataset"])
        return None if printed is None else int(group.only(name)) - printed[place]

    return cell


def _dataset(group: Group, _: Groups) -> str:
    variant = group.only("variant")
    return str(group["dataset"]) if variant is None else f"{group['dataset']} ({variant})"


def _with(name: str, group: Group, groups: Groups) -> float | None:
    printed = _printed(group, groups)
    return None if printed is None else float(getattr(printed, name))


def _column(
    name: str,
    title: str,
    cell: Callable[[Group, Groups], Cell],
    digits: int = 1,
    signed: bool = False,
    repeatable: bool = True,
) -> Column:
    return Column(Heading(name, title, digits, signed, repeatable), cell)


_ALL = (
    _column("dataset", "dataset", _dataset),
    _column("model", "model", lambda g, _: g["model"].upper()),
    _column("way", "PRES", lambda g, _: WAY_NAMES[g["way"]]),
    _column("batch_size", "b", lambda g, _: g["batch_size"]),
    _column("step_size", "step", lambda g, _: g["step_size"] or g["batch_size"]),
    _column("lr", "learning rate", lambda g, _: f"{g['lr']:g}"),
    _column("epochs", "epochs", lambda g, _: g["epochs"]),
    _column("beta", "β", lambda g, _: float(g["beta"]), digits=2),
    _column("ap", "AP (%)", lambda g, _: g.spread("ap", 100)),
    _column("ap_200", "AP, b 200 (%)", lambda g, _: g.spread("ap_200", 100)),
    _column("ap_destinations", "AP, b 200, destinations (%)", lambda g, _: g.spread("ap_destinations", 100)),
    _column("ap_live", "AP, live (%)", lambda g, _: g.spread("ap_live", 100)),
    _column("ap_200_live", "AP, b 200, live (%)", lambda g, _: g.spread("ap_200_live", 100)),
    _column("against_small", "− smaller batch", against_baseline, 1, True),
    _column("against_same", "− same batch", against_counterpart, 1, True),
    _column(
        "auc_against_small", "− smaller batch", lambda g, a: against_baseline(g, a, "label_auc"), 1, True
    ),
    _column("auc_against_same", "− same batch", lambda g, a: against_counterpart(g, a, "label_auc"), 1, True),
    _column("paper_ap", "paper's AP (%)", _paper_ap),
    _column("ap_difference", "AP − paper's", lambda g, a: _less(g.mean("ap", 100), _paper_ap(g, a)), 1, True),
    _column("table_ap", "Table 1 (%)", _table_ap),
    _column(
        "table_difference", "AP − Table 1", lambda g, a: _less(g.mean("ap", 100), _table_ap(g, a)), 1, True
    ),
    _column("val_ap", "validation AP (%)", lambda g, _: g.spread("val_ap", 100)),
    _column("first_ap", "after epoch 1 (%)", lambda g, _: g.spread("first_ap", 100)),
    _column("best_epoch", "best epoch", lambda g, _: g.spread("best_epoch"), digits=0),
    _column("gain", "γ", lambda g, _: g.spread("gain"), digits=2),
    _column("movement", "movement", lambda g, _: g.spread("movement"), digits=2),
    _column("seconds", "s / epoch", seconds, repeatable=False),
    _column("speed_up", "speed-up", speed_up, digits=2, repeatable=False),
    _column("paper_seconds", "paper's s / epoch", lambda g, a: _with("seconds", g, a), digits=0),
    _column("paper_speed_up", "paper's speed-up", lambda g, a: _with("speed_up", g, a)),
    _column(
        "speed_difference",
        "speed-up − paper's",
        lambda g, a: _less(speed_up(g, a), _with("speed_up", g, a)),
        1,
        True,
        False,
    ),
    _column("label_auc", "ROC-AUC (%)", lambda g, _: g.spread("label_auc", 100)),
    _column("positives", "positives in test", lambda g, _: g.only("positives")),
    _column("paper_auc", "paper's ROC-AUC (%)", _paper_auc),
    _column(
        "auc_difference",
        "ROC-AUC − paper's",
        lambda g, a: _less(g.mean("label_auc", 100), _paper_auc(g, a)),
        1,
        True,
    ),
    _column("peak", "peak (MiB)", lambda g, _: g.spread("peak"), digits=0, repeatable=False),
    _column("nodes", "vertices", lambda g, _: g.only("nodes")),
    _column("events", "edges", lambda g, _: g.only("events")),
    _column("edge_features", "edge features", lambda g, _: g.only("edge_features")),
    _column("label_positives", "positive labels", lambda g, _: g.only("positives")),
    _column("paper_nodes", "paper's", _count(0)),
    _column("paper_events", "paper's", _count(1)),
    _column("paper_features", "paper's", _count(2)),
    _column("nodes_difference", "vertices − paper's", _count_less("nodes", 0), signed=True),
    _column("events_difference", "edges − paper's", _count_less("events", 1), signed=True),
    _column("features_difference", "features − paper's", _count_less("edge_features", 2), signed=True),
)
COLUMNS = {column.heading.name: column for column in _ALL}
