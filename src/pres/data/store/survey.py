"""What only the whole of a column tells: its distinct values, its type, its range; found part by part."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl
from torch import Tensor

from pres.data.tabular.decisions import of_one_type
from pres.data.tabular.table import Table
from pres.data.tabular.values import are_whole_seconds, bad_value, check_exact, parsed_times, time_values
from pres.errors import UnreadableSourceError


@dataclass
class Distinct:
    """The distinct values of a column; text as soon as one part of it is text."""

    known: pl.Series | None = None
    _new: list[pl.Series] = field(default_factory=list)

    def add(self, values: pl.Series) -> None:
        """Take in the values of a part."""
        self._new.append(values.unique())
        if sum(map(len, self._new)) > max(1 << 20, 0 if self.known is None else len(self.known)):
            self._merge()

    def values(self) -> pl.Series:
        """Return the distinct values in order."""
        self._merge()
        assert self.known is not None
        self.known = self.known.sort()  # nothing to do where it is known to be in order
        return self.known

    def _merge(self) -> None:
        for new in self._new:
            if self.known is None:
                self.known = new
            else:
                self.known = pl.concat(of_one_type(self.known, new)).unique()
        self._new = []


@dataclass
class Times:
    """The type of a column of times: whole numbers, numbers, or dates in a unit that fits all of them."""

    kind: pl.DataType | None = None
    whole_seconds: bool = True

    def add(self, table: Table, column: str) -> None:
        """Take in a part; dates and numbers cannot be told together."""
        times = parsed_times(table, column)
        self.kind = times.dtype if self.kind is None else self.kind
        if times.dtype.is_temporal() != self.kind.is_temporal():
            problem = "not a time like those before it. Use numbers, or ISO dates like 2024-05-17T08:30:00."
            raise bad_value(table, column, 0, table.frame.get_column(column)[0], problem)
        if times.dtype.is_float() or getattr(times.dtype, "time_unit", None) == "ns":
            self.kind = times.dtype
        self.whole_seconds = self.whole_seconds and are_whole_seconds(times)

    def values(self, table: Table, column: str) -> tuple[Tensor, str | None]:
        """Return the times of a part as they are in the whole, and their unit."""
        times = parsed_times(table, column)
        assert self.kind is not None
        if not self._foresaw(times):
            raise changed(table)
        if self.kind.is_float() and not times.dtype.is_float():
            times = times.cast(pl.Float64)
            check_exact(table, column, times)
        elif times.dtype != self.kind:
            nano = times.cast(self.kind)
            lost = nano.cast(pl.Int64) // 1000 != times.cast(pl.Int64)  # nanoseconds reach from 1677 to 2262
            if lost.any():
                row = int(lost.arg_max() or 0)
                raw = table.frame.get_column(column)[row]
                raise bad_value(table, column, row, raw, "a date that does not fit 64 bits in nanoseconds.")
            times = nano
        return time_values(table, column, times, self.whole_seconds)

    def _foresaw(self, times: pl.Series) -> bool:
        """Return whether the times of a part are of a type that all parts together gave."""
        now, whole = times.dtype, self.kind
        assert whole is not None
        exact = not now.is_float() or whole.is_float()
        fine = getattr(now, "time_unit", None) != "ns" or getattr(whole, "time_unit", None) == "ns"
        seconds = not self.whole_seconds or are_whole_seconds(times)
        return now.is_temporal() == whole.is_temporal() and exact and fine and seconds


def places(table: Table, values: pl.Series, known: pl.Series) -> np.ndarray[Any, Any]:
    """Return where each value of a part is among the ``known``, which are distinct and in order."""
    values = values.cast(known.dtype, strict=False)
    found = known.search_sorted(values).to_numpy().astype(np.int64)
    if not (known.gather(np.minimum(found, len(known) - 1)) == values).fill_null(False).all():
        raise changed(table)
    return found


def check_foreseen(table: Table, ids: pl.Series, known: pl.Series) -> None:
    """Raise if dense ids of a part lie outside the ``known``, which are in order."""
    if not ids.dtype.is_integer() or not ids.is_between(int(known[0]), int(known[-1])).all():
        raise changed(table)


def category_places(table: Table, values: pl.Series, known: pl.Series) -> np.ndarray[Any, Any]:
    """Return where each category of a part is among the ``known``, which may be of any type."""
    values, count = values.cast(known.dtype, strict=False), pl.int_range(len(known), eager=True)
    found = values.replace_strict(known, count, default=None, return_dtype=pl.Int64)
    if found.null_count():
        raise changed(table)
    return found.to_numpy()


def changed(table: Table) -> UnreadableSourceError:
    """Return the error for a table that is another one when it is gone through again."""
    return UnreadableSourceError(
        f"{table.where} changed while it was read: a store takes it in two passes, and they found different "
        "rows. Write the store again once the source rests."
    )
