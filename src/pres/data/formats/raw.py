"""RawEvents: what a public file holds, before ids are made dense and counts are checked."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.data.tabular.rows import Table
from pres.data.tabular.values import bad_value, read_ids, read_numbers

_PER_EVENT = ("src", "dst", "t", "x", "relation", "label")


@dataclass(frozen=True)
class RawEvents:
    """Events as a file gives them; ids need not be dense, nor times in order."""

    where: str  # the file or folder, for messages
    src: Tensor  # [n] int64
    dst: Tensor  # [n] int64
    t: Tensor  # [n]
    x: Tensor | None = None  # [n, d] of any numeric type, perhaps still on disk
    relation: Tensor | None = None  # [n] int64, kind of event
    label: Tensor | None = None  # [n] int64
    node_x: Tensor | None = None  # [highest id + 1, d], row k belongs to node id k

    def __len__(self) -> int:
        return len(self.src)

    def per_event(self) -> dict[str, Tensor]:
        """Return the parts that have one row per event, by name."""
        parts = {name: getattr(self, name) for name in _PER_EVENT}
        return {name: part for name, part in parts.items() if part is not None}

    def take(self, rows: Tensor | slice) -> RawEvents:
        """Return the events of some rows, in that order."""
        parts: dict[str, Any] = {name: part[rows] for name, part in self.per_event().items()}
        return dataclasses.replace(self, **parts)


def read_integers(table: Table, column: str) -> Tensor:
    """Return a column of ids `[n]` as int64, none of them negative."""
    ids = read_ids(table, column)
    integers = ids.cast(pl.Int64, strict=False)
    unusable = (integers < 0).fill_null(True)
    if unusable.any():
        row = int(unusable.arg_max() or 0)
        raise bad_value(table, column, row, ids[row], "ids of this dataset are whole numbers from 0.")
    return torch.from_numpy(integers.to_numpy(writable=True))


def read_features(table: Table, columns: tuple[str, ...]) -> Tensor | None:
    """Return numeric columns as float32 `[n, d]`, or None when there are none."""
    if not columns:
        return None
    frame = table.frame.select(columns)
    if all(dtype == pl.Float32 for dtype in frame.dtypes):  # as stored: no detour over 64 bits
        values = frame.to_numpy(writable=True)
        if np.isfinite(values).all():
            return torch.from_numpy(values)
    return read_numbers(table, columns)
