"""Columns into tensors: ids, features, categories and labels, with the row of a bad value.

Rows are counted from 1, after the header.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.data.stream import MOST_FEATURE
from pres.data.tabular.rows import Table, open_table, quiet_panics
from pres.errors import OptionError, RowCountError, ValueInRowError

EXACT_FLOAT = 2**53  # beyond it a float64 skips integers


def bad_value(table: Table, column: pl.Series, row: int, problem: str) -> ValueInRowError:
    """Return the error for one cell of a column; ``row`` counts from 0 at the table's first."""
    value = _value(column, row)
    if value is None or (isinstance(value, str) and not value.strip()):
        shown = "is empty"
    else:
        text = repr(value.to_list() if isinstance(value, pl.Series) else value)
        shown = f"is {text}" if len(text) <= 60 else f"is {text[:57]}…"
    row += table.first_row
    return ValueInRowError(f"{table.where}, row {row + 1:,}, column '{column.name}' {shown}: {problem}")


def _value(column: pl.Series, row: int) -> Any:
    """Return a cell; a date beyond Python's calendar, where polars panics, as its number."""
    try:
        with quiet_panics():
            return column[row]
    except (pl.exceptions.PanicException, ArithmeticError, ValueError):
        return column.to_physical()[row]


def read_ids(table: Table, column: str) -> pl.Series:
    """Return a column of node ids as Int64 or String, without an empty one."""
    ids = as_text(table.frame.get_column(column))
    if ids.dtype == pl.String and table.is_text:
        ids = ids.str.strip_chars()
    if ids.dtype == pl.Int64 and not ids.null_count():  # each check costs a millisecond, even of one event
        return ids
    empty = ids.is_null() if ids.dtype != pl.String else (ids == "").fill_null(True)
    check_filled(table, ids, empty, "every event needs its ids")
    if ids.dtype == pl.String:
        return _integers_if_all_are(ids) if table.is_text else ids
    if not ids.dtype.is_numeric():
        problem = f"a node id must be text or a whole number, not {type_name(ids)}."
        raise bad_value(table, ids, 0, problem)
    whole = ids.cast(pl.Int64, strict=False)
    unusable = (whole.cast(ids.dtype, strict=False) != ids).fill_null(True)
    if unusable.any():
        problem = "a node id must be text or a whole number of at most 64 bits."
        raise bad_value(table, ids, first_true(unusable), problem)
    if ids.dtype.is_float():
        most = 2**24 if ids.dtype == pl.Float32 else EXACT_FLOAT
        if (rounded := ids.abs() >= most).any():
            problem = "a float of this size has lost digits: two ids may have become one. Give integers."
            raise bad_value(table, ids, first_true(rounded), problem)
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


def read_numbers(table: Table, columns: tuple[str, ...]) -> Tensor:
    """Return numeric columns as float32 `[n, d]`; every value must be finite and of a usable size."""
    given = [table.frame.get_column(name) for name in columns]
    for column in given:
        if not (column.dtype.is_numeric() or column.dtype in (pl.String, pl.Boolean, pl.Null)):
            problem = f"a numeric feature cannot be {type_name(column)}; pass it in categories=… instead."
            raise bad_value(table, column, 0, problem)
    frame = pl.DataFrame([column.alias(str(place)) for place, column in enumerate(given)])
    numeric = frame.select(pl.col(pl.String).str.strip_chars().cast(pl.Float64, strict=False))
    numeric = frame.with_columns(numeric).cast(pl.Float64, strict=False)
    with np.errstate(over="ignore"):
        values = numeric.to_numpy(order="c").astype(np.float32)
    usable = np.abs(values) <= MOST_FEATURE
    if not usable.all():
        row, place = (int(i) for i in np.argwhere(~usable)[0])
        if np.isfinite(values[row, place]):
            problem = f"a feature beyond ±{MOST_FEATURE:g} overflows in training. Scale the column."
        else:
            raw = _value(given[place], row)
            is_word = isinstance(raw, str) and raw.strip() and numeric[row, place] is None
            problem = f"a feature must be a finite float32.{' Text goes in categories=…' if is_word else ''}"
        raise bad_value(table, given[place], row, problem)
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
    values = as_text(table.frame.get_column(column))
    if values.dtype == pl.String and table.is_text:
        values = _integers_if_all_are(values.str.strip_chars())
    if values.null_count():
        problem = "fill it first, for instance with a category of its own."
        raise bad_value(table, values, first_true(values.is_null()), problem)
    if values.dtype.is_nested() or values.dtype == pl.Object:
        raise bad_value(table, values, 0, f"a category cannot be {type_name(values)}.")
    if values.dtype.is_temporal():
        for row in (values.to_physical().arg_min(), values.to_physical().arg_max()):
            assert row is not None
            if isinstance(_value(values, row), int):
                raise bad_value(table, values, row, "a date outside the years 1 to 9999.")
    return values


def read_labels(table: Table, column: str) -> Tensor:
    """Return integer labels `[n]`; true and false count as 1 and 0."""
    labels = as_text(table.frame.get_column(column))
    numbers = labels
    if labels.dtype == pl.String:
        numbers = labels.str.strip_chars().str.replace(r"(?i)^true$", "1").str.replace(r"(?i)^false$", "0")
    elif not (labels.dtype.is_numeric() or labels.dtype in (pl.Boolean, pl.Null)):
        problem = f"a label must be a whole number, not {type_name(labels)}."
        raise bad_value(table, labels, 0, problem)
    numbers = numbers.cast(pl.Float64, strict=False)
    whole = ((numbers.abs() < EXACT_FLOAT) & (numbers == numbers.round())).fill_null(False)
    if not whole.all():
        raise bad_value(table, labels, first_true(~whole), "a label must be a whole number.")
    return as_tensor(numbers.cast(pl.Int64))


def as_text(values: pl.Series) -> pl.Series:
    """Return categorical columns as the text they stand for, all others as they are."""
    return values.cast(pl.String) if isinstance(values.dtype, (pl.Categorical, pl.Enum)) else values


def type_name(values: pl.Series) -> str:
    """Return what a message calls the type of a column."""
    return "of mixed or unknown type" if values.dtype == pl.Object else str(values.dtype)


def check_filled(table: Table, column: pl.Series, empty: pl.Series, rule: str) -> None:
    """Raise if some rows of a column are empty."""
    rows = int(empty.sum())
    if rows:
        least, lack = "" if table.whole else "at least ", "row lacks one" if rows == 1 else "rows lack one"
        problem = f"{rule}; {least}{rows:,} {lack}: drop or fill before reading."
        raise bad_value(table, column, first_true(empty), problem)


def first_true(mask: pl.Series) -> int:
    """Return the first row where a mask is true."""
    return int(mask.arg_max() or 0)


def as_tensor(values: pl.Series) -> Tensor:
    """Return a column of numbers as a tensor that may be written to."""
    return torch.from_numpy(values.to_numpy(writable=True))
