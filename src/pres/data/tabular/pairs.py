"""Tables of pairs: who is asked about whom, and when, in the terms of a stream."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import polars as pl
import torch
from torch import Tensor

from pres.data.info import SECONDS_PER_UNIT
from pres.data.stream import EventStream
from pres.data.tabular.columns import PairColumns, resolve_pair_columns
from pres.data.tabular.rows import Table
from pres.data.tabular.times import read_times
from pres.data.tabular.values import read_ids
from pres.errors import OptionError, UnknownIdError, check_choice, notify

_FAR = 20  # spans of the stream: times in another unit are 24, 60 or 1,000 times off
Unknown = Literal["error", "new"]


class Finder(Protocol):
    """What finds the nodes of the user's ids."""

    def find_src(self, values: pl.Series) -> Tensor:
        """Return the nodes `[n]` of source ids; -1 where one is unknown."""
        ...

    def find_dst(self, values: pl.Series) -> Tensor:
        """Return the nodes `[n]` of destination ids, likewise."""
        ...


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of nodes of a stream, each asked about at a time."""

    src: Tensor  # [n] int64; the stream's num_nodes for an id that it never saw
    dst: Tensor  # [n] likewise
    t: Tensor  # [n] in the stream's unit
    new: Tensor  # [n] bool: an id of the pair never occurs in the stream
    new_nodes: int  # how many such ids there are

    def __len__(self) -> int:
        return len(self.src)


def pair_columns(
    table: Table, events: EventStream, *, src: str | None, dst: str | None, t: str | None
) -> PairColumns:
    """Return the columns of pairs: as named here, as named when ``events`` were read, or guessed and said."""
    given = {"src": src, "dst": dst, "t": t}
    origin = events.info.origin
    for role, name in ({} if origin is None else origin.options).items():
        if given.get(role, "") is None and name in table.frame.columns and name not in given.values():
            given[role] = name
    columns = resolve_pair_columns(table.frame.columns, table.where, **given)
    said = []
    if columns.guessed:
        said.append(f"guessed {', '.join(columns.guessed)}. Name them to decide yourself.")
    if columns.t is None:
        said.append("there is no column of times, so the pairs are asked about just after the last event.")
    for what in said:
        notify(f"{table.where}: {what}")
    return columns


def read_pairs(
    table: Table,
    columns: PairColumns,
    events: EventStream,
    *,
    unknown: Unknown = "error",
    numbers_fit: bool = False,
    ids: Finder | None = None,
) -> Pairs:
    """Return the pairs of a table as nodes and times of ``events``.

    Args:
        table: The table.
        columns: Its columns; without one of times, all pairs are asked about just after the last event.
        events: The stream whose ids and times these are.
        unknown: Whether an id that the stream never saw is an ``"error"`` or a ``"new"`` node.
        numbers_fit: Whether numbers are times of the stream even if those were read from dates.
        ids: What finds the nodes of ids; None for the stream's own, which look at all of them each time.
    """
    check_choice("unknown", unknown, ("error", "new"))
    ids, blank = events.ids if ids is None else ids, events.num_nodes
    src, new_src = _nodes(table, columns.src, ids.find_src, blank, unknown)
    dst, new_dst = _nodes(table, columns.dst, ids.find_dst, blank, unknown)
    if columns.t is None:
        t = just_after(events).expand(len(src))
    else:
        t = times_of(table, columns.t, events, numbers_fit)
    new = (src == events.num_nodes) | (dst == events.num_nodes)
    if events.bipartite:
        new_nodes = new_src.n_unique() + new_dst.n_unique()
    else:
        new_nodes = pl.concat([new_src.cast(pl.String), new_dst.cast(pl.String)]).n_unique()
    return Pairs(src, dst, t, new, new_nodes)


def just_after(events: EventStream) -> Tensor:
    """Return the first time after the last event."""
    last = events.t[-1].cpu()
    return torch.nextafter(last, last.new_tensor(math.inf)) if last.is_floating_point() else last + 1


def _nodes(
    table: Table, column: str, find: Callable[[pl.Series], Tensor], blank: int, unknown: Unknown
) -> tuple[Tensor, pl.Series]:
    """Return the nodes `[n]` of a column of ids, ``blank`` where one is not known, and all such ids."""
    wanted = read_ids(table, column)
    found = find(wanted)
    new = found < 0
    missing = wanted.filter(pl.Series(new.numpy()))
    if len(missing) and unknown == "error":
        raise _unknown_ids(table, column, int(new.nonzero()[0]), missing)
    return torch.where(new, blank, found), missing


def _unknown_ids(table: Table, column: str, row: int, missing: pl.Series) -> UnknownIdError:
    first, *others = missing.unique(maintain_order=True).to_list()
    also = ""
    if others:
        more = f" and {len(others) - 2:,} more" if len(others) > 2 else ""
        also = f", nor do {', '.join(repr(other) for other in others[:2])}{more}"
    return UnknownIdError(
        f"{table.where}, row {row + 1:,}, column '{column}': {first!r} never occurs in the stream{also}. "
        "To score such ids as nodes without any history, use unknown='new'."
    )


def times_of(table: Table, column: str, events: EventStream, numbers_fit: bool) -> Tensor:
    """Return a column of times in the stream's unit."""
    times, unit = read_times(table, column)
    first, last = events.t[0].item(), events.t[-1].item()
    reach = f"from {events.time_text(first)} to {events.time_text(last)}"
    if unit is None and events.info.dates and not numbers_fit:
        raise OptionError(
            f"{table.where}: '{column}' holds numbers, but the stream's times were read from dates. Give "
            "dates."
        )
    if unit is not None and not events.since_1970:
        raise OptionError(
            f"{table.where}: '{column}' holds dates, but the stream's times are numbers, {reach}. Give "
            "numbers on that scale."
        )
    if unit is not None and events.info.time_unit is not None:
        times = _in_unit(table, column, times, unit, events.info.time_unit)
    earliest, latest = times.min().item(), times.max().item()
    # What is just after the latest must fit, too.
    if not (max(latest, last) - min(earliest, first) < 2**63 and latest < 2**63 - 1):
        raise OptionError(
            f"{table.where}: '{column}' reaches from {earliest} to {latest}; with the stream's times from "
            f"{first} to {last} that does not fit 64 bits. Mend the outlier."
        )
    _say_what_is_far(table, column, times, first, last, reach)
    return times


def _say_what_is_far(table: Table, column: str, times: Tensor, first: float, last: float, reach: str) -> None:
    """Tell of times before the stream's first event, and of those so far off that their unit may differ."""
    before = int((times < first).sum())
    beyond = torch.maximum(times - last, first - times).double() > _FAR * float(last - first)
    for count, what in (
        (int(beyond.sum()), f"lie far outside the stream, which goes {reach}. Are they in the same unit?"),
        (before, f"lie before the stream's first event: it goes {reach}, and nothing is known earlier."),
    ):
        if count:
            notify(f"{table.where}: {count:,} of {len(times):,} times in '{column}' {what}")
            return


def _in_unit(table: Table, column: str, times: Tensor, unit: str, wanted: str) -> Tensor:
    """Return times that count ``unit`` as times that count ``wanted``."""
    ratio = SECONDS_PER_UNIT[unit] / SECONDS_PER_UNIT[wanted]
    if ratio < 1:
        return times.double() / round(1 / ratio)
    factor = round(ratio)
    if int(times.abs().max()) * factor >= 2**63:
        raise OptionError(f"{table.where}: '{column}' holds a date that does not fit 64 bits in {wanted}.")
    return times * factor
