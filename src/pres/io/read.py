"""`pres.read`: any table of interactions as an `EventStream`."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.errors import (
    DegenerateStreamError,
    Notice,
    OptionError,
    RowCountError,
    ValueInRowError,
    check_choice,
)
from pres.events import EventStream, Origin, StreamInfo
from pres.ids import IdMap
from pres.io.columns import Columns, resolve_columns
from pres.io.tables import Table, open_table
from pres.io.values import bad_value, read_categories, read_ids, read_labels, read_numbers, read_times

_NODES_PER_EVENT = 1000  # more of them, and ids that promised to be dense are not
_FEW_NODES = 2**20  # so few nodes cost nothing, whatever the number of events


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
    origin = _origin(source, locals())
    check_choice("ids", ids, ("map", "dense"))
    if time_unit is not None:
        check_choice("time_unit", time_unit, ("ns", "us", "ms", "s", "h", "d"))
    table = open_table(source, header=header, separator=separator)
    columns = resolve_columns(
        table.frame.columns, table.where, src=src, dst=dst, t=t, x=x, categories=categories, label=label
    )
    labels, columns = _labels(table, columns, required=label is not None)
    src_ids, dst_ids = read_ids(table, columns.src), read_ids(table, columns.dst)
    two_kinds = _is_bipartite(columns, src_ids, dst_ids) if bipartite is None else bipartite
    _say_what_was_guessed(table, columns, None if bipartite is not None else two_kinds)

    times, unit = read_times(table, columns.t)
    if unit is not None and time_unit not in (None, unit):
        raise OptionError(f"'{columns.t}' holds dates, read in {unit}; leave out time_unit='{time_unit}'.")
    _check_usable(table, times)
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
        node_x=None if node_features is None else _node_features(node_features, id_map.num_nodes),
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


def _origin(source: Any, given: dict[str, Any]) -> Origin | None:
    """Return where a file's events came from; None where something was given that is no plain value."""
    if not isinstance(source, str | Path):
        return None
    options: dict[str, Any] = {}
    for name, parameter in inspect.signature(read).parameters.items():
        value = given[name]
        if name == "source" or value is parameter.default or value == parameter.default:
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


def _is_bipartite(columns: Columns, src: pl.Series, dst: pl.Series) -> bool:
    src, dst = _of_one_type(src.unique(), dst.unique())
    return columns.names_two_kinds or not bool(src.is_in(dst.implode()).any())


def _of_one_type(src: pl.Series, dst: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return both as they are, or both as text where only one of them is text."""
    return (src, dst) if src.dtype == dst.dtype else (src.cast(pl.String), dst.cast(pl.String))


def _say_what_was_guessed(table: Table, columns: Columns, bipartite: bool | None) -> None:
    guesses = list(columns.guessed)
    if bipartite is not None:
        guesses.append(f"bipartite={bipartite}")
    said = f"{table.where}: guessed {', '.join(guesses)}."
    if columns.unused:
        shown = ", ".join(f"'{name}'" for name in columns.unused[:6])
        said += f" Not used: {shown}{' …' if len(columns.unused) > 6 else ''}."
    if guesses:
        warnings.warn(f"{said} Name them to decide yourself.", Notice, stacklevel=3)


def _check_usable(table: Table, times: Tensor) -> None:
    if len(times) == 1:
        raise DegenerateStreamError(f"{table.where} has a single event; a stream needs at least two.")
    if bool((times == times[0]).all()):
        raise DegenerateStreamError(
            f"{table.where}: all {len(times):,} events have the same time ({times[0].item()}), so there is "
            "no order to learn from. Is this the right time column?"
        )
    first, last = times.min().item(), times.max().item()
    if not last - first < 2**63:
        raise DegenerateStreamError(
            f"{table.where}: the time from {first} to {last} does not fit 64 bits. Mend the outlier."
        )


def _nodes(
    table: Table, columns: Columns, src: pl.Series, dst: pl.Series, bipartite: bool, ids: str
) -> tuple[IdMap, Tensor, Tensor]:
    if ids == "map":
        if not bipartite:
            src, dst = _of_one_type(src, dst)
        id_map = IdMap.of(src, dst, bipartite)
        return id_map, id_map.encode_src(src), id_map.encode_dst(dst)
    for column, values in ((columns.src, src), (columns.dst, dst)):
        _check_dense(table, column, values)
    src_nodes, dst_nodes = (torch.from_numpy(side.to_numpy(writable=True)) for side in (src, dst))
    num_src, num_dst, lowest_dst = int(src_nodes.max()) + 1, int(dst_nodes.max()) + 1, int(dst_nodes.min())
    if not bipartite:
        return IdMap.dense(max(num_src, num_dst)), src_nodes, dst_nodes
    if lowest_dst >= num_src:  # one count for both sides, destinations after sources
        return IdMap.dense(num_dst, lowest_dst), src_nodes, dst_nodes
    return IdMap.two_counts(num_src, num_dst), src_nodes, dst_nodes + num_src


def _check_dense(table: Table, column: str, values: pl.Series) -> None:
    if not values.dtype.is_integer():
        word = values.cast(pl.Int64, strict=False).is_null().arg_max() or 0
        problem = "ids='dense' promises integers; use ids='map'."
        raise bad_value(table.where, column, word, values[word], problem)
    most_nodes = max(_FEW_NODES, _NODES_PER_EVENT * len(values))
    for row, problem in (
        (values.arg_min(), "dense ids count from 0; use ids='map' for any others."),
        (values.arg_max(), f"too sparse for the dense ids of {len(values):,} events; use ids='map'."),
    ):
        assert row is not None
        if not 0 <= values[row] < most_nodes:
            raise bad_value(table.where, column, row, values[row], problem)


def _edge_features(table: Table, columns: Columns, features: Any) -> tuple[tuple[str, ...], Tensor | None]:
    """Return the names and values of the numeric features: columns of the table, then those kept apart."""
    inside = read_numbers(table, columns.x) if columns.x else None
    if features is None:
        return columns.x, inside
    names, apart = _numbers_of(features, "features")
    if len(apart) != table.frame.height:
        raise RowCountError(
            f"features have {len(apart):,} rows, but there are {table.frame.height:,} events in "
            f"{table.where}; row k of one must belong to row k of the other."
        )
    return columns.x + names, apart if inside is None else torch.cat([inside, apart], dim=1)


def _node_features(features: Any, num_nodes: int) -> Tensor:
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
    warnings.warn(
        f"{table.where}: times in '{columns.t}' go back {int(backwards.sum()):,} times, first at row "
        f"{int(backwards.nonzero()[0]) + 2:,}; the events were sorted by time (ties keep their order). "
        "events.row tells which row each was.",
        Notice,
        stacklevel=3,
    )
    order = torch.argsort(times, stable=True)
    return {name: None if part is None else part[order] for name, part in parts.items()} | {"row": order}
