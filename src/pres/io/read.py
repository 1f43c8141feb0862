"""`pres.read`: any table of interactions as an `EventStream`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import polars as pl
import torch
from torch import Tensor

from pres.errors import DegenerateStreamError, Notice, OptionError, RowCountError, check_choice
from pres.events import EventStream, StreamInfo
from pres.ids import IdMap
from pres.io.columns import Columns, resolve_columns
from pres.io.tables import Table, open_table
from pres.io.values import bad_value, read_categories, read_ids, read_labels, read_numbers, read_times

_MOST_NODES = 2**31


def read(
    source: Any,
    *,
    src: str | None = None,
    dst: str | None = None,
    t: str | None = None,
    x: Sequence[str] | None = None,
    categories: Sequence[str] = (),
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
            structured or 2-D NumPy array, or a dict of arrays.
        src: Column of the source node's id: text or integers of any size.
        dst: Column of the destination node's id.
        t: Column of the time: integers, floats, datetimes, or ISO text.
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
        header: Whether a text file starts with column names.
        separator: Of a text file; found from its first line by default.
    """
    check_choice("ids", ids, ("map", "dense"))
    if time_unit is not None:
        check_choice("time_unit", time_unit, ("ns", "us", "ms", "s", "h", "d"))
    table = open_table(source, header=header, separator=separator)
    columns = resolve_columns(
        table.frame.columns, table.where, src=src, dst=dst, t=t, x=x, categories=categories, label=label
    )
    src_ids, dst_ids = _ids_of_both_sides(table, columns, bipartite)
    two_kinds = _is_bipartite(columns, src_ids, dst_ids) if bipartite is None else bipartite
    _say_what_was_guessed(table, columns, None if bipartite is not None else two_kinds)

    times, unit = read_times(table, columns.t)
    _check_usable(table, times)
    id_map, src_nodes, dst_nodes = _nodes(table, columns, src_ids, dst_ids, two_kinds, ids)
    indexed = [read_categories(table, column) for column in columns.categories]
    parts: dict[str, Tensor | None] = {
        "src": src_nodes,
        "dst": dst_nodes,
        "t": times,
        "x": _edge_features(table, columns, features),
        "categories": torch.stack([index for index, _ in indexed], dim=1) if indexed else None,
        "label": None if columns.label is None else read_labels(table, columns.label),
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
            feature_names=columns.x,
            category_names=columns.categories,
            category_levels=tuple(levels for _, levels in indexed),
        ),
        ids=id_map,
    )


def _ids_of_both_sides(table: Table, columns: Columns, bipartite: bool | None) -> tuple[pl.Series, pl.Series]:
    src, dst = read_ids(table, columns.src), read_ids(table, columns.dst)
    if bipartite is False and src.dtype != dst.dtype:
        return src.cast(pl.String), dst.cast(pl.String)
    return src, dst


def _is_bipartite(columns: Columns, src: pl.Series, dst: pl.Series) -> bool:
    if columns.names_two_kinds or src.dtype != dst.dtype:
        return True
    return not bool(src.unique().is_in(dst.unique().implode()).any())


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


def _nodes(
    table: Table, columns: Columns, src: pl.Series, dst: pl.Series, bipartite: bool, ids: str
) -> tuple[IdMap, Tensor, Tensor]:
    if ids == "map":
        id_map = IdMap.of(src, dst, bipartite)
        return id_map, id_map.encode_src(src), id_map.encode_dst(dst)
    for column, values in ((columns.src, src), (columns.dst, dst)):
        _check_dense(table, column, values)
    src_nodes, dst_nodes = (torch.from_numpy(s.to_numpy(writable=True)) for s in (src, dst))
    highest_src, highest_dst = int(src_nodes.max()), int(dst_nodes.max())
    if not bipartite:
        return IdMap.dense(max(highest_src, highest_dst) + 1), src_nodes, dst_nodes
    if int(dst_nodes.min()) > highest_src:  # one count for both sides, destinations after sources
        return IdMap.dense(highest_dst + 1, int(dst_nodes.min())), src_nodes, dst_nodes
    num_src = highest_src + 1
    return IdMap.dense(num_src + highest_dst + 1, num_src), src_nodes, dst_nodes + num_src


def _check_dense(table: Table, column: str, values: pl.Series) -> None:
    if not values.dtype.is_integer():
        raise bad_value(table.where, column, 0, values[0], "ids='dense' promises integers; use ids='map'.")
    for row, problem in (
        (values.arg_min(), "dense ids count from 0; use ids='map' for any others."),
        (values.arg_max(), "the ids are too sparse to be dense; use ids='map'."),
    ):
        assert row is not None
        if not 0 <= values[row] < _MOST_NODES:
            raise bad_value(table.where, column, row, values[row], problem)


def _edge_features(table: Table, columns: Columns, features: Any) -> Tensor | None:
    inside = read_numbers(table, columns.x) if columns.x else None
    if features is None:
        return inside
    apart = _numbers_of(features, "features")
    if len(apart) != table.frame.height:
        raise RowCountError(
            f"features have {len(apart):,} rows, but {table.where} has {table.frame.height:,} events; "
            "row k of one must belong to row k of the other."
        )
    return apart if inside is None else torch.cat([inside, apart], dim=1)


def _node_features(features: Any, num_nodes: int) -> Tensor:
    values = _numbers_of(features, "node_features")
    if len(values) != num_nodes:
        raise RowCountError(f"node_features have {len(values):,} rows, but there are {num_nodes:,} nodes.")
    return values


def _numbers_of(features: Any, what: str) -> Tensor:
    """Return an array, or every column of a table, as float32 `[rows, d]`."""
    if isinstance(features, Tensor):
        features = features.numpy(force=True)
    if isinstance(features, np.ndarray):
        if features.ndim != 2:
            raise OptionError(f"{what} must be 2-D, one row each, but have shape {features.shape}.")
        features = pl.DataFrame({f"f{i}": features[:, i] for i in range(features.shape[1])})
    table = open_table(features)
    return read_numbers(table, tuple(table.frame.columns))


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
        f"{int(backwards.nonzero()[0]) + 2:,}; the events were sorted by time (ties keep their order).",
        Notice,
        stacklevel=3,
    )
    order = torch.argsort(times, stable=True)
    return {name: None if part is None else part[order] for name, part in parts.items()}
