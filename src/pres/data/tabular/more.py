"""Further events of a stream: rows in the user's ids, read in the terms of the stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.data.ids import positions
from pres.data.stream import MOST_FEATURE, EventStream
from pres.data.tabular.columns import resolve_columns
from pres.data.tabular.pairs import times_of
from pres.data.tabular.rows import Table
from pres.data.tabular.values import bad_value, features_apart, read_categories, read_ids, read_numbers
from pres.errors import OptionError

_ROLES = ("src", "dst", "t")


@dataclass(frozen=True, eq=False)
class MoreEvents:
    """Events that a stream does not have yet, in the order of the rows they were read from."""

    src: pl.Series  # the user's ids, of the type of the stream's
    dst: pl.Series
    t: Tensor  # [n] in the stream's unit and type
    x: Tensor | None  # [n, d] float32, if the stream has numeric features
    categories: Tensor | None  # [n, c] int64, if it has categorical ones

    def __len__(self) -> int:
        return len(self.t)

    def at(self, rows: Tensor) -> MoreEvents:
        """Return some of the events."""
        places = rows.numpy()
        x, categories = (None if of is None else of[rows] for of in (self.x, self.categories))
        return MoreEvents(self.src.gather(places), self.dst.gather(places), self.t[rows], x, categories)


def read_more(table: Table, events: EventStream, features: Any = None) -> MoreEvents:
    """Return the events of a table, in the ids, the unit of time and the features of ``events``.

    Columns are those that the stream was read from, or that look alike. Numeric features are columns by the
    names that the stream has for them, columns ``x0, x1, …``, or ``features`` with one row per event.
    """
    names, info = table.frame.columns, events.info
    options = {} if info.origin is None else info.origin.options
    given = {role: options[role] for role in _ROLES if options.get(role) in names}
    columns = resolve_columns(
        names, table.where, **{"src": None, "dst": None, "t": None} | given, x=(), categories=(), label=None
    )
    ids = events.ids
    of_dst = ids.src_values if ids.dst_values is None else ids.dst_values
    return MoreEvents(
        src=_ids(table, columns.src, ids.src_values),
        dst=_ids(table, columns.dst, of_dst),
        t=_of_type(table, columns.t, times_of(table, columns.t, events, numbers_fit=True), events.t.dtype),
        x=_numeric(table, events, features),
        categories=_categories(table, events),
    )


def _ids(table: Table, column: str, known: pl.Series) -> pl.Series:
    """Return a column of ids of the type of those that are ``known``."""
    ids = read_ids(table, column)
    if ids.dtype == known.dtype:
        return ids
    same = ids.cast(known.dtype, strict=False)
    changed = (same.cast(ids.dtype, strict=False) != ids).fill_null(True)  # '007' is not 7
    if changed.any():
        row = int(changed.arg_max() or 0)
        raise bad_value(table, ids, row, f"the stream's ids are of type {known.dtype}.")
    return same


def _of_type(table: Table, column: str, t: Tensor, wanted: torch.dtype) -> Tensor:
    same = t.to(wanted)
    wrong = (same != t).nonzero()
    if len(wrong):
        row = int(wrong[0])
        shown = table.frame.get_column(column)
        raise bad_value(table, shown, row, "the stream's times are whole numbers.")
    return same


def _numeric(table: Table, events: EventStream, features: Any) -> Tensor | None:
    if events.x is None:
        if features is not None:
            raise OptionError(f"features were given, but '{events.info.title}' has no numeric ones.")
        return None
    width = events.x.shape[1]
    plain = isinstance(features, np.ndarray) and features.dtype.kind in "fiu"
    if plain and features.shape == (table.frame.height, width):
        with np.errstate(over="ignore"):
            x = torch.from_numpy(features.astype(np.float32))
        if bool((x.abs() <= MOST_FEATURE).all()):
            return x  # as if read column by column, which costs a millisecond and more
    if features is not None:
        _, x = features_apart(table.where, features, table.frame.height)
        if x.shape[1] != width:
            raise OptionError(f"features have {x.shape[1]:,} columns, but the stream's have {width:,}.")
        return x
    there = set(table.frame.columns)
    for names in events.info.feature_names, tuple(f"x{i}" for i in range(width)):
        if len(names) == width and there.issuperset(names):
            return read_numbers(table, names)
    raise OptionError(
        f"{table.where} lacks the stream's {width:,} numeric features: give the columns "
        f"{', '.join((events.info.feature_names or ('x0',))[:3])}, …, or features= with one row per event."
    )


def _categories(table: Table, events: EventStream) -> Tensor | None:
    if events.categories is None:
        return None
    found = []
    for name, levels in zip(events.info.category_names, events.info.category_levels, strict=True):
        if name not in table.frame.columns:
            raise OptionError(f"{table.where} lacks the column '{name}', a category of the stream's events.")
        values = read_categories(table, name)
        place = positions(values, pl.Series(name, levels))
        if bool((place < 0).any()):
            row = int((place < 0).nonzero()[0])
            problem = "the stream has no such category, and no model has learned it: train anew with it."
            raise bad_value(table, values, row, problem)
        found.append(place)
    return torch.stack(found, dim=1)
