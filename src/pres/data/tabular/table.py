"""Open a file, a frame or arrays as one polars table, and say clearly when that cannot be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.data.tabular.columns import check_distinct
from pres.data.tabular.panics import quiet_panics
from pres.data.tabular.text import from_text
from pres.errors import (
    EmptySourceError,
    OptionError,
    PresError,
    SourceNotFoundError,
    UnreadableSourceError,
    nearest,
    one_line,
)

TEXT, PARQUET = (".csv", ".tsv", ".txt"), (".parquet", ".pq")
_COMPRESSED = (".gz", ".zst")
_KNOWN = (*TEXT, ".csv.gz", ".csv.zst", ".parquet", ".npz", ".npy")
_NOT_A_COLUMN = (TypeError, ValueError, NotImplementedError, OverflowError, pl.exceptions.PolarsError)


@dataclass(frozen=True)
class Table:
    """A polars frame, where it came from, and whether its cells are text still to be understood."""

    frame: pl.DataFrame
    where: str  # the file's path, or what kind of object it was
    is_text: bool = False
    name: str = "events"  # for the stream: the file's, without folders and endings
    first_row: int = 0  # of a part of a larger table: where it begins
    whole: bool = True  # whether it is no part


def open_table(
    source: Any,
    *,
    header: bool = True,
    separator: str | None = None,
    unnamed: Sequence[str] = ("src", "dst", "t"),
    what: str | None = None,
) -> Table:
    """Return any source as a table with at least one row.

    The columns of a plain 2-D array are called ``unnamed`` and then ``f0, f1, …``; errors call a source
    that is not a file ``what``.
    """
    if isinstance(source, (str, Path)):
        table = _open_file(source, header, separator, unnamed)
    else:
        table = _open_object(source, unnamed, what)
    if table.frame.width == 0 or table.frame.height == 0:
        raise EmptySourceError(f"{table.where} has no {'rows' if table.frame.width else 'columns'}.")
    return table


def _open_object(source: Any, unnamed: Sequence[str], what: str | None) -> Table:
    if isinstance(source, pl.DataFrame):
        return Table(source, what or "the polars frame")
    if isinstance(source, pl.LazyFrame):
        try:
            return Table(source.collect(), what or "the polars frame")
        except (Exception, pl.exceptions.PanicException) as error:  # whatever the user's query may raise
            raise UnreadableSourceError(f"the polars query fails: {one_line(error)}.") from None
    if isinstance(source, Mapping):
        where = what or "the dict"
        return Table(_from_arrays(source, where), where)
    if isinstance(source, (np.ndarray, Tensor)):
        where = what or "the array"
        return Table(_from_array(_array(source), where, unnamed), where)
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        where = what or "the pandas frame"
        return Table(_from_pandas(source, where), where)
    raise OptionError(
        f"cannot read a table from {type(source).__name__}: give a path, a polars or pandas frame, "
        "a NumPy array, or a dict of arrays."
    )


def _open_file(source: str | Path, header: bool, separator: str | None, unnamed: Sequence[str]) -> Table:
    path = Path(source).expanduser()
    kind = kind_of(path)
    name = path.name.split(".")[0] or "events"
    try:
        check_there(path)
        if kind in PARQUET:
            with quiet_panics():
                return Table(pl.read_parquet(path, glob=False), str(path), name=name)
        if kind in (".npz", ".npy"):
            return Table(_from_numpy_file(path, unnamed), str(path), name=name)
        if kind in TEXT:
            return Table(from_text(path, header, separator), str(path), is_text=True, name=name)
    except PresError:
        raise
    except (Exception, pl.exceptions.PanicException) as error:  # a corrupt file can break a reader anyhow
        raise UnreadableSourceError(explain(path, error)) from None
    ending = f"a file ending in '{kind}'" if kind else "a file without an ending"
    raise UnreadableSourceError(f"{path}: {ending} cannot be read; known are {', '.join(_KNOWN)}.")


def kind_of(path: Path) -> str:
    """Return the ending that says what a file is, apart from its compression."""
    endings = [ending.lower() for ending in path.suffixes]
    compressed = len(endings) > 1 and endings[-1] in _COMPRESSED
    return endings[-2] if compressed else endings[-1] if endings else ""


def check_there(path: Path) -> None:
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


def explain(path: Path, error: BaseException) -> str:
    """Return one line about a file that its reader could not read."""
    said = one_line(error)
    if "utf" in said.lower():
        return f"{path} is not UTF-8 text. Save it as UTF-8, or give it the ending of its own format."
    if "pickle" in said:
        return f"{path} is not a file of plain NumPy arrays; save them without Python objects."
    if isinstance(error, PermissionError):
        return f"{path} cannot be read: no permission."
    return f"{path} is cut short, corrupt, or not what its ending says: {said}."


def _from_numpy_file(path: Path, unnamed: Sequence[str]) -> pl.DataFrame:
    with path.open("rb") as file:
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return _from_array(loaded, str(path), unnamed)
        return _from_arrays({name: loaded[name] for name in loaded.files}, str(path))


def _from_array(array: np.ndarray[Any, Any], where: str, unnamed: Sequence[str]) -> pl.DataFrame:
    if array.dtype.names is not None:
        return _from_arrays({name: array[name] for name in array.dtype.names}, where)
    if array.ndim != 2 or array.shape[1] < len(unnamed):
        wanted = f" with the columns {', '.join(unnamed)} and then features" if unnamed else ""
        raise OptionError(f"{where} has shape {array.shape}: give a structured array, or a 2-D one{wanted}.")
    names = [*unnamed, *(f"f{i}" for i in range(array.shape[1] - len(unnamed)))]
    return _from_arrays({name: array[:, i] for i, name in enumerate(names)}, where)


def _from_arrays(arrays: Mapping[Any, Any], where: str) -> pl.DataFrame:
    """Return the arrays as columns; a 2-D array ``x`` becomes the columns ``x0 … xd``."""
    columns: dict[str, pl.Series] = {}
    length: int | None = None
    for name, values in arrays.items():
        try:
            array = _array(values)
        except ValueError:
            raise UnreadableSourceError(f"{where}: '{name}' is ragged; its rows differ in length.") from None
        length = array.shape[0] if length is None and array.ndim else length
        if array.ndim not in (1, 2) or array.shape[0] != length:
            raise UnreadableSourceError(
                f"{where}: '{name}' has shape {array.shape}, but the first array has {length or 0:,} rows."
            )
        wide = {str(name): array}
        if array.ndim == 2:
            wide = {f"{name}{i}": array[:, i] for i in range(array.shape[1])}
        for column, one in wide.items():
            columns[column] = _column(column, one.tolist() if one.dtype == object else one)
    return pl.DataFrame(columns)


def _array(values: Any) -> np.ndarray[Any, Any]:
    """Return anything array-like as an array of a type that polars knows."""
    if isinstance(values, Tensor):
        half = values.dtype == torch.bfloat16  # NumPy has no such type
        values = (values.float() if half else values).numpy(force=True)
    array = np.asarray(values)
    if array.dtype.kind in "mM" and np.datetime_data(array.dtype)[0] not in ("ms", "us", "ns"):
        return array.astype(f"{array.dtype.kind}8[ms]")
    return array


def _from_pandas(frame: Any, where: str) -> pl.DataFrame:
    """Return a pandas frame, with an index that has a name as a column like the others."""
    if all(name is not None and name not in frame.columns for name in frame.index.names):
        frame = frame.reset_index()
    names = [str(name) for name in frame.columns]
    check_distinct(names, where)
    try:
        return pl.DataFrame([_column(name, frame.iloc[:, place]) for place, name in enumerate(names)])
    except ImportError:
        raise OptionError("a pandas frame is read through pyarrow: pip install pyarrow.") from None


def _column(name: str, values: Any) -> pl.Series:
    """Return values as a column; what has no type in polars stays as objects, to be refused where used."""
    try:
        return pl.Series(name, values)
    except _NOT_A_COLUMN:
        return pl.Series(name, list(values), dtype=pl.Object)
