"""A table that is never in memory as a whole: its rows come in parts, as often as they are wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pres.data.tabular.panics import quiet_panics
from pres.data.tabular.table import PARQUET, TEXT, Table, check_there, explain, kind_of
from pres.data.tabular.text import row_too_long, text_columns, text_options
from pres.errors import EmptySourceError, PresError, UnreadableSourceError, one_line


@dataclass(frozen=True)
class Scan:
    """A polars query over a file, or of the user's own, and what a `Table` of it would say of itself."""

    lazy: pl.LazyFrame
    columns: tuple[str, ...]
    about: Table  # without rows
    explained: Callable[[BaseException], str]  # why it cannot be read

    def parts(self, columns: Sequence[str], rows: int) -> Iterator[Table]:
        """Yield the rows of some columns in order, so many at a time, and none that is blank to the end."""
        filled = "".join(self.columns) + "filled"  # a name that is not taken
        found = self.lazy
        if self.about.is_text:
            found = found.with_columns(pl.any_horizontal(pl.all().is_not_null()).alias(filled))
            columns = [*columns, filled]
        first_row, blank = 0, pl.DataFrame()
        for frame in self._batches(found.select(list(dict.fromkeys(columns))), rows):
            if self.about.is_text:
                if blank.height:
                    frame = pl.concat([blank, frame])
                last = frame.get_column(filled).arg_true().max()
                kept = 0 if last is None else int(str(last)) + 1
                blank, frame = frame.slice(kept), frame.head(kept).drop(filled)
            if frame.height:
                yield Table(frame, self.about.where, self.about.is_text, self.about.name, first_row, False)
                first_row += frame.height
        if first_row == 0:
            raise EmptySourceError(f"{self.about.where} has no rows.")

    def _batches(self, query: pl.LazyFrame, rows: int) -> Iterator[pl.DataFrame]:
        batches = query.collect_batches(chunk_size=rows, lazy=True, engine="streaming")
        while True:
            with _explaining(self.explained):
                frame = next(batches, None)
            if frame is None:
                return
            yield frame


def scan(source: Any, *, header: bool = True, separator: str | None = None) -> Scan | None:
    """Return a source whose rows can come in parts: text, Parquet or a polars query; None for any other."""
    if isinstance(source, pl.LazyFrame):
        about = Table(pl.DataFrame(), "the polars frame")
        return _scan(source, about, lambda error: f"the polars query fails: {one_line(error)}.")
    if not isinstance(source, str | Path):
        return None
    path = Path(source).expanduser()
    kind = kind_of(path)
    if kind not in (*TEXT, *PARQUET):
        return None
    check_there(path)
    about = Table(pl.DataFrame(), str(path), kind in TEXT, path.name.split(".")[0] or "events")
    if kind in PARQUET:
        return _scan(pl.scan_parquet(path, glob=False), about, lambda error: explain(path, error))
    with _explaining(lambda error: explain(path, error)):
        options = text_options(path, header, separator)

    def explained(error: BaseException) -> str:
        ragged = isinstance(error, pl.exceptions.ComputeError)
        return (row_too_long(path, options["separator"]) if ragged else None) or explain(path, error)

    return _scan(pl.scan_csv(path, **options), about, explained, header)


def _scan(
    lazy: pl.LazyFrame, about: Table, explained: Callable[[BaseException], str], header: bool | None = None
) -> Scan:
    with _explaining(explained):
        names = lazy.collect_schema().names()
    if not names:
        raise EmptySourceError(f"{about.where} has no columns.")
    if header is not None:
        lazy = lazy.rename(dict(zip(names, called := text_columns(names, header), strict=True)))
        names = called
    return Scan(lazy, tuple(names), about, explained)


@contextmanager
def _explaining(explained: Callable[[BaseException], str]) -> Iterator[None]:
    """Turn whatever a reader raises into one clear line."""
    try:
        with quiet_panics():
            yield
    except PresError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # a corrupt file can break a reader anyhow
        raise UnreadableSourceError(explained(error)) from None
