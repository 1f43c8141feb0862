"""The public layouts a dataset can have on disk: the names of their files, and how those are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.data.datasets.raw import (
    RawEvents,
    events_of,
    open_bare,
    open_by_name,
    open_by_place,
    read_features,
    read_integers,
)
from pres.data.datasets.registry import Dataset
from pres.data.datasets.tgb import read_tgb
from pres.data.datasets.tgl import read_tgl
from pres.data.tabular.columns import resolve_columns
from pres.data.tabular.rows import open_table
from pres.data.tabular.values import read_labels
from pres.errors import RowCountError, UnreadableSourceError, one_line

Files = Mapping[str, Path]  # by role


@dataclass(frozen=True)
class Format:
    """One layout; ``{name}`` in the name of a file is the dataset's."""

    read: Callable[[Files, Dataset], RawEvents]
    files: Mapping[str, tuple[str, ...]]  # role → names, the first found is taken; all roles are needed
    beside: Mapping[str, str] = field(default_factory=dict)  # further roles: without one, the copy lacks them
    own: bool = False  # the names say nothing outside the dataset's own folder
    slow: bool = True  # to read, so that a converted copy is kept

    def match(self, names: AbstractSet[str], dataset: Dataset, own: bool) -> dict[str, str] | None:
        """Return the files of the dataset by role, or None if one that is needed is not among ``names``."""
        if self.own and not own:
            return None
        found = {}
        for role, known in (*self.files.items(), *((role, (file,)) for role, file in self.beside.items())):
            there = [file for file in (name.format(name=dataset.name) for name in known) if file in names]
            if there:
                found[role] = there[0]
            elif role in self.files:
                return None
        return found


def _read_parquet(files: Files, dataset: Dataset) -> RawEvents:
    """Return events with columns of fixed names; row k of the features and relations belongs to event k."""
    events = open_table(files["events"])
    label = "label" if "label" in events.frame.columns else None
    resolve_columns(
        events.frame.columns, events.where, src="src", dst="dst", t="t", x=(), categories=(), label=label
    )
    tables = {role: open_table(path) for role, path in files.items() if role != "events"}
    relations = tables.pop("relations", None)
    wide = {role: read_features(table, tuple(table.frame.columns)) for role, table in tables.items()}
    return events_of(
        *(events, "src", "dst", "t"),
        x=wide.get("features"),
        relation=None if relations is None else read_integers(relations, relations.frame.columns[0]),
        label=None if label is None else read_labels(events, label),
        node_x=wide.get("node_features"),
    )


_JODIE = {"user": pl.Int64, "item": pl.Int64, "time": pl.Float64, "label": pl.Float64}


def _read_jodie(files: Files, dataset: Dataset) -> RawEvents:
    """Return ``user, item, time, state label`` and then features; users and items count from 0 each."""
    table = open_by_place(files["events"], _JODIE, rest="f")
    x = read_features(table, tuple(name for name in table.frame.columns if name not in _JODIE))
    return events_of(table, "user", "item", "time", x=x, label=read_labels(table, "label"))


_DGB = {"u": pl.Int64, "i": pl.Int64, "ts": pl.Float64, "label": pl.Float64, "idx": pl.Int64}


def _read_dgb(files: Files, dataset: Dataset) -> RawEvents:
    """Return events with ids from 1 in one space; their features are an array, by edge index."""
    table = open_by_name(files["events"], _DGB)
    x = _rows(files["features"], read_integers(table, "idx")) if "features" in files else None
    return events_of(table, "u", "i", "ts", x=x, label=read_labels(table, "label"))


def _rows(path: Path, index: Tensor) -> Tensor:
    """Return the feature rows of the edges; row 0 of the file stands for no edge."""
    try:
        values = np.load(path, allow_pickle=False, mmap_mode="r")
    except Exception as error:  # a damaged file makes the reader fail in many ways
        raise UnreadableSourceError(
            f"{path} is not a plain NumPy file, or is cut short: {one_line(error)}."
        ) from None
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind not in "fiub":
        raise UnreadableSourceError(f"{path} should hold numbers [edges + 1, features].")
    if int(index.max()) >= len(values):
        raise RowCountError(
            f"{path} has {len(values):,} rows, but the edges count up to {int(index.max()):,}."
        )
    with np.errstate(over="ignore", invalid="ignore"):  # infinite then, which no stream takes
        return torch.from_numpy(values[index.numpy()].astype(np.float32))


_RENET_PARTS = ("train", "valid", "test")  # in order of time


def _read_renet(files: Files, dataset: Dataset) -> RawEvents:
    """Return ``subject, relation, object, time`` of the three parts, one after the other."""
    names = ("subject", "relation", "object", "time")
    tables = [open_bare(files[part], "\t", names) for part in _RENET_PARTS]
    parts = [
        events_of(table, "subject", "object", "time", relation=read_integers(table, "relation")).per_event()
        for table in tables
    ]
    whole = {name: torch.cat([part[name] for part in parts]) for name in parts[0]}
    return RawEvents(str(files["train"].parent), **whole)


def _read_snap(files: Files, dataset: Dataset) -> RawEvents:
    """Return ``source destination unix-time``, the time counted from the first, as in every other copy."""
    table = open_bare(files["events"], " ", ("src", "dst", "t"), exact=True)
    events = events_of(table, "src", "dst", "t")
    return replace(events, t=events.t - events.t.min())


FORMATS: Mapping[str, Format] = {
    "parquet": Format(
        _read_parquet,
        {"events": ("{name}.parquet",)},
        {role: f"{{name}}_{role}.parquet" for role in ("features", "relations", "node_features")},
        slow=False,
    ),
    "jodie": Format(_read_jodie, {"events": ("{name}.csv",)}),
    "tgl": Format(
        read_tgl,
        {"events": ("edges.csv",)},
        {"labels": "labels.csv", "features": "edge_features.pt", "node_features": "node_features.pt"},
        own=True,
    ),
    # tgbl-wiki keeps the layout of its origin.
    "tgb": Format(
        lambda files, dataset: (_read_jodie if dataset.name == "tgbl-wiki" else read_tgb)(files, dataset),
        {"events": ("{name}_edgelist_v2.csv", "{name}_edgelist.csv")},
    ),
    # The node features, zeros in every set, are left alone.
    "dgb": Format(_read_dgb, {"events": ("ml_{name}.csv",)}, {"features": "ml_{name}.npy"}),
    "renet": Format(_read_renet, {part: (f"{part}.txt",) for part in _RENET_PARTS}, own=True),
    "snap": Format(_read_snap, {"events": ("CollegeMsg.txt", "CollegeMsg.txt.gz")}),
}
