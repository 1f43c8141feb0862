"""The rows of any source: as one table, or in parts, so that a file may be larger than memory."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Any

import polars as pl
import polars.selectors as cs

from pres.data.tabular.arrays import frame_of_numpy_file, frame_of_object
from pres.data.tabular.limits import check_columns, check_fits, check_packed, memory
from pres.data.tabular.text import row_too_long, text_columns, text_options
from pres.errors import (
    EmptySourceError,
    PresError,
    SourceNotFoundError,
    UnreadableSourceError,
    nearest,
    one_line,
)
from pres.storage import user_path

_TEXT, _PARQUET, _NUMPY = (".csv", ".tsv", ".txt"), (".parquet", ".pq"), (".npz", ".npy")
_KNOWN = (*_TEXT, ".csv.gz", ".csv.zst", ".parquet", *_NUMPY)
_TURN = RLock()


@dataclass(frozen=True)
class Table:
    """Rows of a source as a polars frame."""

    frame: pl.DataFrame
    where: str  # the file's path, or what kind of object it was
    is_text: bool = False  # whether the cells are text still to be understood
    name: str = "events"  # for the stream: the file's, without folders and endings
    first_row: int = 0  # of the source
    whole: bool = True  # whether these are all rows of the source


@dataclass(frozen=True)
class Rows:
    """A source that is opened, and whose rows can be had as often as wanted."""

    frame: pl.DataFrame | pl.LazyFrame  # a lazy one is read anew each time
    where: str
    is_text: bool = False
    name: str = "events"
    explained: Callable[[BaseException], str] = one_line  # why a lazy frame cannot be read
    from_file: bool = False  # of a lazy frame: its rows can be counted without reading them

    @cached_property
    def columns(self) -> list[str]:
        """The names of all columns."""
        with _explaining(self.explained):
            return self.frame.collect_schema().names()

    def whole(self) -> Table:
        """Return all rows and columns."""
        (table,) = self.parts(self.columns)
        return table

    def parts(self, columns: Sequence[str], rows: int | None = None) -> Iterator[Table]:
        """Yield the rows of some columns, so many at a time or all; blank ones at the end are left out."""
        if isinstance(self.frame, pl.DataFrame):
            yield self._table(self.frame, 0, whole=True)
            return
        query, columns = self.frame, list(dict.fromkeys(columns))
        if rows is None and self.from_file:
            with _explaining(self.explained):
                count = query.select(pl.len()).collect(engine="streaming").item()
            check_fits(self.where, count, len(columns), self.is_text)
        filled = "".join(self.columns) + "filled"  # a name that is not taken
        if self.is_text:
            query = query.with_columns(pl.any_horizontal(pl.all().is_not_null()).alias(filled))
            columns = [*columns, filled]
        first_row, blank = 0, pl.DataFrame()
        for frame in self._frames(query.select(cs.by_name(*columns)), rows):
            if self.is_text:
                if blank.height:
                    frame = pl.concat([blank, frame])
                last = frame.get_column(filled).arg_true().max()
                kept = 0 if last is None else int(str(last)) + 1
                blank, frame = frame.slice(kept), frame.head(kept).drop(filled)
            if frame.height:
                yield self._table(frame, first_row, whole=rows is None)
                first_row += frame.height
        if first_row == 0:
            raise EmptySourceError(f"{self.where} has no rows.")

    def _frames(self, query: pl.LazyFrame, rows: int | None) -> Iterator[pl.DataFrame]:
        if rows is None:
            with _explaining(self.explained):
                whole = query.collect()
            yield whole
            return
        batches = query.collect_batches(chunk_size=rows, lazy=True, engine="streaming")
        while True:
            with _explaining(self.explained):
                frame = next(batches, None)
            if frame is None:
                return
            yield frame

    def _table(self, frame: pl.DataFrame, first_row: int, whole: bool) -> Table:
        return Table(frame, self.where, self.is_text, self.name, first_row, whole)


def open_table(source: Any, **how: Any) -> Table:
    """Return a source as a table of at least one row; see `open_rows`."""
    return open_rows(source, **how).whole()


def open_rows(
    source: Any,
    *,
    header: bool = True,
    separator: str | None = None,
    unnamed: Sequence[str] = ("src", "dst", "t"),
    what: str | None = None,
) -> Rows:
    """Return the rows of a file, a frame or arrays; raise if there are none.

    The columns of a plain 2-D array are called ``unnamed`` and then ``f0, f1, …``; errors call a source
    that is not a file ``what``.
    """
    if isinstance(source, str | Path):
        rows = _open_file(user_path(source), header, separator, unnamed)
    elif isinstance(source, pl.LazyFrame):
        rows = Rows(source, what or "the polars frame", explained=_explain_query)
    else:
        rows = Rows(*frame_of_object(source, unnamed, what))
    check_columns(len(rows.columns), rows.where)
    if not rows.columns:
        raise EmptySourceError(f"{rows.where} has no columns.")
    if isinstance(rows.frame, pl.DataFrame) and rows.frame.height == 0:
        raise EmptySourceError(f"{rows.where} has no rows.")
    return rows


def _open_file(path: Path, header: bool, separator: str | None, unnamed: Sequence[str]) -> Rows:
    kind, where, name = _kind_of(path), str(path), path.name.split(".")[0] or "events"

    def explained(error: BaseException) -> str:
        return _explain(path, error)

    with _explaining(explained):
        _check_there(path)
        if kind in _PARQUET:
            lazy = pl.scan_parquet(path, glob=False)
            return Rows(lazy, where, name=name, explained=explained, from_file=True)
        if kind in _NUMPY:
            return Rows(frame_of_numpy_file(path, unnamed), where, name=name)
        if kind in _TEXT:
            check_packed(path)
            options = text_options(path, header, separator)

            def of_text(error: BaseException) -> str:
                ragged = isinstance(error, pl.exceptions.ComputeError)
                return (row_too_long(path, options["separator"]) if ragged else None) or explained(error)

            with _explaining(of_text):
                lazy = pl.scan_csv(path, **options)
                names = lazy.collect_schema().names()
                called = text_columns(names, header)
            renamed = lazy.rename(dict(zip(names, called, strict=True)))
            return Rows(renamed, where, True, name, of_text, from_file=_may_be_large(path))
    ending = f"a file ending in '{kind}'" if kind else "a file without an ending"
    raise UnreadableSourceError(f"{path}: {ending} cannot be read; known are {', '.join(_KNOWN)}.")


def _may_be_large(path: Path) -> bool:
    """Return whether it is worth the time to count the rows of a text file, which may be compressed."""
    return path.stat().st_size * (1_000 if path.suffix.lower() in (".gz", ".zst") else 8) > memory() // 16


def _kind_of(path: Path) -> str:
    """Return the ending that says what a file is, apart from its compression."""
    endings = [ending.lower() for ending in path.suffixes]
    compressed = len(endings) > 1 and endings[-1] in (".gz", ".zst")
    return endings[-2] if compressed else endings[-1] if endings else ""


def _check_there(path: Path) -> None:
    """Raise unless there is a file with something in it."""
    if not path.exists():
        beside = [p.name for p in path.parent.iterdir() if p.is_file()] if path.parent.is_dir() else []
        hint = nearest(path.name, beside) or (
            "" if path.suffix else " A dataset is loaded by its name: pres.load."
        )
        raise SourceNotFoundError(f"{path}: no such file.{hint}")
    if path.is_dir():
        raise SourceNotFoundError(f"{path} is a folder, and no store of events; give one file.")
    if path.stat().st_size == 0:
        raise EmptySourceError(f"{path} is empty (0 bytes).")


def _explain(path: Path, error: BaseException) -> str:
    """Return one line about a file that its reader could not read."""
    said = one_line(error)
    if "utf" in said.lower():
        return f"{path} is not UTF-8 text. Save it as UTF-8, or give it the ending of its own format."
    if "pickle" in said:
        return f"{path} is not a file of plain NumPy arrays; save them without Python objects."
    if "found more fields" in said:
        return f"{path}: a row has more fields than the first one. Quote text with a separator in it."
    if isinstance(error, OSError) and error.strerror is not None:
        return f"{path} cannot be read: {error.strerror.lower()}."
    return f"{path} is cut short, corrupt, or not what its ending says: {said}."


def _explain_query(error: BaseException) -> str:
    return f"the polars query fails: {one_line(error)}."


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


@contextmanager
def quiet_panics() -> Iterator[None]:
    """Send the standard error of the process nowhere meanwhile.

    On a corrupt file polars panics: it raises an exception, which we explain, but has by then written a
    report of several lines to the file descriptor itself, where Python cannot catch it. The descriptor
    belongs to the whole process, so threads take turns.
    """
    with _TURN:
        try:
            kept = os.dup(2)
        except OSError:  # the process has no standard error
            yield
            return
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
            os.close(nowhere)
