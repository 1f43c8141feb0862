"""Columns of times: numbers, dates or text into numbers of one unit, with the row of a bad value."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl
from torch import Tensor

from pres.data.tabular.rows import Table
from pres.data.tabular.values import (
    EXACT_FLOAT,
    as_tensor,
    as_text,
    bad_value,
    check_filled,
    first_true,
    type_name,
)

_EPOCH_UNITS = {"ns": 1_000_000_000, "us": 1_000_000, "ms": 1_000}
_ISO = (  # date, minute, second, fraction of a second, zone
    r"(?i)^(\d{4}-\d{2}-\d{2})"
    r"(?:[T ](\d{2}:\d{2})(?:(:\d{2})(?:[.,](\d{1,9}))?)?\s*(Z|UTC|[+-]\d{2}(?::?\d{2})?)?)?$"
)
_LEAP_SECOND = r"(?i)^\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}:60"
_ISO_PARTS = "%Y-%m-%dT%H:%M:%S%.f%#z"


def read_times(table: Table, column: str) -> tuple[Tensor, str | None]:
    """Return times `[n]` as int64 or float64, and their unit where the column itself knows it."""
    times = parsed_times(table, column)
    whole = are_whole_seconds(times)
    return time_values(table, times, whole), "s" if whole else getattr(times.dtype, "time_unit", None)


def parsed_times(table: Table, column: str) -> pl.Series:
    """Return a column of times as numbers, datetimes or durations, without an empty one."""
    times = as_text(table.frame.get_column(column))
    if times.dtype == pl.String:
        times = _times_from_text(table, times)
    if times.dtype == pl.Int64 and not times.null_count():
        return times.alias(column)
    missing = times.is_null()
    check_filled(table, times.alias(column), missing, "every event needs a time")
    return (times.cast(pl.Datetime("ms")) if isinstance(times.dtype, pl.Date) else times).alias(column)


def time_values(table: Table, times: pl.Series, whole_seconds: bool) -> Tensor:
    """Return parsed times `[n]` as int64 or float64; datetimes count seconds from 1970, or their unit."""
    if isinstance(times.dtype, (pl.Datetime, pl.Duration)):
        per_second = _EPOCH_UNITS[str(times.dtype.time_unit)]
        times = times.cast(pl.Int64) // (per_second if whole_seconds else 1)
    if not times.dtype.is_numeric():
        problem = f"a time is a number, a date or ISO text, not {type_name(times)}."
        raise bad_value(table, times, 0, problem)
    if times.dtype == pl.Int64 and not times.null_count():
        return as_tensor(times)
    fractional = times.dtype.is_float() or (isinstance(times.dtype, pl.Decimal) and times.dtype.scale > 0)
    values = times.cast(pl.Float64 if fractional else pl.Int64, strict=False)
    unusable = ~values.is_finite().fill_null(False)
    if unusable.any():
        given = table.frame.get_column(times.name)
        raise bad_value(table, given, first_true(unusable), "a time must be a finite 64-bit number.")
    if fractional and not isinstance(times.dtype, pl.Float64):
        check_exact(table, values)
    return as_tensor(values)


def _times_from_text(table: Table, text: pl.Series) -> pl.Series:
    """Return text as integers, floats or datetimes: the first of these that fits the whole column."""
    text = text.str.strip_chars()
    empty = (text == "").fill_null(True)
    check_filled(table, text, empty, "every event needs a time")
    integers = text.cast(pl.Int64, strict=False)
    if not integers.null_count():
        return integers
    floats = text.cast(pl.Float64, strict=False)
    if not floats.null_count():
        written_out = text.str.contains(r"^[+-]?\d") & floats.is_finite()
        check_exact(table, floats.set(~written_out, 0.0))
        return floats
    leap = text.str.contains(_LEAP_SECOND).fill_null(False)
    if leap.any():
        problem = "a leap second, which no time since 1970 counts. Give the second before or after it."
        raise bad_value(table, text, first_true(leap), problem)
    datetimes = _datetimes(text)
    if not datetimes.null_count():
        return datetimes
    row = first_true(min(floats, datetimes, key=pl.Series.null_count).is_null())
    problem = "not a time. Use numbers, or ISO dates like 2024-05-17T08:30:00."
    raise bad_value(table, text, row, problem)


def check_exact(table: Table, floats: pl.Series) -> None:
    """Raise if one of these times, as floats, may have lost digits."""
    rounded = floats.abs() >= EXACT_FLOAT
    if rounded.any():
        problem = "a time this large keeps its digits only if the whole column is 64-bit integers."
        given = table.frame.get_column(floats.name)
        shown = given.cast(pl.String) if table.is_text else given
        raise bad_value(table, shown, first_true(rounded), problem)


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


def common_kind(kinds: Sequence[pl.DataType]) -> pl.DataType:
    """Return the type for a column whose parts are of these: floats first, then nanoseconds."""
    finest = [kind for kind in kinds if kind.is_float() or getattr(kind, "time_unit", None) == "ns"]
    return (finest or list(kinds))[0]


def in_common_kind(table: Table, times: pl.Series, kind: pl.DataType) -> pl.Series:
    """Return the parsed times of a part in the type of the whole column."""
    if times.dtype == kind:
        return times
    if not times.dtype.is_temporal():
        times = times.cast(pl.Float64)
        check_exact(table, times)
        return times
    nano = times.cast(kind, strict=False)  # nanoseconds reach from 1677 to 2262
    lost = (nano.cast(pl.Int64) // 1000 != times.cast(pl.Int64)).fill_null(True)
    if lost.any():
        problem = "a date that does not fit 64 bits in nanoseconds."
        raise bad_value(table, times, first_true(lost), problem)
    return nano
