"""`pres.read`: any table of interactions as an `EventStream`."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.data.ids import IdMap
from pres.data.store.folder import is_store, open_store
from pres.data.stream import EventStream, Origin, StreamInfo
from pres.data.tabular.columns import Columns, resolve_columns
from pres.data.tabular.decisions import (
    check_dense,
    check_usable,
    dense_ids,
    guess_bipartite,
    of_one_type,
    say_it_was_sorted,
    say_what_was_guessed,
)
from pres.data.tabular.table import Table, open_table
from pres.data.tabular.values import read_categories, read_ids, read_labels, read_numbers, read_times
from pres.errors import OptionError, RowCountError, ValueInRowError, check_choice


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
        time_unit: What one unit of time is: ns, us, ms, s, h or d.
        name: Name of the stream; the file's name by default.
        header: Whether a text file starts with column names; if not, they are column_1, column_2, …
        separator: Of a text file; found from its first line by default.
    """
    given = locals()
    if is_store(source):
        return _open(source, given)
    origin = origin_of(source, given)
    check_choice("ids", ids, ("map", "dense"))
    if time_unit is not None:
        check_choice("time_unit", time_unit, ("ns", "us", "ms", "s", "h", "d"))
    table = open_table(source, header=header, separator=separator)
    columns = resolve_columns(
        table.frame.columns, table.where, src=src, dst=dst, t=t, x=x, categories=categories, label=label
    )
    labels, columns = _labels(table, columns, required=label is not None)
    src_ids, dst_ids = read_ids(table, columns.src), read_ids(table, columns.dst)
    two_kinds = guess_bipartite(columns, src_ids, dst_ids) if bipartite is None else bipartite
    say_what_was_guessed(table, columns, None if bipartite is not None else two_kinds)

    times, unit = read_times(table, columns.t)
    if unit is not None and time_unit not in (None, unit):
        raise OptionError(f"'{columns.t}' holds dates, read in {unit}; leave out time_unit='{time_unit}'.")
    check_usable(table, len(times), times.min().item(), times.max().item())
    id_map, src_nodes, dst_nodes = _nodes(table, columns, src_ids, dst_ids, two_kinds, ids)
    x_names, x_values = _edge_features(table, columns, features)
    indexed = [read_categories(table, column) for column in columns.categories]
    parts: dict[str, Tensor | None] = {
        "src": src_nodes,
        "dst": dst_nodes,
        "t": times,
        "x": x_values,
        "categories": torch.stack([index for index, _ in indexed], dim=1) if indexed else None,
        "label": labels,
    }
    return EventStream(
        **_in_time_order(table, columns, parts),  # type: ignore[arg-type]
        node_x=None if node_features is None else read_node_features(node_features, id_map.num_nodes),
        num_nodes=id_map.num_nodes,
        num_src=id_map.num_src,
        directed=directed,
        info=StreamInfo(
            name=name or table.name,
            time_unit=time_unit or unit,
            dates=unit is not None,
            feature_names=x_names,
            category_names=columns.categories,
            category_levels=tuple(levels for _, levels in indexed),
            origin=origin,
        ),
        ids=id_map,
    )


_PARAMETERS = inspect.signature(read).parameters


def _open(folder: str | Path, given: dict[str, Any]) -> EventStream:
    """Return the events of a store, which knows how they were read."""
    settled = [name for name, p in _PARAMETERS.items() if name != "source" and given[name] is not p.default]
    if settled:
        raise OptionError(f"{folder} is a store, written once for all; leave out {', '.join(settled)}.")
    return open_store(folder)


def origin_of(source: Any, given: dict[str, Any]) -> Origin | None:
    """Return where a file's events came from; None where something was given that is no plain value."""
    if not isinstance(source, str | Path):
        return None
    options: dict[str, Any] = {}
    for name, parameter in _PARAMETERS.items():
        value = given[name]
        plain = isinstance(value, str | bool | tuple | list)  # an array would be compared value by value
        if name == "source" or value is parameter.default or (plain and value == parameter.default):
            continue
        if isinstance(value, Path) or (name in ("features", "node_features") and isinstance(value, str)):
            value = str(Path(value).absolute())
        if isinstance(value, tuple | list) and all(isinstance(one, str) for one in value):
            value = list(value)
        elif not isinstance(value, str | bool):
            return None
        options[name] = value
    return Origin(str(Path(source).absolute()), options)


def _labels(table: Table, columns: Columns, required: bool) -> tuple[Tensor | None, Columns]:
    """Return the labels; a column that was only guessed to hold them is let go if it does not."""
    if columns.label is None:
        return None, columns
    try:
        return read_labels(table, columns.label), columns
    except ValueInRowError:
        if required:
            raise
        return None, columns.without_label()


def _nodes(
    table: Table, columns: Columns, src: pl.Series, dst: pl.Series, bipartite: bool, ids: str
) -> tuple[IdMap, Tensor, Tensor]:
    if ids == "map":
        if not bipartite:
            src, dst = of_one_type(src, dst)
        id_map = IdMap.of(src, dst, bipartite)
        return id_map, id_map.encode_src(src), id_map.encode_dst(dst)
    for column, values in ((columns.src, src), (columns.dst, dst)):
        check_dense(table, column, values, len(values))
    src_nodes, dst_nodes = (torch.from_numpy(side.to_numpy(writable=True)) for side in (src, dst))
    lowest, highest = int(dst_nodes.min()), int(dst_nodes.max())
    id_map, shift = dense_ids(int(src_nodes.max()), lowest, highest, bipartite)
    return id_map, src_nodes, dst_nodes + shift if shift else dst_nodes


def _edge_features(table: Table, columns: Columns, features: Any) -> tuple[tuple[str, ...], Tensor | None]:
    """Return the names and values of the numeric features: columns of the table, then those kept apart."""
    inside = read_numbers(table, columns.x) if columns.x else None
    if features is None:
        return columns.x, inside
    names, apart = features_apart(table, features, table.frame.height)
    return columns.x + names, apart if inside is None else torch.cat([inside, apart], dim=1)


def features_apart(table: Table, features: Any, num_events: int) -> tuple[tuple[str, ...], Tensor]:
    """Return the names and values of features kept apart from their events."""
    names, apart = _numbers_of(features, "features")
    if len(apart) != num_events:
        raise RowCountError(
            f"features have {len(apart):,} rows, but there are {num_events:,} events in "
            f"{table.where}; row k of one must belong to row k of the other."
        )
    return names, apart


def read_node_features(features: Any, num_nodes: int) -> Tensor:
    """Return node features that are one row per node."""
    _, values = _numbers_of(features, "node_features")
    if len(values) != num_nodes:
        raise RowCountError(
            f"node_features have {len(values):,} rows, but there are {num_nodes:,} nodes; give one row each."
        )
    return values


def _numbers_of(features: Any, what: str) -> tuple[tuple[str, ...], Tensor]:
    """Return the names and, as float32 `[rows, d]`, the values of an array or of every column of a table."""
    try:
        features = np.asarray(features) if isinstance(features, (list, tuple)) else features
    except ValueError:
        raise OptionError(f"{what} must be 2-D, but the rows differ in length.") from None
    table = open_table(features, unnamed=(), what=what)
    names = tuple(table.frame.columns)
    return names, read_numbers(table, names)


def _in_time_order(
    table: Table, columns: Columns, parts: dict[str, Tensor | None]
) -> dict[str, Tensor | None]:
    times = parts["t"]
    assert times is not None
    backwards = times[1:] < times[:-1]
    if not bool(backwards.any()):
        return parts
    say_it_was_sorted(table, columns, int(backwards.sum()), int(backwards.nonzero()[0]) + 1)
    order = torch.argsort(times, stable=True)
    return {name: None if part is None else part[order] for name, part in parts.items()} | {"row": order}
