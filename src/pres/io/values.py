"""Columns into tensors: ids, times, features, categories and labels, with the row of a bad value.

Rows are counted from 1, after the header.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.errors import ValueInRowError
from pres.io.tables import Table

_EPOCH_UNITS = {"ns": 1_000_000_000, "us": 1_000_000, "ms": 1_000}


def bad_value(where: str, column: str, row: int, value: Any, problem: str) -> ValueInRowError:
    """Return the error for one cell; ``row`` counts from 0."""
    shown = "is empty" if value is None else f"is {value!r}"
    return ValueInRowError(f"{where}, row {row + 1:,}, column '{column}' {shown}: {problem}")


def read_ids(table: Table, column: str) -> pl.Series:
    """Return a column of node ids as Int64 or String, without an empty one."""
    ids = table.frame.get_column(column)
    if ids.null_count():
        raise bad_value(table.where, column, _first(ids.is_null()), None, "every event needs its node ids.")
    if isinstance(ids.dtype, (pl.Categorical, pl.Enum)):
        return ids.cast(pl.String)
    if ids.dtype == pl.String:
        return _integers_if_all_are(ids) if table.is_text else ids
    if ids.dtype.is_float():
        whole = ids.cast(pl.Int64, strict=False)
        fractional = ~(whole.cast(pl.Float64) == ids.cast(pl.Float64)).fill_null(False)
        if fractional.any():
            row = _first(fractional)
            raise bad_value(table.where, column, row, ids[row], "a node id must be text or a whole number.")
        return whole
    if not ids.dtype.is_integer():
        raise bad_value(
            table.where, column, 0, ids[0], f"a node id must be text or a whole number, not {ids.dtype}."
        )
    too_large = ids.cast(pl.Int64, strict=False).is_null()
    if too_large.any():
        row = _first(too_large)
        raise bad_value(table.where, column, row, ids[row], "the id exceeds 64 bits; give it as text.")
    return ids.cast(pl.Int64)


def _integers_if_all_are(ids: pl.Series) -> pl.Series:
    """Return text as integers where nothing is lost by it ('007' stays text)."""
    integers = ids.cast(pl.Int64, strict=False)
    if integers.null_count() or not (integers.cast(pl.String) == ids).all():
        return ids
    return integers


def read_times(table: Table, column: str) -> tuple[Tensor, str | None]:
    """Return times `[n]` as int64 or float64, and their unit where the column itself knows it."""
    times = table.frame.get_column(column)
    if times.dtype == pl.String:
        times = _times_from_text(table, times)
    if isinstance(times.dtype, pl.Date):
        times = times.cast(pl.Datetime("ms"))
    unit = None
    if isinstance(times.dtype, pl.Datetime):
        times, unit = _epoch(times)
    elif times.dtype.is_decimal():
        times = times.cast(pl.Float64)
    if not times.dtype.is_numeric():
        raise bad_value(
            table.where, column, 0, times[0], f"a time is a number, a date or ISO text, not {times.dtype}."
        )
    dtype = pl.Float64 if times.dtype.is_float() else pl.Int64
    values = times.cast(dtype, strict=False)
    unusable = ~values.is_finite().fill_null(False) if dtype == pl.Float64 else values.is_null()
    if unusable.any():
        row = _first(unusable)
        raw = table.frame.get_column(column)[row]
        raise bad_value(table.where, column, row, raw, "a time must be a finite 64-bit number.")
    return _tensor(values), unit


def _times_from_text(table: Table, text: pl.Series) -> pl.Series:
    """Return text as integers, floats or datetimes: the first of these that fits the whole column."""
    text = text.str.strip_chars()
    empty = text.is_null() | (text == "")
    if empty.any():
        raise bad_value(table.where, text.name, _first(empty), None, "every event needs a time.")
    candidates = [text.cast(pl.Int64, strict=False), text.cast(pl.Float64, strict=False)]
    if not all(candidate.null_count() == 0 for candidate in candidates[:1]):
        unit = "ns" if text.str.contains(r"\.\d{7}").any() else "us"
        candidates.append(_datetimes(text, unit))
    for candidate in candidates:
        if candidate.null_count() == 0:
            return candidate
    best = min(candidates, key=lambda candidate: candidate.null_count())
    row = _first(best.is_null())
    raise bad_value(
        table.where,
        text.name,
        row,
        text[row],
        "not a time. Use numbers, or ISO dates like 2024-05-17T08:30:00.",
    )


def _datetimes(text: pl.Series, unit: Any) -> pl.Series:
    try:
        return text.str.to_datetime(time_unit=unit, time_zone="UTC", strict=False)
    except pl.exceptions.PolarsError:  # no format could be inferred
        return pl.Series(text.name, [None] * len(text), dtype=pl.Datetime(unit, "UTC"))


def _epoch(times: pl.Series) -> tuple[pl.Series, str]:
    """Return datetimes as integers since 1970: seconds if all are whole, otherwise in their own unit."""
    unit = str(getattr(times.dtype, "time_unit", "us"))
    ticks = times.cast(pl.Int64)
    if (ticks % _EPOCH_UNITS[unit] == 0).all():
        return ticks // _EPOCH_UNITS[unit], "s"
    return ticks, unit


def read_numbers(table: Table, columns: tuple[str, ...]) -> Tensor:
    """Return numeric columns as float32 `[n, d]`; every value must be finite as a float32."""
    numeric = []
    for name in columns:
        column = table.frame.get_column(name)
        if column.dtype == pl.String:
            column = column.str.strip_chars()
        elif not (column.dtype.is_numeric() or column.dtype == pl.Boolean or column.dtype == pl.Null):
            problem = f"a numeric feature cannot be {column.dtype}; pass it in categories=… instead."
            raise bad_value(table.where, name, 0, column[0], problem)
        numeric.append(column.cast(pl.Float64, strict=False))
    with np.errstate(over="ignore"):
        values = np.stack([column.to_numpy() for column in numeric], axis=1).astype(np.float32)
    finite = np.isfinite(values)
    if not finite.all():
        row, place = (int(i) for i in np.argwhere(~finite)[0])
        raw = table.frame.get_column(columns[place])[row]
        hint = " Text goes in categories=…" if isinstance(raw, str) else ""
        raise bad_value(table.where, columns[place], row, raw, f"a feature must be a finite number.{hint}")
    return torch.from_numpy(values)


def read_categories(table: Table, column: str) -> tuple[Tensor, tuple[Any, ...]]:
    """Return a column as indices `[n]` into its levels, and the levels in order of value."""
    values = table.frame.get_column(column)
    if values.null_count():
        row = _first(values.is_null())
        problem = "fill it first, for instance with a category of its own."
        raise bad_value(table.where, column, row, None, problem)
    if isinstance(values.dtype, (pl.Categorical, pl.Enum)):
        values = values.cast(pl.String)
    if values.dtype.is_nested():
        raise bad_value(table.where, column, 0, values[0], f"a category cannot be {values.dtype}.")
    levels = values.unique().sort()
    return _tensor(values.rank("dense").cast(pl.Int64) - 1), tuple(levels.to_list())


def read_labels(table: Table, column: str) -> Tensor:
    """Return integer labels `[n]`."""
    labels = table.frame.get_column(column)
    if labels.dtype == pl.String:
        labels = labels.str.strip_chars()
        labels = labels.replace({"True": "1", "true": "1", "False": "0", "false": "0"})
    numbers = labels.cast(pl.Float64, strict=False) if not labels.dtype.is_nested() else pl.Series([None])
    whole = (numbers.is_finite() & (numbers == numbers.round())).fill_null(False)
    if not whole.all():
        row = _first(~whole)
        raise bad_value(table.where, column, row, labels[row], "a label must be a whole number.")
    return _tensor(numbers.cast(pl.Int64))


def _first(mask: pl.Series) -> int:
    return int(mask.arg_max() or 0)


def _tensor(values: pl.Series) -> Tensor:
    return torch.from_numpy(values.to_numpy(writable=True))
