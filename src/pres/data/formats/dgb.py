"""DGB and DyGLib: ``ml_<name>.csv`` with ids from 1, and ``ml_<name>.npy`` with features by edge index."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.data.datasets.registry import Dataset
from pres.data.formats.raw import RawEvents, read_integers
from pres.data.formats.text import open_by_name
from pres.data.tabular.values import read_labels, read_times
from pres.errors import RowCountError, UnreadableSourceError

_COLUMNS = {"u": pl.Int64, "i": pl.Int64, "ts": pl.Float64, "label": pl.Float64, "idx": pl.Int64}


def match(names: AbstractSet[str], dataset: Dataset, own: bool) -> Mapping[str, str] | None:
    """Return the files of the dataset by role; the node features, zeros in every set, are left alone."""
    files = {"events": f"ml_{dataset.name}.csv", "features": f"ml_{dataset.name}.npy"}
    found = {role: file for role, file in files.items() if file in names}
    return found if "events" in found else None


def read(files: Mapping[str, Path], dataset: Dataset) -> RawEvents:
    """Return the events of one id space, destinations of a bipartite set after its sources."""
    table = open_by_name(files["events"], _COLUMNS)
    index = read_integers(table, "idx")
    return RawEvents(
        where=table.where,
        src=read_integers(table, "u"),
        dst=read_integers(table, "i"),
        t=read_times(table, "ts")[0],
        x=_rows(files["features"], index) if "features" in files else None,
        label=read_labels(table, "label"),
    )


def _rows(path: Path, index: Tensor) -> Tensor:
    """Return the feature rows of the edges; row 0 of the file stands for no edge."""
    try:
        values = np.load(path, allow_pickle=False, mmap_mode="r")
    except Exception as error:  # a damaged file makes the reader fail in many ways
        first_line = str(error).partition("\n")[0].rstrip(".")
        raise UnreadableSourceError(
            f"{path} is not a plain NumPy file, or is cut short: {first_line}."
        ) from None
    if not isinstance(values, np.ndarray) or values.ndim != 2 or values.dtype.kind not in "fiub":
        raise UnreadableSourceError(f"{path} should hold numbers [edges + 1, features].")
    if int(index.max()) >= len(values):
        raise RowCountError(
            f"{path} has {len(values):,} rows, but the edges count up to {int(index.max()):,}."
        )
    with np.errstate(over="ignore", invalid="ignore"):  # infinite then, which no stream takes
        return torch.from_numpy(values[index.numpy()].astype(np.float32))
