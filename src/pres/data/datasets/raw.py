"""What a public file holds: columns of known names and types, before ids are dense and counts are checked."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from polars._typing import PolarsDataType
from torch import Tensor

from pres.data.stream import MOST_FEATURE
from pres.data.tabular.rows import Table, open_table
from pres.data.tabular.times import read_times
from pres.data.tabular.values import bad_value, read_ids, read_numbers
from pres.errors import ColumnError, EmptySourceError, UnreadableSourceError, one_line

_PER_EVENT = ("src", "dst", "t", "x", "relation", "label")
_UNREADABLE = (pl.exceptions.PolarsError, pl.exceptions.PanicException)


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


def events_of(table: Table, src: str, dst: str, t: str, **further: Any) -> RawEvents:
    """Return the events of these columns, with what there is beside them."""
    ends = read_integers(table, src), read_integers(table, dst)
    return RawEvents(table.where, *ends, read_times(table, t)[0], **further)


def read_integers(table: Table, column: str) -> Tensor:
    """Return a column of ids `[n]` as int64, none of them negative."""
    ids = read_ids(table, column)
    integers = ids.cast(pl.Int64, strict=False)
    unusable = (integers < 0).fill_null(True)
    if unusable.any():
        problem = "ids of this dataset are whole numbers from 0."
        raise bad_value(table, ids.alias(column), int(unusable.arg_max() or 0), problem)
    return torch.from_numpy(integers.to_numpy(writable=True))


def read_features(table: Table, columns: tuple[str, ...]) -> Tensor | None:
    """Return numeric columns as float32 `[n, d]`, or None when there are none."""
    if not columns:
        return None
    frame = table.frame.select(columns)
    if all(dtype == pl.Float32 for dtype in frame.dtypes):  # as stored: no detour over 64 bits
        values = frame.to_numpy(writable=True)
        if (np.abs(values) <= MOST_FEATURE).all():
            return torch.from_numpy(values)
    return read_numbers(table, columns)


def open_by_place(path: Path, types: Mapping[str, PolarsDataType], *, rest: str | None = None) -> Table:
    """Return a comma-separated file with its columns named and typed by place.

    The first line is skipped whatever it says: in several public files the header is shorter or longer
    than the rows, or names the columns of another file.

    Args:
        path: The file.
        types: Name and type of the columns, from the left.
        rest: Columns beyond these become the float32 columns ``rest0, rest1, …``; None allows no more.
    """
    try:
        with path.open("rb") as file:
            header, first = file.readline(1 << 20), file.readline(1 << 20)
    except OSError as error:
        raise UnreadableSourceError(f"{path} cannot be read: {error.strerror}.") from None
    if not first.strip():
        raise EmptySourceError(f"{path} {'has no rows' if header else 'is empty (0 bytes)'}.")
    width = first.count(b",") + 1
    if width < len(types):
        raise UnreadableSourceError(
            f"{path}, line 2: {width} fields where at least {len(types)} are expected ({', '.join(types)})."
        )
    schema = dict(types)
    if rest is not None:
        schema |= {f"{rest}{i}": pl.Float32 for i in range(width - len(types))}
    try:
        return Table(_parse(path, schema), str(path))
    except _UNREADABLE:
        pass  # once more as text, so that whoever reads the columns can name the bad cell
    try:
        return Table(_parse(path, dict.fromkeys(schema, pl.String)), str(path), is_text=True)
    except _UNREADABLE as error:
        raise UnreadableSourceError(_explain(path, len(schema), error)) from None


def _parse(path: Path, schema: Mapping[str, PolarsDataType]) -> pl.DataFrame:
    return pl.read_csv(path, has_header=False, skip_rows=1, schema=dict(schema), glob=False)


def _explain(path: Path, width: int, error: BaseException) -> str:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            found = line.count(b",") + 1
            if number > 1 and found > width:
                return (
                    f"{path}, line {number:,}: {found} fields where the others have {width}. Mend the line."
                )
    return f"{path} is cut short or corrupt: {one_line(error)}."


def open_by_name(path: Path, types: Mapping[str, PolarsDataType]) -> Table:
    """Return the named columns of a comma-separated file with a true header; others are not read."""
    try:
        frame = pl.read_csv(path, columns=list(types), schema_overrides=dict(types), glob=False)
        if frame.height:
            return Table(frame, str(path))
    except (*_UNREADABLE, OSError):
        pass  # once more as text, which says what is wrong
    table = open_table(path)
    missing = [name for name in types if name not in table.frame.columns]
    if missing:
        raise ColumnError(
            f"{path}: there is no column '{missing[0]}'; there are {', '.join(table.frame.columns[:12])}."
        )
    return table


def open_bare(path: Path, separator: str, names: tuple[str, ...], exact: bool = False) -> Table:
    """Return a text file without a header, its first columns named and its cells without padding."""
    table = open_table(path, header=False, separator=separator)
    width = table.frame.width
    if width < len(names) or (exact and width > len(names)):
        between, least = "tabs" if separator == "\t" else "blanks", "" if exact else "at least "
        raise UnreadableSourceError(
            f"{path}: {width} columns between {between}, expected {least}{len(names)}."
        )
    frame = table.frame.rename(dict(zip(table.frame.columns, names, strict=False)))
    return dataclasses.replace(table, frame=frame.with_columns(pl.col(pl.String).str.strip_chars()))
