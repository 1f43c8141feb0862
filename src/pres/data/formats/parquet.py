"""The Parquet layout: ``<name>.parquet`` and, beside it, features, relations and node features."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import polars as pl

from pres.data.datasets.registry import Dataset
from pres.data.formats.raw import RawEvents, read_features, read_integers
from pres.data.tabular.columns import resolve_columns
from pres.data.tabular.rows import open_table
from pres.data.tabular.values import read_labels, read_times

BESIDE = ("features", "relations", "node_features")


def match(names: AbstractSet[str], dataset: Dataset, own: bool) -> Mapping[str, str] | None:
    """Return the files of the dataset by role, or None if its events are not there."""
    if f"{dataset.name}.parquet" not in names:
        return None
    beside = {role: f"{dataset.name}_{role}.parquet" for role in BESIDE}
    found = {role: file for role, file in beside.items() if file in names}
    return {"events": f"{dataset.name}.parquet", **found}


def read(files: Mapping[str, Path], dataset: Dataset) -> RawEvents:
    """Return the events; row k of the features and relations belongs to event k."""
    events = open_table(files["events"])
    label = "label" if "label" in events.frame.columns else None
    resolve_columns(
        events.frame.columns, events.where, src="src", dst="dst", t="t", x=(), categories=(), label=label
    )
    tables = {role: open_table(files[role]) for role in BESIDE if role in files}
    relations = tables.pop("relations", None)
    wide = {role: read_features(table, tuple(table.frame.columns)) for role, table in tables.items()}
    return RawEvents(
        where=str(files["events"]),
        src=read_integers(events, "src"),
        dst=read_integers(events, "dst"),
        t=read_times(events, "t")[0],
        x=wide.get("features"),
        relation=None if relations is None else read_integers(relations, relations.frame.columns[0]),
        label=None if label is None else read_labels(events, label),
        node_x=wide.get("node_features"),
    )


def write(raw: RawEvents, folder: Path, dataset: Dataset) -> None:
    """Write the events into an existing folder, as `read` finds them there."""
    events = {name: getattr(raw, name).numpy() for name in ("src", "dst", "t")}
    if raw.label is not None:
        events["label"] = raw.label.numpy()
    tables = {"": pl.DataFrame(events)}
    if raw.relation is not None:
        tables["_relations"] = pl.DataFrame({"rel": raw.relation.numpy()})
    for ending, values in (("_features", raw.x), ("_node_features", raw.node_x)):
        if values is not None:
            columns = values.float().T.contiguous().numpy()
            tables[ending] = pl.DataFrame({f"f{i}": column for i, column in enumerate(columns)})
    for ending, table in tables.items():
        table.write_parquet(folder / f"{dataset.name}{ending}.parquet", compression="zstd")
