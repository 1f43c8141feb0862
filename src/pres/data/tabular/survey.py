"""What only the whole of a column tells: its distinct values, its type, its range; found part by part."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl
from torch import Tensor

from pres.data.tabular.rows import Table
from pres.data.tabular.values import are_whole_seconds, bad_value, check_exact, of_one_type, time_values
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

    def add(self, table: Table, times: pl.Series) -> None:
        """Take in the parsed times of a part; dates and numbers cannot be told together."""
        self.kind = times.dtype if self.kind is None else self.kind
        if times.dtype.is_temporal() != self.kind.is_temporal():
            problem = "not a time like those before it. Use numbers, or ISO dates like 2024-05-17T08:30:00."
            raise bad_value(table, times.name, 0, table.frame.get_column(times.name)[0], problem)
        if times.dtype.is_float() or getattr(times.dtype, "time_unit", None) == "ns":
            self.kind = times.dtype
        self.whole_seconds = self.whole_seconds and are_whole_seconds(times)

    @property
    def unit(self) -> str | None:
        """What dates count; None for numbers."""
        return "s" if self.whole_seconds else getattr(self.kind, "time_unit", None)

    def values(self, table: Table, times: pl.Series) -> Tensor:
        """Return the parsed times `[n]` of a part as they are in the whole."""
        assert self.kind is not None
        if not self._foresaw(times):
            raise changed(table.where)
        if self.kind.is_float() and not times.dtype.is_float():
            times = times.cast(pl.Float64)
            check_exact(table, times)
        elif times.dtype != self.kind:
            nano = times.cast(self.kind)
            lost = nano.cast(pl.Int64) // 1000 != times.cast(pl.Int64)  # nanoseconds reach from 1677 to 2262
            if lost.any():
                row = int(lost.arg_max() or 0)
                raw = table.frame.get_column(times.name)[row]
                raise bad_value(
                    table, times.name, row, raw, "a date that does not fit 64 bits in nanoseconds."
                )
            times = nano
        return time_values(table, times, self.whole_seconds)

    def _foresaw(self, times: pl.Series) -> bool:
        """Return whether the times of a part are of a type that all parts together gave."""
        now, whole = times.dtype, self.kind
        assert whole is not None
        exact = not now.is_float() or whole.is_float()
        fine = getattr(now, "time_unit", None) != "ns" or getattr(whole, "time_unit", None) == "ns"
        seconds = not self.whole_seconds or are_whole_seconds(times)
        return now.is_temporal() == whole.is_temporal() and exact and fine and seconds


class Order:
    """The range of times that come in parts, and how often they go back."""

    def __init__(self) -> None:
        self.count = 0
        self.first: float = 0
        self.last: float = 0
        self.backwards = 0  # times that are less than just before
        self.first_back = 0  # the row of the first of them
        self._latest: Tensor | None = None

    def add(self, t: Tensor) -> None:
        """Take in the times `[n]` of a part."""
        if self._latest is not None and bool(t[0] < self._latest):
            self._went_back(self.count, 1)
        back = (t[1:] < t[:-1]).nonzero().squeeze(1)
        if len(back):
            self._went_back(self.count + 1 + int(back[0]), len(back))
        lowest, highest = t.min().item(), t.max().item()
        self.first = min(self.first, lowest) if self.count else lowest
        self.last = max(self.last, highest) if self.count else highest
        self._latest, self.count = t[-1].clone(), self.count + len(t)

    def _went_back(self, row: int, times: int) -> None:
        self.first_back = self.first_back or row
        self.backwards += times


def changed(where: str) -> UnreadableSourceError:
    """Return the error for a source that is another one when it is gone through again."""
    return UnreadableSourceError(
        f"{where} changed while it was read: a store takes it in two passes, and they found different "
        "rows. Write the store again once the source rests."
    )
