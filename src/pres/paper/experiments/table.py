"""A table of results: cells that know their spread, shown as text, Markdown or plain values."""

from __future__ import annotations

import dataclasses
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from scipy.stats import t as student


@dataclass(frozen=True)
class Spread:
    """A mean over seeds; one seed has no standard deviation, and no standard error."""

    mean: float
    std: float | None
    count: int
    printed: bool = False  # by the paper, whose ± is the standard deviation

    @classmethod
    def of(cls, values: Sequence[float | None], scale: float = 1.0) -> Spread | None:
        """Return the spread of those values that are known, or None."""
        known = [scale * float(value) for value in values if value is not None]
        if not known:
            return None
        std = statistics.stdev(known) if len(known) > 1 else None
        return cls(statistics.fmean(known), std, len(known))

    @property
    def error(self) -> float | None:
        """The standard error of the mean; None for one seed."""
        return None if self.std is None else self.std / math.sqrt(self.count)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the mean (Student's t); None for one seed."""
        if self.error is None:
            return None
        half = float(student.ppf(0.975, self.count - 1)) * self.error
        return self.mean - half, self.mean + half


Cell = str | int | float | bool | Spread | None


def signed(value: float, digits: int = 1) -> str:
    """Return a difference with its sign, or without one where nothing is left of it."""
    text = f"{value:+,.{digits}f}"
    return text.replace("-", "−") if any(digit in text for digit in "123456789") else text[1:]


@dataclass(frozen=True)
class Heading:
    """What a column holds."""

    name: str
    title: str
    digits: int = 1  # after the point, of numbers that are not whole
    signed: bool = False  # whether a plus is shown: differences
    repeatable: bool = True  # False of times and of memory, which no two runs have alike
    interval: bool = False  # whether a spread is shown by its confidence interval

    def shown(self, cell: Cell) -> str:
        """Return a cell as people read it."""
        if cell is None:
            return "–"
        if isinstance(cell, Spread):
            return self._number(cell.mean) + self._around(cell)
        if isinstance(cell, bool):
            return "yes" if cell else "no"
        if isinstance(cell, int):
            return signed(cell, 0) if self.signed else f"{cell:,}".replace("-", "−")
        return self._number(cell) if isinstance(cell, float) else cell

    def _around(self, cell: Spread) -> str:
        if self.interval:
            bounds = cell.interval
            return "" if bounds is None else f" [{', '.join(map(self._number, bounds))}]"
        around = cell.std if cell.printed else cell.error
        return "" if around is None else f" ± {around:.{self.digits}f}"

    def _number(self, value: float) -> str:
        if not math.isfinite(value):
            return str(value)
        return signed(value, self.digits) if self.signed else f"{value:,.{self.digits}f}".replace("-", "−")


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings."""

    headings: tuple[Heading, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def shown(self) -> list[list[str]]:
        """Return every cell as people read it."""
        return [[h.shown(cell) for h, cell in zip(self.headings, row, strict=True)] for row in self.rows]

    def sort_keys(self) -> list[list[float | str]]:
        """Return, for every cell, what it is sorted by."""
        return [[_key(cell) for cell in row] for row in self.rows]

    def numeric(self) -> list[bool]:
        """Return which columns stand on the right: those of numbers, whether or not all are known."""
        columns = list(zip(*self.rows, strict=True)) or [() for _ in self.headings]
        return [
            any(cell is not None for cell in column)
            and not any(isinstance(cell, str | bool) for cell in column)
            for column in columns
        ]

    def markdown(self) -> str:
        """Return the table as Markdown; numbers stand on the right."""
        titles = [heading.title for heading in self.headings]
        lines = ["| " + " | ".join(row) + " |" for row in (titles, *self.shown())]
        rule = "|" + "|".join("---:" if right else "---" for right in self.numeric()) + "|"
        return "\n".join([lines[0], rule, *lines[1:]])

    def repeatable(self) -> Table:
        """Return the table without the columns that no two runs have alike."""
        kept = [i for i, heading in enumerate(self.headings) if heading.repeatable]
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return Table(tuple(self.headings[i] for i in kept), rows)

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, saved: dict[str, Any]) -> Table:
        """Return the table of which `to_dict` made ``saved``."""
        headings = tuple(Heading(**heading) for heading in saved["headings"])
        rows = ((Spread(**c) if isinstance(c, dict) else c for c in row) for row in saved["rows"])
        return cls(headings, tuple(map(tuple, rows)))


def _key(cell: Cell) -> float | str:
    if cell is None:
        return ""
    return cell.mean if isinstance(cell, Spread) else cell
