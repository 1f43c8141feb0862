"""A table of any size into the columns of a store: one pass to learn about it, and one to write it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pres.data.ids import IdMap
from pres.data.read import features_apart, read_node_features
from pres.data.store.arrays import Array, ColumnFiles, write_tensor
from pres.data.store.folder import mapped, stream_in
from pres.data.store.order import AT_ONCE, Show, permute, write_time_order
from pres.data.store.survey import Distinct, Times, category_places, changed, check_foreseen, places
from pres.data.stream import EventStream, StreamInfo
from pres.data.tabular.chunks import Scan
from pres.data.tabular.columns import Columns, resolve_columns
from pres.data.tabular.decisions import (
    check_dense,
    check_usable,
    dense_ids,
    guess_bipartite,
    most_dense_nodes,
    of_one_type,
    say_it_was_sorted,
    say_what_was_guessed,
)
from pres.data.tabular.table import Table
from pres.data.tabular.values import category_values, read_ids, read_labels, read_numbers
from pres.errors import OptionError, ValueInRowError, check_choice

ROWS = 1 << 20  # of a table in memory at a time


@dataclass
class _Survey:
    """What the first pass learns."""

    columns: Columns
    rows: int = 0
    src: Distinct = field(default_factory=Distinct)
    dst: Distinct = field(default_factory=Distinct)
    times: Times = field(default_factory=Times)
    levels: dict[str, Distinct] = field(default_factory=dict)


class ScannedTable:
    """The events of a scanned table, as `pres.read` would make them.

    Args:
        table: The table.
        options: Those of `pres.read`.
        rows: Rows in memory at a time.
        at_once: Events in memory at a time where they are sorted.
    """

    def __init__(
        self, table: Scan, options: dict[str, Any], rows: int = ROWS, at_once: int = AT_ONCE
    ) -> None:
        self.scan, self.options, self.rows, self.at_once = table, options, rows, at_once
        check_choice("ids", options["ids"], ("map", "dense"))
        if options["time_unit"] is not None:
            check_choice("time_unit", options["time_unit"], ("ns", "us", "ms", "s", "h", "d"))

    def write(self, place: Path, show: Show = lambda _: None) -> EventStream:
        """Write the columns into ``place``, in time order, and return them as a stream."""
        survey = self._survey(show)
        ids, shift = self._ids(survey)
        names, apart = survey.columns.x, None
        if self.options["features"] is not None:
            further, apart = features_apart(self.scan.about, self.options["features"], survey.rows)
            names += further
        unit = self._write(place, survey, ids, shift, apart, show)
        if self.options["node_features"] is not None:
            node_x = read_node_features(self.options["node_features"], ids.num_nodes)
            write_tensor(node_x, place / "node_x.npy", self.at_once)
        info = StreamInfo(
            name=self.options["name"] or self.scan.about.name,
            time_unit=self.options["time_unit"] or unit,
            dates=unit is not None,
            feature_names=names,
            category_names=survey.columns.categories,
            category_levels=tuple(tuple(level.values().to_list()) for level in survey.levels.values()),
        )
        written = [path.stem for path in place.glob("*.npy")]
        return stream_in(place, written, ids, self.options["directed"], info)

    def _survey(self, show: Show) -> _Survey:
        named = {name: self.options[name] for name in ("src", "dst", "t", "x", "categories", "label")}
        survey = _Survey(resolve_columns(self.scan.columns, self.scan.about.where, **named))
        columns = survey.columns
        survey.levels = {name: Distinct() for name in columns.categories}
        wanted = [name for name in columns.used if name not in columns.x]
        for part in self.scan.parts(wanted, self.rows):
            survey.columns = self._columns_with_label(part, survey.columns)
            for side, name in ((survey.src, columns.src), (survey.dst, columns.dst)):
                ids = read_ids(part, name)
                if self.options["ids"] == "dense":
                    check_dense(part, name, ids, 1 << 52)  # how many events there are is not known yet
                side.add(ids)
            survey.times.add(part, columns.t)
            for name, levels in survey.levels.items():
                levels.add(category_values(part, name))
            survey.rows += part.frame.height
            show(part.frame.height)
        return survey

    def _columns_with_label(self, part: Table, columns: Columns) -> Columns:
        """Return the columns; one that was only guessed to hold labels is let go if it does not."""
        if columns.label is not None:
            try:
                read_labels(part, columns.label)
            except ValueInRowError:
                if self.options["label"] is not None:
                    raise
                return columns.without_label()
        return columns

    def _ids(self, survey: _Survey) -> tuple[IdMap, int]:
        """Return the map of ids, and what makes a destination's place among its ids a node."""
        src, dst, bipartite = survey.src.values(), survey.dst.values(), self.options["bipartite"]
        two_kinds = guess_bipartite(survey.columns, src, dst) if bipartite is None else bool(bipartite)
        say_what_was_guessed(self.scan.about, survey.columns, two_kinds if bipartite is None else None)
        if self.options["ids"] == "dense":
            self._check_dense(survey)
            return dense_ids(int(src[-1]), int(dst[0]), int(dst[-1]), two_kinds)
        if not two_kinds:
            src, dst = of_one_type(src, dst)
        ids = IdMap.of(src, dst, two_kinds)
        return ids, ids.num_src or 0

    def _check_dense(self, survey: _Survey) -> None:
        """Raise, naming the row, if an id is too large for so many events; the first pass could not know."""
        for name, side in ((survey.columns.src, survey.src), (survey.columns.dst, survey.dst)):
            if int(side.values()[-1]) >= most_dense_nodes(survey.rows):
                for part in self.scan.parts([name], self.rows):
                    check_dense(part, name, read_ids(part, name), survey.rows)

    def _parts_again(self, survey: _Survey) -> Iterator[Table]:
        """Yield the parts of the second pass; raise unless they are as many rows as the first saw."""
        rows = 0
        for part in self.scan.parts([*survey.columns.used], self.rows):
            rows += part.frame.height
            if rows > survey.rows:
                raise changed(self.scan.about)
            yield part
        if rows < survey.rows:
            raise changed(self.scan.about)

    def _nodes(self, part: Table, survey: _Survey, ids: IdMap, shift: int) -> tuple[Array, Array]:
        columns, found = survey.columns, []
        dst_values = ids.src_values if ids.dst_values is None else ids.dst_values
        for name, side, known in (
            (columns.src, survey.src, ids.src_values),
            (columns.dst, survey.dst, dst_values),
        ):
            values = read_ids(part, name)
            if self.options["ids"] == "dense":
                check_foreseen(part, values, side.values())
                found.append(values.to_numpy())
            else:
                found.append(places(part, values, known))
        return found[0], found[1] + shift

    def _write(
        self, place: Path, survey: _Survey, ids: IdMap, shift: int, apart: Tensor | None, show: Show
    ) -> str | None:
        """Write every column in the order of the table, sort them if need be, and return the unit of time."""
        columns, unit, order = survey.columns, None, _Order()
        with ColumnFiles(place, survey.rows) as files:
            for part in self._parts_again(survey):
                src, dst = self._nodes(part, survey, ids, shift)
                t, unit = survey.times.values(part, columns.t)
                order.add(t.numpy())
                files.append(
                    src=src,
                    dst=dst,
                    t=t.numpy(),
                    x=_numbers(part, columns.x, apart),
                    categories=_category_indices(part, survey.levels) if survey.levels else None,
                    label=None if columns.label is None else read_labels(part, columns.label).numpy(),
                )
                show(part.frame.height)
        asked = self.options["time_unit"]
        if unit is not None and asked not in (None, unit):
            raise OptionError(f"'{columns.t}' holds dates, read in {unit}; leave out time_unit='{asked}'.")
        check_usable(self.scan.about, survey.rows, order.first, order.last)
        if order.backwards:
            say_it_was_sorted(self.scan.about, columns, order.backwards, order.first_back)
            row = place / "row.npy"
            write_time_order(mapped(place / "t.npy").numpy(), row, self.at_once, show)
            for name in files.names:
                permute(place / f"{name}.npy", mapped(row).numpy(), self.at_once)
        return unit


def _numbers(part: Table, columns: tuple[str, ...], apart: Tensor | None) -> Array | None:
    """Return the numeric features of a part: its columns, then those kept apart."""
    found = [read_numbers(part, columns)] if columns else []
    if apart is not None:
        found.append(apart[part.first_row : part.first_row + part.frame.height])
    return torch.cat(found, dim=1).numpy() if found else None


def _category_indices(part: Table, levels: dict[str, Distinct]) -> Array:
    indices = []
    for name, distinct in levels.items():
        indices.append(category_places(part, category_values(part, name), distinct.values()))
    return np.stack(indices, axis=1)


class _Order:
    """The range of times that come in parts, and how often they go back."""

    def __init__(self) -> None:
        self.first: float = 0
        self.last: float = 0
        self.backwards = 0  # times that are less than just before
        self.first_back = 0  # the row of the first of them
        self._rows = 0
        self._latest: Array | None = None

    def add(self, t: Array) -> None:
        """Take in the times of a part."""
        before = t[:1] if self._latest is None else self._latest
        back = (t < np.concatenate([before, t[:-1]])).nonzero()[0]
        if len(back) and not self.backwards:
            self.first_back = self._rows + int(back[0])
        self.backwards += len(back)
        lowest, highest = t.min().item(), t.max().item()
        self.first = min(self.first, lowest) if self._rows else lowest
        self.last = max(self.last, highest) if self._rows else highest
        self._latest, self._rows = t[-1:].copy(), self._rows + len(t)
