"""Columns into tensors: ids, times, features, categories and labels, with the row of a bad value.

Rows are counted from 1, after the header.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.data.tabular.rows import Table, open_table
from pres.errors import OptionError, RowCountError, ValueInRowError

_EPOCH_UNITS = {"ns": 1_000_000_000, "us": 1_000_000, "ms": 1_000}
_ISO = (  # date, minute, second, fraction of a second, zone
    r"(?i)^(\d{4}-\d{2}-\d{2})"
    r"(?:[T ](\d{2}:\d{2})(?:(:\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|UTC|[+-]\d{2}(?::?\d{2})?)?)?$"
)
_ISO_PARTS = "%Y-%m-%dT%H:%M:%S%.f%#z"
_EXACT_FLOAT = 2**53  # beyond it a float64 skips integers


def bad_value(table: Table, column: str, row: int, value: Any, problem: str) -> ValueInRowError:
    """Return the error for one cell; ``row`` counts from 0 at the table's first."""
    if value is None or (isinstance(value, str) and not value.strip()):
        shown = "is empty"
    else:
        text = repr(value.to_list() if isinstance(value, pl.Series) else value)
        shown = f"is {text}" if len(text) <= 60 else f"is {text[:57]}…"
    row += table.first_row
    return ValueInRowError(f"{table.where}, row {row + 1:,}, column '{column}' {shown}: {problem}")


def read_ids(table: Table, column: str) -> pl.Series:
    """Return a column of node ids as Int64 or String, without an empty one."""
    ids = _as_text(table.frame.get_column(column))
    if ids.dtype == pl.String and table.is_text:
        ids = ids.str.strip_chars()
    empty = ids.is_null() if ids.dtype != pl.String else (ids == "").fill_null(True)
    if empty.any():
        raise bad_value(
            table, column, _first(empty), None, f"every event needs its ids;{_drop(table, empty)}"
        )
    if ids.dtype == pl.String:
        return _integers_if_all_are(ids) if table.is_text else ids
    if not ids.dtype.is_numeric():
        problem = f"a node id must be text or a whole number, not {_kind(ids)}."
        raise bad_value(table, column, 0, ids[0], problem)
    whole = ids.cast(pl.Int64, strict=False)
    unusable = (whole.cast(ids.dtype) != ids).fill_null(True)
    if unusable.any():
        row = _first(unusable)
        problem = "a node id must be text or a whole number of at most 64 bits."
        raise bad_value(table, column, row, ids[row], problem)
    return whole


def of_one_type(src: pl.Series, dst: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return both as they are, or both as text where only one of them is text."""
    return (src, dst) if src.dtype == dst.dtype else (src.cast(pl.String), dst.cast(pl.String))


def _integers_if_all_are(text: pl.Series) -> pl.Series:
    """Return text as integers where nothing is lost by it ('007' stays text)."""
    integers = text.cast(pl.Int64, strict=False)
    if integers.null_count() or not (integers.cast(pl.String) == text).all():
        return text
    return integers


def read_times(table: Table, column: str) -> tuple[Tensor, str | None]:
    """Return times `[n]` as int64 or float64, and their unit where the column itself knows it."""
    times = parsed_times(table, column)
    whole = are_whole_seconds(times)
    return time_values(table, times, whole), "s" if whole else getattr(times.dtype, "time_unit", None)


def parsed_times(table: Table, column: str) -> pl.Series:
    """Return a column of times as numbers, datetimes or durations, without an empty one."""
    times = _as_text(table.frame.get_column(column))
    if times.dtype == pl.String:
        times = _times_from_text(table, times)
    missing = times.is_null()
    if missing.any():
        raise bad_value(
            table, column, _first(missing), None, f"every event needs a time;{_drop(table, missing)}"
        )
    return (times.cast(pl.Datetime("ms")) if isinstance(times.dtype, pl.Date) else times).alias(column)


def time_values(table: Table, times: pl.Series, whole_seconds: bool) -> Tensor:
    """Return parsed times `[n]` as int64 or float64; datetimes count seconds from 1970, or their unit."""
    column = times.name
    if isinstance(times.dtype, (pl.Datetime, pl.Duration)):
        per_second = _EPOCH_UNITS[str(times.dtype.time_unit)]
        times = times.cast(pl.Int64) // (per_second if whole_seconds else 1)
    if not times.dtype.is_numeric():
        problem = f"a time is a number, a date or ISO text, not {_kind(times)}."
        raise bad_value(table, column, 0, times[0], problem)
    fractional = times.dtype.is_float() or (isinstance(times.dtype, pl.Decimal) and times.dtype.scale > 0)
    values = times.cast(pl.Float64 if fractional else pl.Int64, strict=False)
    unusable = ~values.is_finite().fill_null(False)
    if unusable.any():
        row = _first(unusable)
        raw = table.frame.get_column(column)[row]
        raise bad_value(table, column, row, raw, "a time must be a finite 64-bit number.")
    return _tensor(values)


def _times_from_text(table: Table, text: pl.Series) -> pl.Series:
    """Return text as integers, floats or datetimes: the first of these that fits the whole column."""
    text = text.str.strip_chars()
    empty = (text == "").fill_null(True)
    if empty.any():
        raise bad_value(
            table, text.name, _first(empty), None, f"every event needs a time;{_drop(table, empty)}"
        )
    integers = text.cast(pl.Int64, strict=False)
    if not integers.null_count():
        return integers
    floats = text.cast(pl.Float64, strict=False)
    if not floats.null_count():
        written_out = text.str.contains(r"^[+-]?\d") & floats.is_finite()
        check_exact(table, floats.set(~written_out, 0.0))
        return floats
    datetimes = _datetimes(text)
    if not datetimes.null_count():
        return datetimes
    row = _first(min(floats, datetimes, key=pl.Series.null_count).is_null())
    problem = "not a time. Use numbers, or ISO dates like 2024-05-17T08:30:00."
    raise bad_value(table, text.name, row, text[row], problem)


def check_exact(table: Table, floats: pl.Series) -> None:
    """Raise if one of these times, as floats, has lost digits."""
    rounded = floats.abs() > _EXACT_FLOAT
    if rounded.any():
        row = _first(rounded)
        problem = "a time this large keeps its digits only if the whole column is 64-bit integers."
        raise bad_value(table, floats.name, row, table.frame.get_column(floats.name)[row], problem)


def _datetimes(text: pl.Series) -> pl.Series:
    """Return ISO text as UTC datetimes, null where it is none; without a zone it is taken as UTC."""
    parts = text.str.extract_groups(_ISO).struct
    date, minute, second, fraction, zone = (parts.field(name) for name in parts.fields)
    zone = zone.str.replace(r"(?i)^(Z|UTC)$", "+00:00").fill_null("+00:00")
    iso = (
        date
        + "T"
        + minute.fill_null("00:00")
        + second.fill_null(":00")
        + "."
        + fraction.fill_null("0")
        + zone
    )
    micro = iso.str.to_datetime(_ISO_PARTS, time_unit="us", strict=False)
    if not (fraction.str.len_bytes() > 6).any():
        return micro
    nano = iso.str.to_datetime(_ISO_PARTS, time_unit="ns", strict=False)
    fits = nano.cast(pl.Int64) // 1000 == micro.cast(pl.Int64)  # nanoseconds reach from 1677 to 2262
    return pl.select(pl.when(fits).then(nano)).to_series()


def are_whole_seconds(times: pl.Series) -> bool:
    """Return whether these are datetimes or durations without a fraction of a second."""
    if not isinstance(times.dtype, (pl.Datetime, pl.Duration)):
        return False
    return bool((times.cast(pl.Int64) % _EPOCH_UNITS[str(times.dtype.time_unit)] == 0).all())


def read_numbers(table: Table, columns: tuple[str, ...]) -> Tensor:
    """Return numeric columns as float32 `[n, d]`; every value must be finite as a float32."""
    numeric = []
    for name in columns:
        column = table.frame.get_column(name)
        if column.dtype == pl.String:
            column = column.str.strip_chars()
        elif not (column.dtype.is_numeric() or column.dtype in (pl.Boolean, pl.Null)):
            problem = f"a numeric feature cannot be {_kind(column)}; pass it in categories=… instead."
            raise bad_value(table, name, 0, column[0], problem)
        numeric.append(column.cast(pl.Float64, strict=False))
    with np.errstate(over="ignore"):
        values = np.stack([column.to_numpy() for column in numeric], axis=1).astype(np.float32)
    finite = np.isfinite(values)
    if not finite.all():
        row, place = (int(i) for i in np.argwhere(~finite)[0])
        raw = table.frame.get_column(columns[place])[row]
        is_word = isinstance(raw, str) and raw.strip() and numeric[place][row] is None
        hint = " Text goes in categories=…" if is_word else ""
        raise bad_value(table, columns[place], row, raw, f"a feature must be a finite float32.{hint}")
    return torch.from_numpy(values)


def features_apart(where: str, features: Any, num_events: int) -> tuple[tuple[str, ...], Tensor]:
    """Return the names and values of features kept apart from their events."""
    names, apart = _numbers_of(features, "features")
    if len(apart) != num_events:
        raise RowCountError(
            f"features have {len(apart):,} rows, but there are {num_events:,} events in "
            f"{where}; row k of one must belong to row k of the other."
        )
    return names, apart


def node_features(features: Any, num_nodes: int) -> Tensor:
    """Return node features that are one row per node."""
    _, values = _numbers_of(features, "node_features")
    if len(values) != num_nodes:
        raise RowCountError(
            f"node_features have {len(values):,} rows, but there are {num_nodes:,} nodes; give one row each."
        )
    return values


def _numbers_of(features: Any, what: str) -> tuple[tuple[str, ...], Tensor]:
    """Return the names and, as float32 `[rows, d]`, the values of an array or of every column of a table."""
    try:
        features = np.asarray(features) if isinstance(features, (list, tuple)) else features
    except ValueError:
        raise OptionError(f"{what} must be 2-D, but the rows differ in length.") from None
    table = open_table(features, unnamed=(), what=what)
    names = tuple(table.frame.columns)
    return names, read_numbers(table, names)


def read_categories(table: Table, column: str) -> pl.Series:
    """Return a column of categories as what they are, without an empty one."""
    values = _as_text(table.frame.get_column(column))
    if values.dtype == pl.String and table.is_text:
        values = _integers_if_all_are(values.str.strip_chars())
    if values.null_count():
        row = _first(values.is_null())
        problem = "fill it first, for instance with a category of its own."
        raise bad_value(table, column, row, None, problem)
    if values.dtype.is_nested() or values.dtype == pl.Object:
        raise bad_value(table, column, 0, values[0], f"a category cannot be {_kind(values)}.")
    return values


def read_labels(table: Table, column: str) -> Tensor:
    """Return integer labels `[n]`; true and false count as 1 and 0."""
    labels = _as_text(table.frame.get_column(column))
    numbers = labels
    if labels.dtype == pl.String:
        numbers = labels.str.strip_chars().str.replace(r"(?i)^true$", "1").str.replace(r"(?i)^false$", "0")
    elif not (labels.dtype.is_numeric() or labels.dtype in (pl.Boolean, pl.Null)):
        problem = f"a label must be a whole number, not {_kind(labels)}."
        raise bad_value(table, column, 0, labels[0], problem)
    numbers = numbers.cast(pl.Float64, strict=False)
    whole = ((numbers.abs() < _EXACT_FLOAT) & (numbers == numbers.round())).fill_null(False)
    if not whole.all():
        row = _first(~whole)
        raise bad_value(table, column, row, labels[row], "a label must be a whole number.")
    return _tensor(numbers.cast(pl.Int64))


def _as_text(values: pl.Series) -> pl.Series:
    """Return categorical columns as the text they stand for, all others as they are."""
    return values.cast(pl.String) if isinstance(values.dtype, (pl.Categorical, pl.Enum)) else values


def _kind(values: pl.Series) -> str:
    return "of mixed or unknown type" if values.dtype == pl.Object else str(values.dtype)


def _drop(table: Table, empty: pl.Series) -> str:
    rows = int(empty.sum())
    known = f" {'' if table.whole else 'at least '}{rows:,}"
    return f"{known} {'row lacks one' if rows == 1 else 'rows lack one'}: drop or fill before reading."


def _first(mask: pl.Series) -> int:
    return int(mask.arg_max() or 0)


def _tensor(values: pl.Series) -> Tensor:
    return torch.from_numpy(values.to_numpy(writable=True))
