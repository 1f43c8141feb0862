"""Text tables whose columns are known: parsed straight to numbers, or explained cell by cell."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import polars as pl
from polars._typing import PolarsDataType

from pres.data.tabular.rows import Table, open_table
from pres.errors import ColumnError, EmptySourceError, UnreadableSourceError, one_line


def open_by_place(path: Path, types: Mapping[str, PolarsDataType], *, rest: str | None = None) -> Table:
    """Return a comma-separated file with its columns named and typed by place.

    The first line is skipped whatever it says: in several public files the header is shorter or longer
    than the rows, or names the columns of another file.

    Args:
        path: The file.
        types: Name and type of the columns, from the left.
        rest: Columns beyond these become the float32 columns ``rest0, rest1, …``; None allows no more.
    """
    width = _width(path)
    if width < len(types):
        raise UnreadableSourceError(
            f"{path}, line 2: {width} fields where at least {len(types)} are expected ({', '.join(types)})."
        )
    schema = dict(types)
    if rest is not None:
        schema |= {f"{rest}{i}": pl.Float32 for i in range(width - len(types))}
    try:
        return Table(_parse(path, schema), str(path))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        pass  # once more as text, so that whoever reads the columns can name the bad cell
    try:
        return Table(_parse(path, dict.fromkeys(schema, pl.String)), str(path), is_text=True)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        raise UnreadableSourceError(_explain(path, len(schema), error)) from None


def open_by_name(path: Path, types: Mapping[str, PolarsDataType]) -> Table:
    """Return the named columns of a comma-separated file with a true header; others are not read."""
    try:
        frame = pl.read_csv(path, columns=list(types), schema_overrides=dict(types), glob=False)
        if frame.height:
            return Table(frame, str(path))
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        pass  # once more as text, which says what is wrong
    table = open_table(path)
    missing = [name for name in types if name not in table.frame.columns]
    if missing:
        raise ColumnError(
            f"{path}: there is no column '{missing[0]}'; there are {', '.join(table.frame.columns[:12])}."
        )
    return table


def rename(table: Table, names: Sequence[str]) -> Table:
    """Return the table with its first columns named."""
    return replace(table, frame=table.frame.rename(dict(zip(table.frame.columns, names, strict=False))))


def strip(table: Table) -> Table:
    """Return the table with the blanks around its text cells removed."""
    return replace(table, frame=table.frame.with_columns(pl.col(pl.String).str.strip_chars()))


def _parse(path: Path, schema: Mapping[str, PolarsDataType]) -> pl.DataFrame:
    return pl.read_csv(path, has_header=False, skip_rows=1, schema=dict(schema), glob=False)


def _width(path: Path) -> int:
    """Return the number of fields of the first row after the header."""
    try:
        with path.open("rb") as file:
            header, first = file.readline(1 << 20), file.readline(1 << 20)
    except OSError as error:
        raise UnreadableSourceError(f"{path} cannot be read: {error.strerror}.") from None
    if not header:
        raise EmptySourceError(f"{path} is empty (0 bytes).")
    if not first.strip():
        raise EmptySourceError(f"{path} has no rows.")
    return first.count(b",") + 1


def _explain(path: Path, width: int, error: BaseException) -> str:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if number > 1 and line.count(b",") + 1 > width:
                found = line.count(b",") + 1
                return (
                    f"{path}, line {number:,}: {found} fields where the others have {width}. Mend the line."
                )
    return f"{path} is cut short or corrupt: {one_line(error)}."
