"""From the rows of a source to the columns of a stream: one pass to learn about them, and one to write them.

A source that is read at once comes as one part, which is parsed once. One that is larger than memory comes in
parts, which are read again in the second pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import polars as pl
import torch
from torch import Tensor

from pres.data.ids import IdMap, positions
from pres.data.info import SECONDS_PER_UNIT, Origin, StreamInfo, epoch_unit
from pres.data.stream import EventStream, unchecked
from pres.data.tabular.columns import Columns, resolve_columns
from pres.data.tabular.rows import Rows, Table
from pres.data.tabular.survey import Distinct, Order, Times, changed
from pres.data.tabular.values import (
    bad_value,
    features_apart,
    node_features,
    of_one_type,
    parsed_times,
    read_categories,
    read_ids,
    read_labels,
    read_numbers,
)
from pres.errors import (
    DegenerateStreamError,
    OptionError,
    ValueInRowError,
    check_choice,
    notify,
)

_NODES_PER_EVENT = 1000  # more of them, and ids that promised to be dense are not
_FEW_NODES = 2**20  # so few nodes cost nothing, whatever the number of events
_COLUMN_OPTIONS = ("src", "dst", "t", "x", "categories", "label")


class Sink(Protocol):
    """Where the columns of a stream go."""

    def append(self, **columns: Tensor | None) -> None:
        """Take the next rows of columns; one that is None is not there."""

    def add(self, name: str, values: Tensor) -> None:
        """Take a column that is there as a whole."""

    def sort(self) -> None:
        """Put all rows into the order of time; add the column ``row`` of where each was."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the columns by name."""


class _Parsed(NamedTuple):
    """The columns of a part, each understood for itself."""

    src: pl.Series
    dst: pl.Series
    t: pl.Series  # numbers, datetimes or durations
    categories: list[pl.Series]
    label: Tensor | None


def stream_of_rows(
    rows: Rows,
    options: dict[str, Any],
    origin: Origin | None,
    sink: Callable[[int], Sink],
    at_once: int | None = None,
    show: Callable[[int], None] = lambda _: None,
) -> EventStream:
    """Return the stream of a source, its columns being in a sink.

    Args:
        rows: The source.
        options: Those of `pres.read`.
        origin: Where the source is.
        sink: Makes a sink for so many rows.
        at_once: Rows in memory at a time; None for all.
        show: Told how many rows are done in a pass.
    """
    check_choice("ids", options["ids"], ("map", "dense"))
    if options["time_unit"] is not None:
        check_choice("time_unit", options["time_unit"], tuple(SECONDS_PER_UNIT))
    survey = _Survey(rows, options, at_once, show)
    ids, shift = survey.ids()
    columns, unit = survey.columns, survey.times.unit
    if unit is not None and options["time_unit"] not in (None, unit):
        raise OptionError(
            f"'{columns.t}' holds dates, read in {unit}; leave out time_unit='{options['time_unit']}'."
        )
    names, apart = columns.x, None
    if options["features"] is not None:
        further, apart = features_apart(rows.where, options["features"], survey.count)
        names += further
    order, target = Order(), sink(survey.count)
    for part, parsed in survey.again():
        t = survey.times.values(part, parsed.t)
        order.add(t)
        src, dst = survey.nodes(parsed, ids, shift)
        levels = [distinct.values() for distinct in survey.levels]
        indices = [survey.places(*of) for of in zip(parsed.categories, levels, strict=True)]
        target.append(
            src=src,
            dst=dst,
            t=t,
            x=_numbers(part, columns.x, apart),
            categories=torch.stack(indices, dim=1) if indices else None,
            label=parsed.label,
        )
        show(part.frame.height)
    _check_usable(rows.where, order)
    if order.backwards:
        notify(
            f"{rows.where}: times in '{columns.t}' go back {order.backwards:,} times, first at row "
            f"{order.first_back + 1:,}; the events were sorted by time (ties keep their order). "
            "events.row tells which row each was."
        )
        target.sort()
    if options["node_features"] is not None:
        target.add("node_x", node_features(options["node_features"], ids.num_nodes))
    info = StreamInfo(
        name=options["name"] or rows.name,
        time_unit=options["time_unit"] or unit or _guess_unit(rows.where, columns.t, order),
        dates=unit is not None,
        feature_names=names,
        category_names=columns.categories,
        category_levels=tuple(tuple(distinct.values().to_list()) for distinct in survey.levels),
        origin=origin,
    )
    return unchecked(
        **target.tensors(),
        num_nodes=ids.num_nodes,
        num_src=ids.num_src,
        directed=options["directed"],
        info=info,
        ids=ids,
    )


class _Survey:
    """What the first pass learns of a source."""

    def __init__(
        self, rows: Rows, options: dict[str, Any], at_once: int | None, show: Callable[[int], None]
    ) -> None:
        self.rows, self.options, self.at_once = rows, options, at_once
        named = {name: options[name] for name in _COLUMN_OPTIONS}
        self.columns = resolve_columns(rows.columns, rows.where, **named)
        self.count, self.src, self.dst, self.times = 0, Distinct(), Distinct(), Times()
        self.levels = [Distinct() for _ in self.columns.categories]
        self._whole: tuple[Table, _Parsed] | None = None  # kept where all rows are one part
        wanted = [name for name in self.columns.used if at_once is None or name not in self.columns.x]
        for part in rows.parts(wanted, at_once):
            parsed = self._parse(part)
            if options["ids"] == "dense":
                for side in (parsed.src, parsed.dst):  # how many events there are may not be known yet
                    _check_dense(part, side, len(side) if part.whole else 1 << 52)
            self.src.add(parsed.src)
            self.dst.add(parsed.dst)
            self.times.add(part, parsed.t)
            for distinct, values in zip(self.levels, parsed.categories, strict=True):
                distinct.add(values)
            self.count += part.frame.height
            if part.whole:
                self._whole = part, parsed
            show(part.frame.height)

    def _parse(self, part: Table) -> _Parsed:
        label = self._label(part)
        src, dst = read_ids(part, self.columns.src), read_ids(part, self.columns.dst)
        categories = [read_categories(part, name) for name in self.columns.categories]
        return _Parsed(src, dst, parsed_times(part, self.columns.t), categories, label)

    def _label(self, part: Table) -> Tensor | None:
        """Return the labels; a column that was only guessed to hold them is let go if it does not."""
        if self.columns.label is None:
            return None
        try:
            return read_labels(part, self.columns.label)
        except ValueInRowError:
            if self.options["label"] is not None:
                raise
            self.columns = self.columns.without_label()
            return None

    def ids(self) -> tuple[IdMap, int]:
        """Return the map of ids, and what makes a destination's place among its ids a node."""
        src, dst, bipartite = self.src.values(), self.dst.values(), self.options["bipartite"]
        both = bool(_guess_bipartite(self.columns, src, dst) if bipartite is None else bipartite)
        _say_what_was_guessed(self.rows.where, self.columns, both if bipartite is None else None)
        if self.options["ids"] == "map":
            ids = IdMap.of(*((src, dst) if both else of_one_type(src, dst)), both)
            return ids, ids.num_src or 0
        for name, side in ((self.columns.src, src), (self.columns.dst, dst)):
            if int(side[-1]) >= _most_dense_nodes(self.count):  # the first pass could not know: find the row
                for part in self.rows.parts([name], self.at_once):
                    _check_dense(part, read_ids(part, name), self.count)
        num_src, num_dst = int(src[-1]) + 1, int(dst[-1]) + 1
        if not both:
            return IdMap.dense(max(num_src, num_dst)), 0
        if int(dst[0]) >= num_src:  # one count for both sides, destinations after sources
            return IdMap.dense(num_dst, int(dst[0])), 0
        return IdMap.two_counts(num_src, num_dst), num_src

    def again(self) -> Iterator[tuple[Table, _Parsed]]:
        """Yield the parts of the second pass; raise unless they are as many rows as the first saw."""
        if self._whole is not None:
            yield self._whole
            return
        rows = 0
        for part in self.rows.parts(self.columns.used, self.at_once):
            rows += part.frame.height
            if rows > self.count:
                raise changed(self.rows.where)
            yield part, self._parse(part)
        if rows < self.count:
            raise changed(self.rows.where)

    def places(self, values: pl.Series, known: pl.Series) -> Tensor:
        """Return where `[n]` each value of a part is among those of the first pass."""
        found = positions(values, known)
        if bool((found < 0).any()):
            raise changed(self.rows.where)
        return found

    def nodes(self, parsed: _Parsed, ids: IdMap, shift: int) -> tuple[Tensor, Tensor]:
        """Return the nodes `[n]` of both ends."""
        if self.options["ids"] == "map":
            of_dst = ids.src_values if ids.dst_values is None else ids.dst_values
            return self.places(parsed.src, ids.src_values), self.places(parsed.dst, of_dst) + shift
        for side, seen in ((parsed.src, self.src.values()), (parsed.dst, self.dst.values())):
            if not (side.dtype.is_integer() and side.is_between(int(seen[0]), int(seen[-1])).all()):
                raise changed(self.rows.where)
        src, dst = (torch.from_numpy(side.to_numpy(writable=True)) for side in (parsed.src, parsed.dst))
        return src, dst + shift


def _guess_bipartite(columns: Columns, src: pl.Series, dst: pl.Series) -> bool:
    """Return whether two columns of distinct ids look like two kinds of nodes."""
    src, dst = of_one_type(src, dst)
    return columns.names_two_kinds or not bool(src.is_in(dst.implode()).any())


def _say_what_was_guessed(where: str, columns: Columns, bipartite: bool | None) -> None:
    """Tell which columns were guessed and, unless None, whether there are two kinds of nodes."""
    guesses = [*columns.guessed, *([] if bipartite is None else [f"bipartite={bipartite}"])]
    said = f"{where}: guessed {', '.join(guesses)}."
    if columns.unused:
        shown = ", ".join(f"'{name}'" for name in columns.unused[:6])
        more = " …" if len(columns.unused) > 6 else ""
        said += f" Not used: {shown}{more}; name features with x=… or categories=…."
    if guesses:
        notify(f"{said} What you give is not guessed.")


def _guess_unit(where: str, column: str, order: Order) -> str | None:
    """Return the unit of numbers that look like times since 1970, and say so."""
    unit = epoch_unit(order.first, order.last)
    if unit is not None:
        notify(f"{where}: guessed time_unit='{unit}': times in '{column}' look like {unit} since 1970.")
    return unit


def _check_usable(where: str, order: Order) -> None:
    """Raise unless so many events, from the first time to the last, make a stream."""
    if order.count == 1:
        raise DegenerateStreamError(f"{where} has a single event; a stream needs at least two.")
    if order.first == order.last:
        raise DegenerateStreamError(
            f"{where}: all {order.count:,} events have the same time ({order.first}), so there is "
            "no order to learn from. Is this the right time column?"
        )
    if not order.last - order.first < 2**63:
        raise DegenerateStreamError(
            f"{where}: the time from {order.first} to {order.last} does not fit 64 bits. Mend the outlier."
        )


def _most_dense_nodes(num_events: int) -> int:
    return max(_FEW_NODES, _NODES_PER_EVENT * num_events)


def _check_dense(part: Table, ids: pl.Series, num_events: int) -> None:
    """Raise unless these ids of ``num_events`` events keep what ``ids="dense"`` promises."""
    if not ids.dtype.is_integer():
        word = ids.cast(pl.Int64, strict=False).is_null().arg_max() or 0
        raise bad_value(part, ids.name, word, ids[word], "ids='dense' promises integers; use ids='map'.")
    for row, problem in (
        (ids.arg_min(), "dense ids count from 0; use ids='map' for any others."),
        (ids.arg_max(), f"too sparse for the dense ids of {num_events:,} events; use ids='map'."),
    ):
        assert row is not None
        if not 0 <= ids[row] < _most_dense_nodes(num_events):
            raise bad_value(part, ids.name, row, ids[row], problem)


def _numbers(part: Table, columns: tuple[str, ...], apart: Tensor | None) -> Tensor | None:
    """Return the numeric features of a part: its columns, then those kept apart."""
    found = [read_numbers(part, columns)] if columns else []
    if apart is not None:
        found.append(apart[part.first_row : part.first_row + part.frame.height])
    return None if not found else found[0] if len(found) == 1 else torch.cat(found, dim=1)
