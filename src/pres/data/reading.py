"""`pres.read`: any table of interactions as an `EventStream`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from pres.data.info import Origin
from pres.data.store.columns import ColumnLists
from pres.data.store.folder import is_store, open_store
from pres.data.stream import EventStream
from pres.data.tabular.build import stream_of_rows
from pres.data.tabular.rows import open_rows
from pres.errors import OptionError


def read(
    source: Any,
    *,
    src: str | None = None,
    dst: str | None = None,
    t: str | None = None,
    x: str | Sequence[str] | None = None,
    categories: str | Sequence[str] = (),
    label: str | None = None,
    features: Any = None,
    node_features: Any = None,
    bipartite: bool | None = None,
    directed: bool = False,
    ids: Literal["map", "dense"] = "map",
    time_unit: str | None = None,
    name: str | None = None,
    header: bool = True,
    separator: str | None = None,
) -> EventStream:
    """Return the events of a file, a frame or arrays, checked and in time order.

    Columns that are not named are guessed from their names, and a `Notice` says what was taken.

    Args:
        source: A path (CSV, TSV, also .gz and .zst; Parquet; .npz, .npy), a polars or pandas frame, a
            structured or 2-D array, or a dict of arrays.
        src: Column of the source node's id: text or integers of any size.
        dst: Column of the destination node's id.
        t: Column of the time: integers, floats, datetimes, or ISO text (UTC where it names no zone).
        x: Numeric feature columns. Without it, columns like ``f0, f1, …`` are taken; ``()`` takes none.
        categories: Categorical feature columns; each becomes an embedding index.
        label: Column of an integer label of the source at the event.
        features: Numeric features kept apart: an array or a file with one row per event of ``source``.
        node_features: An array `[num_nodes, d]` or a file of one, in the order of the dense ids
            (sorted by id, in a bipartite stream all sources before all destinations).
        bipartite: Whether ``src`` and ``dst`` are two kinds of nodes, so that equal ids are not one node.
        directed: Whether neighbourhoods follow the direction of events.
        ids: ``"map"`` takes any ids; ``"dense"`` promises integers counting from 0.
        time_unit: What one unit of time is: ns, us, ms, s, h or d. Without it, numbers that are times between
            1990 and 2100 in s, ms, us or ns since 1970 are taken as such.
        name: Name of the stream; the file's name by default.
        header: Whether a text file starts with column names; if not, they are column_1, column_2, …, and
            three of them are taken as ``src``, ``dst`` and ``t``.
        separator: Of a text file; found from its first line by default.
    """
    options = {option: value for option, value in locals().items() if option != "source"}
    if is_store(source):
        settled = [option for option, default in OPTIONS.items() if options[option] is not default]
        if settled:
            raise OptionError(f"{source} is a store, written once for all; leave out {', '.join(settled)}.")
        return open_store(source)
    rows = open_rows(source, header=header, separator=separator)
    return stream_of_rows(rows, options, origin_of(source, options), lambda _: ColumnLists())


OPTIONS = {name: p.default for name, p in inspect.signature(read).parameters.items() if name != "source"}


def origin_of(source: Any, options: dict[str, Any]) -> Origin | None:
    """Return where events came from and how they were read; None if some option is no plain value."""
    given: dict[str, Any] = {}
    for name, default in OPTIONS.items():
        value = options[name]
        plain = isinstance(value, str | bool | tuple | list)  # an array would be compared value by value
        if value is default or (plain and value == default):
            continue
        if isinstance(value, Path) or (name in ("features", "node_features") and isinstance(value, str)):
            value = str(Path(value).absolute())
        if isinstance(value, tuple | list) and all(isinstance(one, str) for one in value):
            value = list(value)
        elif not isinstance(value, str | bool):
            return None
        given[name] = value
    return Origin(str(Path(source).absolute()) if isinstance(source, str | Path) else None, given)
