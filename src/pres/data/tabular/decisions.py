"""What is decided about a table as a whole: its kinds of nodes, its dense ids, its order; and saying so."""

from __future__ import annotations

import warnings

import polars as pl

from pres.data.ids import IdMap
from pres.data.tabular.columns import Columns
from pres.data.tabular.table import Table
from pres.data.tabular.values import bad_value
from pres.errors import DegenerateStreamError, Notice

_NODES_PER_EVENT = 1000  # more of them, and ids that promised to be dense are not
_FEW_NODES = 2**20  # so few nodes cost nothing, whatever the number of events


def guess_bipartite(columns: Columns, src: pl.Series, dst: pl.Series) -> bool:
    """Return whether two columns of ids look like two kinds of nodes."""
    src, dst = of_one_type(src.unique(), dst.unique())
    return columns.names_two_kinds or not bool(src.is_in(dst.implode()).any())


def of_one_type(src: pl.Series, dst: pl.Series) -> tuple[pl.Series, pl.Series]:
    """Return both as they are, or both as text where only one of them is text."""
    return (src, dst) if src.dtype == dst.dtype else (src.cast(pl.String), dst.cast(pl.String))


def say_what_was_guessed(table: Table, columns: Columns, bipartite: bool | None) -> None:
    """Tell which columns were guessed and, unless None, whether there are two kinds of nodes."""
    guesses = list(columns.guessed)
    if bipartite is not None:
        guesses.append(f"bipartite={bipartite}")
    said = f"{table.where}: guessed {', '.join(guesses)}."
    if columns.unused:
        shown = ", ".join(f"'{name}'" for name in columns.unused[:6])
        more = " …" if len(columns.unused) > 6 else ""
        said += f" Not used: {shown}{more}; name features with x=… or categories=…."
    if guesses:
        warnings.warn(f"{said} What you give is not guessed.", Notice, stacklevel=3)


def say_it_was_sorted(table: Table, columns: Columns, backwards: int, first: int) -> None:
    """Tell that times went back so often, first at the row ``first``, counted from 0."""
    warnings.warn(
        f"{table.where}: times in '{columns.t}' go back {backwards:,} times, first at row "
        f"{first + 1:,}; the events were sorted by time (ties keep their order). "
        "events.row tells which row each was.",
        Notice,
        stacklevel=4,
    )


def check_usable(table: Table, count: int, first: float, last: float) -> None:
    """Raise unless so many events, from the first time to the last, make a stream."""
    if count == 1:
        raise DegenerateStreamError(f"{table.where} has a single event; a stream needs at least two.")
    if first == last:
        raise DegenerateStreamError(
            f"{table.where}: all {count:,} events have the same time ({first}), so there is "
            "no order to learn from. Is this the right time column?"
        )
    if not last - first < 2**63:
        raise DegenerateStreamError(
            f"{table.where}: the time from {first} to {last} does not fit 64 bits. Mend the outlier."
        )


def dense_ids(highest_src: int, lowest_dst: int, highest_dst: int, bipartite: bool) -> tuple[IdMap, int]:
    """Return the map of ids that are dense already, and what makes a destination's id its node."""
    num_src, num_dst = highest_src + 1, highest_dst + 1
    if not bipartite:
        return IdMap.dense(max(num_src, num_dst)), 0
    if lowest_dst >= num_src:  # one count for both sides, destinations after sources
        return IdMap.dense(num_dst, lowest_dst), 0
    return IdMap.two_counts(num_src, num_dst), num_src


def most_dense_nodes(num_events: int) -> int:
    """Return how many nodes so many events may have under ``ids="dense"``."""
    return max(_FEW_NODES, _NODES_PER_EVENT * num_events)


def check_dense(table: Table, column: str, values: pl.Series, num_events: int) -> None:
    """Raise unless these ids of ``num_events`` events keep what ``ids="dense"`` promises."""
    if not values.dtype.is_integer():
        word = values.cast(pl.Int64, strict=False).is_null().arg_max() or 0
        problem = "ids='dense' promises integers; use ids='map'."
        raise bad_value(table, column, word, values[word], problem)
    for row, problem in (
        (values.arg_min(), "dense ids count from 0; use ids='map' for any others."),
        (values.arg_max(), f"too sparse for the dense ids of {num_events:,} events; use ids='map'."),
    ):
        assert row is not None
        if not 0 <= values[row] < most_dense_nodes(num_events):
            raise bad_value(table, column, row, values[row], problem)
