"""Tables into files, by the ending of their names."""

from __future__ import annotations

import io
import os
from collections.abc import Callable
from pathlib import Path

import polars as pl

from pres.errors import OptionError, StorageError, one_line
from pres.storage import storage_errors, write_whole

_WRITERS: dict[str, Callable[[pl.DataFrame, io.BytesIO], object]] = {
    ".csv": lambda frame, file: frame.write_csv(file),
    ".tsv": lambda frame, file: frame.write_csv(file, separator="\t"),
    ".parquet": lambda frame, file: frame.write_parquet(file),
    ".pq": lambda frame, file: frame.write_parquet(file),
}


def beside(path: Path, word: str) -> Path:
    """Return the name ``<stem>-<word>`` beside ``path``, with its ending if tables can be written so."""
    if path.suffix.lower() in (".gz", ".zst"):
        path = path.with_suffix("")
    ending = path.suffix if path.suffix.lower() in _WRITERS else ".csv"
    return path.with_name(f"{path.stem}-{word}{ending}")


def check_new(path: Path, overwrite: bool = False) -> None:
    """Raise unless a table can be written as ``path`` and, if not told so, nothing would be lost by it."""
    if path.suffix.lower() not in _WRITERS:
        raise OptionError(f"{path}: a table is written as .csv, .tsv or .parquet; give a name that ends so.")
    with storage_errors(path):
        if path.exists() and not overwrite:
            raise StorageError(f"{path} exists already. Choose another name, or pass overwrite=True.")
        folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not (folder.is_dir() and os.access(folder, os.W_OK)):
        raise StorageError(f"cannot write {path}: {folder} is not a folder that may be written to.")


def write_table(frame: pl.DataFrame, path: Path, overwrite: bool = False) -> Path:
    """Write a frame into a file, by default one that does not exist yet, in one step; return ``path``."""
    check_new(path, overwrite)
    file = io.BytesIO()  # polars would report a full disk in a way of its own
    try:
        _WRITERS[path.suffix.lower()](frame, file)
    except pl.exceptions.PolarsError as error:
        raise OptionError(
            f"{path}: the table cannot be written so ({one_line(error)}). Use .parquet."
        ) from None
    return write_whole(path, lambda unfinished: unfinished.write_bytes(file.getvalue()))
