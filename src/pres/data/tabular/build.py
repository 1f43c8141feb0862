"""From the rows of a source to the columns of a stream.

A source is read once. Each part of it is parsed and kept, in memory or in a file; what only all parts
together tell (the ids, the type of the times, the levels of categories) is found among the kept parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import polars as pl
import polars.selectors as cs
import torch
from torch import Tensor

from pres.data.ids import IdMap, positions
from pres.data.info import SECONDS_PER_UNIT, Origin, StreamInfo, epoch_unit
from pres.data.store.columns import ColumnFiles, ColumnLists
from pres.data.stream import EventStream, unchecked
from pres.data.tabular.columns import Columns, resolve_columns
from pres.data.tabular.rows import Rows, Table
from pres.data.tabular.times import are_whole_seconds, common_kind, in_common_kind, parsed_times, time_values
from pres.data.tabular.values import (
    as_tensor,
    bad_value,
    features_apart,
    node_features,
    of_one_type,
    read_categories,
    read_ids,
    read_labels,
    read_numbers,
)
from pres.errors import DegenerateStreamError, OptionError, ValueInRowError, check_choice, notify

_NODES_PER_EVENT = 1000  # more of them, and ids that promised to be dense are not
_FEW_NODES = 2**20  # so few nodes cost nothing, whatever the number of events
_AT_ONCE = 1 << 22  # events whose order is looked at together
_X = "numeric features"  # of a parsed part: the column that holds them all
_LEAST_SPAN = 1e-30  # of times
_COLUMN_OPTIONS = ("src", "dst", "t", "x", "categories", "label")


Keep = Callable[[pl.DataFrame], pl.LazyFrame]  # puts the parsed columns of a part somewhere


def stream_of_rows(
    rows: Rows,
    options: dict[str, Any],
    origin: Origin | None,
    sink: Callable[[int], ColumnFiles | ColumnLists],
    keep: Keep = pl.DataFrame.lazy,
    at_once: int | None = None,
    show: Callable[[int], None] = lambda _: None,
) -> EventStream:
    """Return the stream of a source, its columns being in a sink.

    Args:
        rows: The source.
        options: Those of `pres.read`.
        origin: Where the source is.
        sink: Makes a sink for so many rows.
        keep: Keeps the parsed columns of a part, and returns what reads them again.
        at_once: Rows in memory at a time; None for all.
        show: Told how many rows are parsed, and then how many are written.
    """
    check_choice("ids", options["ids"], ("map", "dense"))
    if options["time_unit"] is not None:
        check_choice("time_unit", options["time_unit"], tuple(SECONDS_PER_UNIT))
    parsed = _Parsed(rows, options, keep, at_once, show)
    columns, unit, count = parsed.columns, parsed.time_unit, parsed.count
    ids, shift = parsed.ids()
    if unit is not None and options["time_unit"] not in (None, unit):
        raise OptionError(
            f"'{columns.t}' holds dates, read in {unit}; leave out time_unit='{options['time_unit']}'."
        )
    names, apart = columns.x, None
    if options["features"] is not None:
        further, apart = features_apart(rows.where, options["features"], count)
        names += further
    levels = [parsed.distinct(name) for name in columns.categories]
    target = sink(count)
    for part in parsed.parts():
        get = part.frame.get_column
        if options["ids"] == "map":
            of_dst = ids.src_values if ids.dst_values is None else ids.dst_values
            src, dst = positions(get(columns.src), ids.src_values), positions(get(columns.dst), of_dst)
        else:
            src, dst = as_tensor(get(columns.src)), as_tensor(get(columns.dst))
        times = in_common_kind(part, get(columns.t), parsed.kind_of_t)
        places = [positions(get(name), of) for name, of in zip(columns.categories, levels, strict=True)]
        target.append(
            src=src,
            dst=dst + shift,
            t=time_values(part, times, parsed.whole_seconds),
            x=_numbers(part, apart),
            categories=torch.stack(places, dim=1) if places else None,
            label=None if columns.label is None else as_tensor(get(columns.label)),
        )
        show(part.frame.height)
    t = target.tensors()["t"]
    first, last = t.min().item(), t.max().item()
    _check_usable(rows.where, count, first, last)
    backwards, first_back = _backwards(t)
    if backwards:
        notify(
            f"{rows.where}: times in '{columns.t}' go back {backwards:,} times, first at row "
            f"{first_back + 1:,}; the events were sorted by time (ties keep their order). "
            "events.row tells which row each was."
        )
        target.sort()
    if options["node_features"] is not None:
        target.add("node_x", node_features(options["node_features"], ids.num_nodes))
    info = StreamInfo(
        name=options["name"] or rows.name,
        time_unit=options["time_unit"] or unit or _guess_unit(rows.where, columns.t, first, last),
        dates=unit is not None,
        feature_names=names,
        category_names=columns.categories,
        category_levels=tuple(tuple(level.to_list()) for level in levels),
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


class _Parsed:
    """The columns of a source, each part of it understood for itself."""

    def __init__(
        self,
        rows: Rows,
        options: dict[str, Any],
        keep: Keep,
        at_once: int | None,
        show: Callable[[int], None],
    ) -> None:
        self.rows, self.options = rows, options
        named = {name: options[name] for name in _COLUMN_OPTIONS}
        self.columns = resolve_columns(rows.columns, rows.where, **named)
        self.count, self.whole_seconds = 0, True
        self._kept: list[pl.LazyFrame] = []
        self._kinds: list[pl.DataType] = []
        for part in rows.parts(self.columns.used, at_once):
            self._kept.append(keep(self._parse(part)))
            self.count += part.frame.height
            show(part.frame.height)
        self.kind_of_t = common_kind(self._kinds)

    def _parse(self, part: Table) -> pl.DataFrame:
        label = self._label(part)
        found = [read_ids(part, self.columns.src), read_ids(part, self.columns.dst)]
        found += [read_categories(part, name) for name in self.columns.categories]
        t = parsed_times(part, self.columns.t)
        self._kinds.append(t.dtype)
        if t.dtype.is_temporal() != self._kinds[0].is_temporal():
            problem = "not a time like those before it. Use numbers, or ISO dates like 2024-05-17T08:30:00."
            raise bad_value(part, part.frame.get_column(t.name), 0, problem)
        self.whole_seconds = self.whole_seconds and are_whole_seconds(t)
        found += [t] if label is None else [t, label]
        if self.columns.x:
            found.append(pl.Series(_X, read_numbers(part, self.columns.x).numpy()))
        return pl.DataFrame(found)

    def _label(self, part: Table) -> pl.Series | None:
        """Return the labels; a column that was only guessed to hold them is let go if it does not."""
        if self.columns.label is None:
            return None
        try:
            return pl.Series(self.columns.label, read_labels(part, self.columns.label).numpy())
        except ValueInRowError:
            if self.options["label"] is not None:
                raise
            self.columns = self.columns.without_label()
            return None

    @property
    def time_unit(self) -> str | None:
        """What dates count; None for numbers."""
        return "s" if self.whole_seconds else getattr(self.kind_of_t, "time_unit", None)

    def parts(self) -> Iterator[Table]:
        """Yield the parsed parts."""
        row = 0
        for kept in self._kept:
            frame = kept.collect()
            yield Table(frame, self.rows.where, self.rows.is_text, first_row=row)
            row += frame.height

    def distinct(self, column: str) -> pl.Series:
        """Return the distinct values of a column in order; text if one part of it is text."""
        parts = [kept.select(cs.by_name(column)) for kept in self._kept]
        if len({part.collect_schema()[column] for part in parts}) > 1:
            parts = [part.cast(pl.String) for part in parts]
        return pl.concat(parts).unique().collect(engine="streaming").to_series().sort()

    def ids(self) -> tuple[IdMap, int]:
        """Return the map of ids, and what makes a destination's place among its ids a node."""
        mapped, bipartite = self.options["ids"] == "map", self.options["bipartite"]
        if not mapped:
            for part in self.parts():
                for name in (self.columns.src, self.columns.dst):
                    _check_dense(part, part.frame.get_column(name), self.count)
        src, dst = self.distinct(self.columns.src), self.distinct(self.columns.dst)
        both = bool(_guess_bipartite(self.columns, src, dst) if bipartite is None else bipartite)
        _say_what_was_guessed(self.rows.where, self.columns, both if bipartite is None else None)
        if mapped:
            ids = IdMap.of(*((src, dst) if both else of_one_type(src, dst)), both)
            return ids, ids.num_src or 0
        num_src, num_dst = int(src[-1]) + 1, int(dst[-1]) + 1
        if not both:
            return IdMap.dense(max(num_src, num_dst)), 0
        if int(dst[0]) >= num_src:  # one count for both sides, destinations after sources
            return IdMap.dense(num_dst, int(dst[0])), 0
        return IdMap.two_counts(num_src, num_dst), num_src


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


def _guess_unit(where: str, column: str, first: float, last: float) -> str | None:
    """Return the unit of numbers that look like times since 1970, and say so."""
    unit = epoch_unit(first, last)
    if unit is not None:
        notify(f"{where}: guessed time_unit='{unit}': times in '{column}' look like {unit} since 1970.")
    return unit


def _check_usable(where: str, count: int, first: float, last: float) -> None:
    """Raise unless so many events, from the first time to the last, make a stream."""
    if count == 1:
        raise DegenerateStreamError(f"{where} has a single event; a stream needs at least two.")
    if first == last:
        raise DegenerateStreamError(
            f"{where}: all {count:,} events have the same time ({first}), so there is "
            "no order to learn from. Is this the right time column?"
        )
    if not last - first < 2**63:
        raise DegenerateStreamError(
            f"{where}: the time from {first} to {last} does not fit 64 bits. Mend the outlier."
        )
    if last - first < _LEAST_SPAN:
        raise DegenerateStreamError(
            f"{where}: the time from {first} to {last} vanishes in 32 bits, in which models see it. Give "
            "times in a smaller unit."
        )


def _backwards(t: Tensor) -> tuple[int, int]:
    """Return how often the times `[n]`, which may be on disk, go back, and the row where they first do."""
    count, first = 0, 0
    for start in range(0, len(t) - 1, _AT_ONCE):
        some = t[start : start + _AT_ONCE + 1]
        back = (some[1:] < some[:-1]).nonzero()
        if len(back) and not count:
            first = start + 1 + int(back[0])
        count += len(back)
    return count, first


def _check_dense(part: Table, ids: pl.Series, num_events: int) -> None:
    """Raise unless these ids of ``num_events`` events keep what ``ids="dense"`` promises."""
    if not ids.dtype.is_integer():
        word = ids.cast(pl.Int64, strict=False).is_null().arg_max() or 0
        raise bad_value(part, ids, word, "ids='dense' promises integers; use ids='map'.")
    for row, problem in (
        (ids.arg_min(), "dense ids count from 0; use ids='map' for any others."),
        (ids.arg_max(), f"too sparse for the dense ids of {num_events:,} events; use ids='map'."),
    ):
        assert row is not None
        if not 0 <= ids[row] < max(_FEW_NODES, _NODES_PER_EVENT * num_events):
            raise bad_value(part, ids, row, problem)


def _numbers(part: Table, apart: Tensor | None) -> Tensor | None:
    """Return the numeric features of a part: its columns, then those kept apart."""
    found = [as_tensor(part.frame.get_column(_X))] if _X in part.frame.columns else []
    if apart is not None:
        found.append(apart[part.first_row : part.first_row + part.frame.height])
    return None if not found else found[0] if len(found) == 1 else torch.cat(found, dim=1)
