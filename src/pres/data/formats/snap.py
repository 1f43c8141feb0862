"""SNAP CollegeMsg: ``source destination unix-time`` on each line, without a header."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

from pres.data.datasets.registry import Dataset
from pres.data.formats.raw import RawEvents, read_integers
from pres.data.formats.text import rename
from pres.data.tabular.rows import open_table
from pres.data.tabular.values import read_times
from pres.errors import UnreadableSourceError

_NAMES = ("CollegeMsg.txt", "CollegeMsg.txt.gz")


def match(names: AbstractSet[str], dataset: Dataset, own: bool) -> Mapping[str, str] | None:
    """Return the one file of the dataset, packed or not, or None."""
    return next(({"events": name} for name in _NAMES if name in names), None)


def read(files: Mapping[str, Path], dataset: Dataset) -> RawEvents:
    """Return the events, their time counted from the first, as in every other copy of the dataset."""
    table = open_table(files["events"], header=False, separator=" ")
    if table.frame.width != 3:
        raise UnreadableSourceError(f"{table.where}: {table.frame.width} columns between blanks, expected 3.")
    table = rename(table, ("src", "dst", "t"))
    t = read_times(table, "t")[0]
    return RawEvents(
        where=table.where, src=read_integers(table, "src"), dst=read_integers(table, "dst"), t=t - t.min()
    )
