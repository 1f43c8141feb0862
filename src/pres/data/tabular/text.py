"""Text files: their separator and header, found before every cell is read as text."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from pres.data.tabular.columns import check_distinct, unnamed_columns
from pres.data.tabular.limits import check_columns
from pres.errors import EmptySourceError, OptionError, UnreadableSourceError

_SEPARATORS = ",\t;|"


def text_options(path: Path, header: bool, separator: str | None) -> dict[str, Any]:
    """Return how polars is to read a text file, found from its first line; every cell stays text."""
    first, lone_return, _ = _first_line(path).partition("\r")  # it ends the lines of old spreadsheets
    separator = _separator(path, first, separator)
    check_columns(first.count(separator) + 1, str(path))  # a reader would take minutes over a million
    if header:
        _check_header(path, first, separator)
    options = {"has_header": header, "separator": separator, "infer_schema": False}
    return options | {"eol_char": lone_return or "\n", "glob": False}


def text_columns(names: Sequence[str], header: bool) -> list[str]:
    """Return the columns of a text file as they are called here."""
    return [name.strip() for name in names] if header else unnamed_columns(len(names))


def _first_line(path: Path) -> str:
    """Return the first line that is not blank; polars decompresses it if need be."""
    lines = pl.scan_lines(path, glob=False).filter(pl.col("line").str.strip_chars() != "").head(1).collect()
    if lines.height == 0:
        raise EmptySourceError(f"{path} has no rows.")
    line: str = lines.item().removeprefix("\ufeff")
    if "\0" in line:
        raise UnreadableSourceError(f"{path} holds NUL bytes, so it is not text in UTF-8. Save it as UTF-8.")
    return line


def _separator(path: Path, first: str, given: str | None) -> str:
    if given is None:
        found = max(_SEPARATORS, key=first.count)
        if found in first:
            return found
        if "  " in first.strip():
            raise UnreadableSourceError(
                f"{path}: the columns are padded with several spaces. Write one separator between them."
            )
        return " "  # only where it is all there is: names may hold spaces
    if not (isinstance(given, str) and len(given.encode()) == 1 and given not in '"\r\n'):
        raise OptionError(f"separator={given!r} must be a single character, such as ',' or '\\t'.")
    return given


def _check_header(path: Path, first: str, separator: str) -> None:
    names = [name.strip() for name in next(csv.reader([first], delimiter=separator), [])]
    if all(_is_number(name) for name in names):
        three, more = "three columns are then src, dst, t.", "the columns are then column_1, column_2, …"
        raise UnreadableSourceError(
            f"{path}: the first line ({first.strip()[:60]}) holds only numbers, so it is not a header. Pass "
            f"header=False; {three if len(names) == 3 else more}"
        )
    check_distinct(names, str(path))


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def row_too_long(path: Path, separator: str) -> str | None:
    """Return what is wrong with the first row that has more fields than the first line, if there is one."""
    lines = pl.read_lines(path, glob=False).get_column("line")
    rows = csv.reader((f"{line}\n" for line in lines), delimiter=separator)
    try:
        width = len(next(rows, []))
        for row in rows:
            if len(row) > width:
                return (
                    f"{path}, line {rows.line_num}: {len(row)} fields where the first line has {width}. "
                    "Mend the line, or quote the text that contains the separator."
                )
    except csv.Error:  # the reader's own explanation has to do
        pass
    return None
