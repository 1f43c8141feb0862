"""JODIE: ``<name>.csv`` with ``user, item, time, state label`` and then features, under a ragged header."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import polars as pl

from pres.data.datasets.registry import Dataset
from pres.data.formats.raw import RawEvents, read_features, read_integers
from pres.data.formats.text import open_by_place
from pres.data.tabular.values import read_labels, read_times

_COLUMNS = {"user": pl.Int64, "item": pl.Int64, "time": pl.Float64, "label": pl.Float64}


def match(names: AbstractSet[str], dataset: Dataset, own: bool) -> Mapping[str, str] | None:
    """Return the one file of the dataset, or None if it is not there."""
    return {"events": f"{dataset.name}.csv"} if f"{dataset.name}.csv" in names else None


def read(files: Mapping[str, Path], dataset: Dataset) -> RawEvents:
    """Return the events; users and items count from 0 each on their own."""
    table = open_by_place(files["events"], _COLUMNS, rest="f")
    features = tuple(name for name in table.frame.columns if name not in _COLUMNS)
    return RawEvents(
        where=table.where,
        src=read_integers(table, "user"),
        dst=read_integers(table, "item"),
        t=read_times(table, "time")[0],
        x=read_features(table, features),
        label=read_labels(table, "label"),
    )
