"""Frames of what is in memory already: polars, pandas, NumPy, torch, dicts of arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile, is_zipfile

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.data.tabular.columns import check_distinct
from pres.data.tabular.limits import check_fits
from pres.errors import OptionError, UnreadableSourceError

_NOT_A_COLUMN = (TypeError, ValueError, NotImplementedError, OverflowError, pl.exceptions.PolarsError)


def frame_of_object(source: Any, unnamed: Sequence[str], what: str | None) -> tuple[pl.DataFrame, str]:
    """Return the frame of an object, and what errors call it: ``what``, or the kind of object it is."""
    if isinstance(source, pl.DataFrame):
        return source, what or "the polars frame"
    if isinstance(source, Mapping):
        where = what or "the dict"
        return _frame_of_columns(source, where), where
    if isinstance(source, (np.ndarray, Tensor)):
        where = what or "the array"
        return _frame_of_array(_array(source), where, unnamed), where
    if type(source).__module__.partition(".")[0] == "pandas" and hasattr(source, "columns"):
        where = what or "the pandas frame"
        return _frame_of_pandas(source, where), where
    raise OptionError(
        f"cannot read a table from {type(source).__name__}: give a path, a polars or pandas frame, "
        "a NumPy array, or a dict of arrays."
    )


def frame_of_numpy_file(path: Path, unnamed: Sequence[str]) -> pl.DataFrame:
    """Return the frame of a ``.npy`` or ``.npz`` file."""
    with path.open("rb") as file:
        if is_zipfile(file):
            with ZipFile(file) as archive:
                check_fits(str(path), sum(member.file_size for member in archive.infolist()) // 8, 1, False)
        file.seek(0)
        loaded = np.load(file, allow_pickle=False)
        if isinstance(loaded, np.ndarray):
            return _frame_of_array(loaded, str(path), unnamed)
        return _frame_of_columns({name: loaded[name] for name in loaded.files}, str(path))


def _frame_of_array(array: np.ndarray[Any, Any], where: str, unnamed: Sequence[str]) -> pl.DataFrame:
    if array.dtype.names is not None:
        return _frame_of_columns({name: array[name] for name in array.dtype.names}, where)
    if array.ndim != 2 or array.shape[1] < len(unnamed):
        wanted = f" with the columns {', '.join(unnamed)} and then features" if unnamed else ""
        raise OptionError(f"{where} has shape {array.shape}: give a structured array, or a 2-D one{wanted}.")
    names = [*unnamed, *(f"f{i}" for i in range(array.shape[1] - len(unnamed)))]
    return _frame_of_columns({name: array[:, i] for i, name in enumerate(names)}, where)


def _frame_of_columns(arrays: Mapping[Any, Any], where: str) -> pl.DataFrame:
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


def _frame_of_pandas(frame: Any, where: str) -> pl.DataFrame:
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
