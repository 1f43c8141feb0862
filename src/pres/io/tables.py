"""Open a file, a frame or arrays as one polars table, and say clearly when that cannot be done."""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from zipfile import BadZipFile

import numpy as np
import polars as pl

from pres.errors import (
    EmptySourceError,
    OptionError,
    SourceNotFoundError,
    UnreadableSourceError,
    nearest,
)

_SEPARATORS = ",\t;| "
_TEXT = (".csv", ".tsv", ".txt")
_COMPRESSED = (".gz", ".zst")
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class Table:
    """A polars frame, where it came from, and whether its cells are text still to be understood."""

    frame: pl.DataFrame
    where: str  # the file's path, or what kind of object it was
    is_text: bool = False

    @property
    def name(self) -> str:
        """A short name for the stream: the file's, without folders and endings."""
        return Path(self.where).name.split(".")[0] or "events"


def open_table(source: Any, *, header: bool = True, separator: str | None = None) -> Table:
    """Return any source as a table with at least one row."""
    table = _open(source, header, separator)
    if table.frame.width == 0 or table.frame.height == 0:
        raise EmptySourceError(f"{table.where} has no rows.")
    return table


def _open(source: Any, header: bool, separator: str | None) -> Table:
    if isinstance(source, (str, Path)):
        return _open_file(Path(source), header, separator)
    if isinstance(source, pl.LazyFrame):
        return Table(source.collect(), "the polars frame")
    if isinstance(source, pl.DataFrame):
        return Table(source, "the polars frame")
    if isinstance(source, Mapping):
        return Table(
            _from_arrays({str(k): np.asarray(v) for k, v in source.items()}, "the arrays"), "the arrays"
        )
    if isinstance(source, np.ndarray):
        return Table(_from_array(source, "the array"), "the array")
    if type(source).__module__.partition(".")[0] == "pandas":
        return Table(pl.from_pandas(source), "the pandas frame")
    raise OptionError(
        f"cannot read events from {type(source).__name__}: give a path, a polars or pandas frame, "
        "a NumPy array, or a dict of arrays."
    )


def _open_file(path: Path, header: bool, separator: str | None) -> Table:
    if not path.exists():
        beside = [p.name for p in path.parent.iterdir() if p.is_file()] if path.parent.is_dir() else []
        raise SourceNotFoundError(f"{path}: no such file.{nearest(path.name, beside)}")
    if path.is_dir():
        raise SourceNotFoundError(f"{path} is a folder; give one file.")
    endings = [ending.lower() for ending in path.suffixes]
    kind = endings[-1] if endings else ""
    if kind in _COMPRESSED and len(endings) > 1:
        kind = endings[-2]
    try:
        if path.stat().st_size == 0:
            raise EmptySourceError(f"{path} is empty (0 bytes).")
        if kind in (".parquet", ".pq"):
            return Table(pl.read_parquet(path, glob=False), str(path))
        if kind in (".npz", ".npy"):
            return Table(_from_numpy_file(path), str(path))
        if kind in _TEXT:
            return Table(_from_text(path, header, separator), str(path), is_text=True)
    except OSError as error:
        raise UnreadableSourceError(f"{path} cannot be read: {_one_line(error)}.") from None
    except pl.exceptions.PolarsError as error:
        raise UnreadableSourceError(f"{path} is cut short or corrupt: {_one_line(error)}.") from None
    except pl.exceptions.PanicException as error:  # a crash inside the reader, on a corrupt file
        raise UnreadableSourceError(f"{path} is corrupt: {_one_line(error)}.") from None
    known = ", ".join((*_TEXT, ".csv.gz", ".csv.zst", ".parquet", ".npz", ".npy"))
    raise UnreadableSourceError(f"{path}: a file ending in '{kind}' cannot be read; known are {known}.")


def _one_line(error: BaseException) -> str:
    text = str(error).strip()
    return text.splitlines()[0].rstrip(".") if text else type(error).__name__


def _from_text(path: Path, header: bool, separator: str | None) -> pl.DataFrame:
    first = _first_line(path)
    separator = separator or max(_SEPARATORS, key=first.count)
    try:
        frame = pl.read_csv(path, has_header=header, separator=separator, infer_schema=False, glob=False)
    except pl.exceptions.NoDataError:
        raise EmptySourceError(f"{path} has no rows.") from None
    except pl.exceptions.PolarsError as error:
        raise UnreadableSourceError(_explain_text_error(path, separator, error)) from None
    if header and all(_is_number(cell) for cell in first.strip().split(separator)):
        raise UnreadableSourceError(
            f"{path}: the first line ({first.strip()[:60]}) holds only numbers, so it is not a header. Pass "
            "header=False; the columns are then called column_1, column_2, …"
        )
    return frame


def _open_text(path: Path) -> IO[str]:
    with path.open("rb") as file:
        magic = file.read(4)
    if magic.startswith(_GZIP):
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace")
    if magic == _ZSTD:  # polars reads these; the text itself is only wanted for explanations
        return io.StringIO("")
    return path.open(encoding="utf-8-sig", errors="replace")


def _first_line(path: Path) -> str:
    try:
        with _open_text(path) as file:
            line = file.readline(1 << 20)
    except EOFError:
        raise UnreadableSourceError(f"{path} is cut short: the compressed data end too early.") from None
    if not line:  # zst
        line = ",".join(pl.read_csv(path, has_header=True, n_rows=0, infer_schema=False, glob=False).columns)
    return line


def _explain_text_error(path: Path, separator: str, error: Exception) -> str:
    """Return what is wrong with a text file, with the line where a row has too many fields."""
    try:
        with _open_text(path) as file:
            rows = csv.reader(file, delimiter=separator)
            width = len(next(rows, []))
            for row in rows:
                if len(row) > width:
                    return (
                        f"{path}, line {rows.line_num}: {len(row)} fields where the first line has {width}. "
                        "Mend the line, or quote the text that contains the separator."
                    )
    except (csv.Error, OSError, EOFError):
        pass  # the first explanation stands
    return f"{path} is cut short or corrupt: {_one_line(error)}."


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _from_numpy_file(path: Path) -> pl.DataFrame:
    try:
        loaded = np.load(path, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return _from_array(loaded, str(path))
        with loaded as archive:
            return _from_arrays({name: archive[name] for name in archive.files}, str(path))
    except (ValueError, EOFError, BadZipFile, KeyError, SyntaxError, NotImplementedError) as error:
        raise UnreadableSourceError(
            f"{path} is not a plain NumPy file, or is cut short: {_one_line(error)}."
        ) from None


def _from_array(array: np.ndarray[Any, Any], where: str) -> pl.DataFrame:
    if array.dtype.names is not None:
        return _from_arrays({name: array[name] for name in array.dtype.names}, where)
    if array.ndim != 2 or array.shape[1] < 3:
        raise OptionError(
            f"{where} has shape {array.shape}: give a structured array, or a 2-D one with the columns "
            "src, dst, t and then features."
        )
    names = ["src", "dst", "t", *(f"f{i}" for i in range(array.shape[1] - 3))]
    return _from_arrays({name: array[:, i] for i, name in enumerate(names)}, where)


def _from_arrays(arrays: Mapping[str, np.ndarray[Any, Any]], where: str) -> pl.DataFrame:
    """Return the arrays as columns; a 2-D array ``x`` becomes the columns ``x0 … xd``."""
    columns: dict[str, pl.Series] = {}
    length = next((array.shape[0] for array in arrays.values() if array.ndim), 0)
    for name, array in arrays.items():
        if array.ndim not in (1, 2) or array.shape[0] != length:
            raise UnreadableSourceError(
                f"{where}: '{name}' has shape {array.shape}, but the first array has {length:,} rows."
            )
        wide = (
            {name: array} if array.ndim == 1 else {f"{name}{i}": array[:, i] for i in range(array.shape[1])}
        )
        for column, values in wide.items():
            try:
                columns[column] = pl.Series(column, np.ascontiguousarray(values))
            except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
                raise UnreadableSourceError(f"{where}: '{name}': {_one_line(error)}.") from None
    return pl.DataFrame(columns)
