"""A stream that grows: new events and new nodes behind those it has."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import polars as pl
import torch
from torch import Tensor

from pres.data.ids import IdMap
from pres.data.room import Room
from pres.data.stream import EventStream, unchecked
from pres.data.tabular.more import MoreEvents, read_more
from pres.data.tabular.rows import Table, open_table
from pres.errors import OptionError

_COLUMNS = ("src", "dst", "t", "x", "categories", "row", "node_x")


class GrowingStream:
    """A stream, and room behind it.

    `events` is the stream so far. Every append makes a longer one that begins with the same events and nodes;
    earlier ones stay valid and as they are. An event costs the same whatever the length of the stream.

    New ids become nodes, numbered from the present number of nodes on, in the order in which they occur, and
    keep their number for ever. Features of new nodes are zeros. A stream that has grown has no labels: those
    of new events are not known yet.

    Args:
        events: The whole stream so far.
    """

    def __init__(self, events: EventStream) -> None:
        if events.offset:
            raise OptionError("a whole stream grows, not a slice of it.")
        self.events = events
        self._rooms = {
            name: Room(getattr(events, name)) for name in _COLUMNS if getattr(events, name) is not None
        }
        ids = events.ids
        self._src = dict(zip(ids.src_values.to_list(), _nodes(ids.src_nodes, ids.src_values), strict=True))
        self._dst, self._sides = self._src, None
        if ids.dst_values is not None and ids.src_nodes is not None and ids.dst_nodes is not None:
            self._dst = dict(zip(ids.dst_values.to_list(), ids.dst_nodes.tolist(), strict=True))
            self._sides = Room(ids.src_nodes), Room(ids.dst_nodes)

    def find_src(self, values: pl.Series) -> Tensor:
        """Return the nodes `[n]` of source ids, -1 where one is unknown, in O(n)."""
        if _are_many(values, self._src):
            return self.events.ids.find_src(values)
        return _found(self._src, self.events.ids.src_values, values)

    def find_dst(self, values: pl.Series) -> Tensor:
        """Return the nodes `[n]` of destination ids, likewise."""
        ids = self.events.ids
        if _are_many(values, self._dst):
            return ids.find_dst(values)
        return _found(self._dst, ids.src_values if ids.dst_values is None else ids.dst_values, values)

    def read(self, source: Any, features: Any = None) -> MoreEvents:
        """Return the events of any source that `pres.read` takes, in the terms of the stream."""
        table = source if isinstance(source, Table) else open_table(source, what="the events")
        return read_more(table, self.events, features)

    def append(self, source: Any, features: Any = None) -> EventStream:
        """Return the stream with the events of a source behind those it has; see `extend`.

        Args:
            source: Anything that `pres.read` takes, in the user's ids, with the columns that the stream was
                read from or with ``src``, ``dst`` and ``t``.
            features: The events' numeric features, one row each, where they are not among the columns.
        """
        return self.extend(self.read(source, features))

    def extend(self, more: MoreEvents) -> EventStream:
        """Return the stream with ``more`` events behind those it has.

        None may be earlier than the one before it; nothing is changed if one is.
        """
        before = self.events
        if not len(more):
            return before
        last = before.t[-1:] if len(before) else more.t[:1]
        late = (torch.diff(more.t, prepend=last.to(more.t.device)) < 0).nonzero()
        if len(late):
            place = int(late[0])
            past = more.t[place - 1] if place else last[0]
            raise OptionError(
                f"event {place + 1:,} of {len(more):,} is at {before.time_text(more.t[place].item())}, and "
                f"that before it at {before.time_text(past.item())}. A stream grows in the order of time: "
                "sort the events, and leave out those it has."
            )
        for name, values in ("x", more.x), ("categories", more.categories):
            if (values is None) != (getattr(before, name) is None):
                raise OptionError(f"the events have other {name} than the stream; read them as its events.")
        new: tuple[list[tuple[Any, int]], list[tuple[Any, int]]] = [], []
        try:
            self.events = self._longer(more, *new)
        except BaseException:  # out of memory, or stopped: as if nothing had been asked
            for table, ids in zip((self._src, self._dst), new, strict=True):
                for value, _ in ids:
                    table.pop(value, None)
            raise
        return self.events

    def _longer(
        self, more: MoreEvents, new_src: list[tuple[Any, int]], new_dst: list[tuple[Any, int]]
    ) -> EventStream:
        """Return the stream with further events, and tell the new ids; rooms are behind the present one's."""
        before = self.events
        src, dst, ids = self._take_in_ids(more.src, more.dst, new_src, new_dst)
        columns: dict[str, Any] = {"src": src, "dst": dst, "t": more.t, "x": more.x}
        columns["categories"] = more.categories
        columns["row"] = torch.arange(len(before), len(before) + len(more))
        if before.node_x is not None:
            columns["node_x"] = before.node_x.new_zeros(
                ids.num_nodes - before.num_nodes, before.node_x.shape[1]
            )
        at = {"node_x": before.num_nodes}
        grown = {
            name: room.append(columns[name].to(room.rows.device), at.get(name, len(before)))
            for name, room in self._rooms.items()
        }
        facts = {name: getattr(before, name) for name in ("directed", "info")}
        return unchecked(**grown, **facts, num_nodes=ids.num_nodes, num_src=ids.num_src, ids=ids)

    def _take_in_ids(
        self,
        src: pl.Series,
        dst: pl.Series,
        new_src: list[tuple[Any, int]],
        new_dst: list[tuple[Any, int]],
    ) -> tuple[Tensor, Tensor, IdMap]:
        """Return the nodes of both ends of events, and the ids with those that are new."""
        ids = self.events.ids
        number = ids.num_nodes
        of_src, of_dst = self.find_src(src), self.find_dst(dst)
        rows = ((of_src < 0) | (of_dst < 0)).nonzero().squeeze(1)
        found: tuple[list[int], list[int]] = [], []
        ends = (self._src, new_src, found[0]), (self._dst, new_dst, found[1])
        for pair in zip(*(end.gather(rows.numpy()).to_list() for end in (src, dst)), strict=True):
            for value, (table, new, nodes) in zip(pair, ends, strict=True):
                node = table.setdefault(value, number)
                if node == number:
                    new.append((value, node))
                    number += 1
                nodes.append(node)
        if number > ids.num_nodes:
            ids = self._with_new(ids, new_src, new_dst)
            of_src[rows], of_dst[rows] = (torch.tensor(nodes) for nodes in found)
        return of_src, of_dst, ids

    def _with_new(self, ids: IdMap, src: list[tuple[Any, int]], dst: list[tuple[Any, int]]) -> IdMap:
        if self._sides is None or ids.dst_values is None:
            both = sorted(src + dst, key=lambda new: new[1])
            return IdMap(_appended(ids.src_values, [value for value, _ in both]))
        of_src, of_dst = (
            room.append(torch.tensor([node for _, node in new], dtype=torch.int64), len(known))
            for room, new, known in zip(
                self._sides, (src, dst), (ids.src_values, ids.dst_values), strict=True
            )
        )
        return IdMap(
            _appended(ids.src_values, [value for value, _ in src]),
            _appended(ids.dst_values, [value for value, _ in dst]),
            of_src,
            of_dst,
        )


def _nodes(nodes: Tensor | None, values: pl.Series) -> Iterable[int]:
    return range(len(values)) if nodes is None else nodes.tolist()


def _are_many(values: pl.Series, known: dict[Any, int]) -> bool:
    """Return whether one look at all known ids costs less than one at each of the values."""
    return len(values) > 1_000 and 8 * len(values) > len(known)


def _found(table: dict[Any, int], known: pl.Series, ids: pl.Series) -> Tensor:
    if ids.dtype == known.dtype:
        return torch.tensor([table.get(value, -1) for value in ids.to_list()], dtype=torch.int64)
    same = ids.cast(known.dtype, strict=False)
    lost = (same.cast(ids.dtype, strict=False) != ids).fill_null(True)  # '007' is not 7
    pairs = zip(same.to_list(), lost.to_list(), strict=True)
    return torch.tensor([-1 if wrong else table.get(value, -1) for value, wrong in pairs], dtype=torch.int64)


def _appended(known: pl.Series, values: list[Any]) -> pl.Series:
    """Return ids with further ones behind them; each is copied again only when its chunk has doubled."""
    if not values:
        return known
    chunks = [*known.get_chunks(), pl.Series(known.name, values, dtype=known.dtype)]
    while len(chunks) > 1 and len(chunks[-2]) < 2 * len(chunks[-1]):
        last = chunks.pop()
        chunks[-1] = pl.concat([chunks[-1], last], rechunk=True)
    return pl.concat(chunks, rechunk=False)
