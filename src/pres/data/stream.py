"""EventStream: a time-ordered, immutable sequence of events between nodes."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, overload

import numpy as np
import torch
from torch import Tensor

from pres.data.ids import IdMap
from pres.data.incidence import IndexArrays
from pres.data.info import SECONDS_PER_UNIT, StreamInfo, date_text, epoch_unit, human_duration
from pres.data.summary import Summary, mean_gap, summarise
from pres.errors import DegenerateStreamError, OptionError

_PER_EVENT = ("src", "dst", "t", "x", "categories", "label", "row")
MOST_FEATURE = 1e15  # the square of a gradient by a larger one would not fit 32 bits
COLUMNS = (*_PER_EVENT, "node_x")  # of a stream, where it has them


class Event(NamedTuple):
    """One event, in dense node ids."""

    src: int
    dst: int
    t: float | int


class Split(NamedTuple):
    """Three consecutive parts of a stream."""

    train: EventStream
    val: EventStream
    test: EventStream


@dataclass(frozen=True, eq=False, repr=False)
class EventStream:
    """Events ``(src, dst, t)`` in time order, with optional features and labels.

    The constructor checks its input and keeps a copy; slices and splits are views and cost nothing.
    Nothing in a stream can be reassigned, and its tensors are never written to. A `GrowingStream` hands out
    ever longer streams, which begin alike: what is derived from a stream (a split, a batch, a
    `TemporalIndex`) is made from one of fixed length.
    """

    src: Tensor  # [n] int64
    dst: Tensor  # [n] int64
    t: Tensor  # [n] int64 or float64, never decreasing
    x: Tensor | None = None  # [n, d] float32, numeric edge features
    categories: Tensor | None = None  # [n, c] int64, categorical edge features as embedding indices
    label: Tensor | None = None  # [n] int64, state of the source at the event
    row: Tensor | None = None  # [n] int64, the row of the input (from 0) each event was; None: in their order
    node_x: Tensor | None = None  # [num_nodes, d] float32, numeric node features
    num_nodes: int = 0  # found from the ids when 0
    num_src: int | None = None  # bipartite: how many sources; those of the constructor come first
    directed: bool = False  # whether neighbourhoods follow the direction of events
    offset: int = 0  # position of the first event in the stream this one was cut from
    info: StreamInfo = field(default_factory=StreamInfo)
    ids: IdMap = None  # type: ignore[assignment]  # the user's ids; counting from 0 when not given
    index: IndexArrays | None = field(default=None, init=False)  # ready made, of the whole stream of a store

    def __post_init__(self) -> None:
        own = {name: _copy(name, getattr(self, name)) for name in COLUMNS if getattr(self, name) is not None}
        _check_shapes(own)
        _check_times(own["t"])
        num_nodes = _check_nodes(own["src"], own["dst"], self.num_nodes, self.num_src)
        for name in ("x", "node_x"):
            if name in own and not _usable(own[name]):
                row = int((~(own[name].abs() <= MOST_FEATURE)).nonzero()[0, 0])
                finite = bool(own[name].isfinite().all())
                fault = f"beyond ±{MOST_FEATURE:g}: scale it" if finite else "not a finite float32"
                raise OptionError(f"{name} holds a value in row {row} that is {fault}.")
        if "node_x" in own and len(own["node_x"]) != num_nodes:
            raise OptionError(f"node_x has {len(own['node_x']):,} rows for {num_nodes:,} nodes.")
        ids = self.ids if self.ids is not None else IdMap.dense(num_nodes, self.num_src)
        if (ids.num_nodes, ids.num_src) != (num_nodes, self.num_src):
            raise OptionError(f"ids name {ids.num_nodes:,} nodes, but the stream has {num_nodes:,}.")
        info = _with_levels(self.info, own.get("categories"))
        self.__dict__.update(own, num_nodes=num_nodes, ids=ids, info=info)

    def __len__(self) -> int:
        return len(self.src)

    def __iter__(self) -> Iterator[Event]:
        return map(Event, self.src.tolist(), self.dst.tolist(), self.t.tolist())

    @overload
    def __getitem__(self, key: int) -> Event: ...
    @overload
    def __getitem__(self, key: slice) -> EventStream: ...
    def __getitem__(self, key: int | slice) -> Event | EventStream:
        """Return one `Event`, or a view of consecutive events."""
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self))
            if step != 1:
                raise OptionError("a stream is sliced in steps of 1: other steps would tear time apart.")
            return self._view(start, max(start, stop))
        if not -len(self) <= key < len(self):
            raise IndexError(f"event {key} of a stream of {len(self):,}")
        return Event(int(self.src[key]), int(self.dst[key]), self.t[key].item())

    def _view(self, start: int, stop: int) -> EventStream:
        if stop - start == len(self):
            return self
        columns = {name: getattr(self, name) for name in _PER_EVENT}
        cut = {name: None if column is None else column[start:stop] for name, column in columns.items()}
        return self._with(**cut, offset=self.offset + start, index=None)  # an index is of all events

    def to(self, device: torch.device | str) -> EventStream:
        """Return the stream with its tensors on ``device``."""
        columns = {name: getattr(self, name) for name in COLUMNS}
        moved = {name: None if column is None else column.to(device) for name, column in columns.items()}
        # Mapped arrays stay where they are; a model moves an index of its own.
        index = self.index if torch.device(device).type == self.t.device.type else None
        return self._with(**moved, index=index)

    def without(self, *, edge: bool = False, node: bool = False) -> EventStream:
        """Return the stream without its edge or node features."""
        stream = self._with(node_x=None) if node else self
        if not edge:
            return stream
        bare = dataclasses.replace(self.info, feature_names=(), category_names=(), category_levels=())
        return stream._with(x=None, categories=None, info=bare)

    def with_info(self, info: StreamInfo) -> EventStream:
        """Return the same events under another description."""
        return self._with(info=info)

    def _with(self, **changes: Any) -> EventStream:
        return unchecked(**vars(self) | changes)

    def split(self, train: float = 0.70, val: float = 0.15) -> Split:
        """Return chronological train, validation and test parts; the test part gets the rest.

        Events with equal time stay together: those tied with a boundary belong to the earlier part,
        unless nothing would be left for a later one.
        """
        if not (isinstance(train, float | int) and isinstance(val, float | int)):
            raise OptionError("split(train=0.70, val=0.15) takes two fractions; the test part gets the rest.")
        if not (train > 0 and val > 0 and train + val < 1):
            raise OptionError(
                f"split(train={train}, val={val}): both must be positive and leave a test part."
            )
        latest = self._run_start(len(self))  # where the last time begins, and the one before it
        before = self._run_start(latest)
        if before == 0:
            times = min(len(self), 1 if latest == 0 else 2)
            raise DegenerateStreamError(
                f"{self.info.title}: {len(self):,} events at {times} distinct times "
                "cannot be split in three without tearing events of equal time apart. Use more events."
            )
        first = min(self._run_end(round(len(self) * train)), before)
        second = max(self._run_end(first + 1), min(self._run_end(round(len(self) * (train + val))), latest))
        cuts = (0, first, second, len(self))
        return Split(*(self._view(start, stop) for start, stop in pairwise(cuts)))

    def _run_start(self, stop: int) -> int:
        """Return where the events of equal time that end before ``stop`` begin."""
        return int(torch.searchsorted(self.t, self.t[stop - 1])) if stop else 0

    def _run_end(self, stop: int) -> int:
        """Return where the events at the time of that before ``stop`` end."""
        return int(torch.searchsorted(self.t, self.t[max(stop, 1) - 1], right=True))

    @property
    def bipartite(self) -> bool:
        """Whether sources and destinations are two kinds of nodes."""
        return self.num_src is not None

    @property
    def num_categories(self) -> tuple[int, ...]:
        """Number of levels of each categorical feature."""
        return tuple(len(levels) for levels in self.info.category_levels)

    @property
    def span_seconds(self) -> float | None:
        """Seconds from the first event to the last, where the unit of time is known."""
        if self.info.time_unit is None or len(self) == 0:
            return None
        return (self.t[-1] - self.t[0]).item() * SECONDS_PER_UNIT[self.info.time_unit]

    @property
    def since_1970(self) -> bool:
        """Whether times count from 1970: they were read from dates, or look like it in the stream's unit."""
        if self.info.dates or len(self) == 0 or self.info.time_unit is None:
            return self.info.dates
        return epoch_unit(self.t[0].item(), self.t[-1].item()) == self.info.time_unit

    def time_text(self, t: float) -> str:
        """Return a time in words: a date if the stream's times count from 1970, otherwise the number."""
        return date_text(t, self.info.time_unit) if self.since_1970 and self.info.time_unit else f"{t:,}"

    def summary(self) -> Summary:
        """Return the stream's statistics."""
        return summarise({name: getattr(self, name) for name in COLUMNS}, self.num_nodes)

    def mean_gap(self) -> float:
        """Return the mean time between consecutive events of the same node; 0 where no node has two."""
        return mean_gap(self.src, self.dst, self.t, self.num_nodes)

    def fingerprint(self) -> str:
        """Return 16 hexadecimal digits that differ between streams of different events or features."""
        digest = hashlib.blake2b(f"{len(self)} {self.num_nodes} {self.num_src}".encode(), digest_size=8)
        for name in ("src", "dst", "t", "x", "categories", "node_x"):
            values = getattr(self, name)
            if values is not None:
                digest.update(name.encode())
                digest.update(values.cpu().contiguous().numpy().data)
        return digest.hexdigest()

    def __repr__(self) -> str:
        kind = "directed" if self.directed else "undirected"
        if self.num_src is not None:
            kind = f"{self.num_src:,} sources → {self.num_nodes - self.num_src:,} destinations, {kind}"
        lines = [f"EventStream '{self.info.title}': {len(self):,} events, {self.num_nodes:,} nodes ({kind})"]
        if len(self):
            first, last, span = self.t[0].item(), self.t[-1].item(), self.span_seconds
            unit = "" if self.info.time_unit is None else f" {self.info.time_unit}"
            numbers = f"{first:,} … {last:,}{unit}"
            dates = f"{self.time_text(first)} … {self.time_text(last)} ({numbers})"
            spanning = "" if span is None else f", spanning {human_duration(span)}"
            lines.append(f"  t         {dates if self.since_1970 else numbers}{spanning}")
        lines.append(f"  features  {self._features() or 'none'}")
        lines.append(f"  labels    {'none' if self.label is None else 'one per event'}")
        if self.offset and len(self):
            lines.append(f"  events    {self.offset:,} … {self.offset + len(self) - 1:,} of the whole stream")
        return "\n".join(lines)

    def _features(self) -> str:
        levels = zip(self.info.category_names, self.num_categories, strict=True)
        parts = [] if self.x is None else [f"{self.x.shape[1]} per event"]
        parts += [f"'{name}' ({count:,} categories)" for name, count in levels]
        parts += [] if self.node_x is None else [f"{self.node_x.shape[1]} per node"]
        return ", ".join(parts)


def unchecked(**fields: Any) -> EventStream:
    """Return a stream of columns and facts that are known to fit, without copying or checking them."""
    stream = object.__new__(EventStream)
    defaults = dict.fromkeys(COLUMNS) | {"directed": False, "offset": 0, "index": None}
    stream.__dict__.update(defaults | fields)
    return stream


def _copy(name: str, values: Any) -> Tensor:
    """Return a copy of anything array-like in the type that the stream keeps."""
    try:
        tensor = values.detach() if isinstance(values, Tensor) else torch.tensor(np.array(values))
    except (TypeError, ValueError) as error:
        raise OptionError(f"{name} must hold numbers: {str(error).rstrip('. ')}.") from None
    if tensor.is_complex() or tensor.dtype == torch.uint64:
        raise OptionError(f"{name} cannot hold {tensor.dtype} values; use int64 or float64.")
    if name in ("x", "node_x"):
        return tensor.to(torch.float32, copy=True)
    if name == "t" and tensor.is_floating_point():
        return tensor.to(torch.float64, copy=True)
    if name != "t" and (tensor.is_floating_point() or (tensor.dtype == torch.bool and name != "label")):
        raise OptionError(f"{name} must hold integers, not {tensor.dtype}.")
    return tensor.to(torch.int64, copy=True)


def _usable(values: Tensor) -> bool:
    if not values.numel():
        return True
    least, greatest = values.aminmax()  # both NaN if one of the values is
    return bool((least >= -MOST_FEATURE) & (greatest <= MOST_FEATURE))


def _check_shapes(tensors: dict[str, Tensor]) -> None:
    n = tensors["src"].numel()
    for name, tensor in tensors.items():
        shape, dimensions = tuple(tensor.shape), 2 if name in ("x", "categories", "node_x") else 1
        if len(shape) != dimensions or (name in _PER_EVENT and shape[0] != n):
            expected = "[num_nodes, d]" if name == "node_x" else f"[{n}, d]" if dimensions == 2 else f"[{n}]"
            raise OptionError(f"{name} has shape {list(shape)}, expected {expected} for {n:,} events.")


def _check_times(t: Tensor) -> None:
    if t.is_floating_point() and not bool(t.isfinite().all()):
        raise OptionError(f"t of event {int((~t.isfinite()).nonzero()[0])} is not a finite number.")
    backwards = (t[1:] < t[:-1]).nonzero()
    if len(backwards):
        place = int(backwards[0]) + 1
        raise OptionError(
            f"t decreases at event {place} ({t[place - 1].item()} to {t[place].item()}): sort the events by "
            "time first. pres.read does it for you."
        )


def _check_nodes(src: Tensor, dst: Tensor, num_nodes: int, num_src: int | None) -> int:
    """Return the number of nodes, once the ids are known to fit it."""
    if num_nodes < 0 or not 0 <= (num_src or 0) <= (num_nodes or num_src or 0):
        raise OptionError(f"num_nodes={num_nodes} and num_src={num_src} do not fit each other.")
    if len(src) == 0:
        return num_nodes or num_src or 0
    lowest, highest = int(min(src.min(), dst.min())), int(max(src.max(), dst.max()))
    if lowest < 0:
        raise OptionError(f"node ids must not be negative, found {lowest}. pres.read maps any ids.")
    if num_nodes and highest >= num_nodes:
        raise OptionError(f"node id {highest} does not fit num_nodes={num_nodes}.")
    if num_src is not None and not (int(src.max()) < num_src <= int(dst.min())):
        raise OptionError(f"bipartite with num_src={num_src}: sources must lie below it, destinations not.")
    return num_nodes or highest + 1


def _with_levels(info: StreamInfo, categories: Tensor | None) -> StreamInfo:
    """Return the info with a name and levels for every categorical feature, found from the indices."""
    if categories is None or not len(categories):
        return info
    lowest, highest = categories.amin(0), categories.amax(0)
    if bool((lowest < 0).any()):
        raise OptionError(f"categories are indices from 0, found {int(lowest.min())}.")
    names = info.category_names or tuple(f"category {i}" for i in range(len(highest)))
    levels = info.category_levels or tuple(tuple(range(top + 1)) for top in highest.tolist())
    fits = len(names) == len(levels) == len(highest)
    if not fits or any(top >= len(level) for top, level in zip(highest.tolist(), levels, strict=True)):
        raise OptionError(
            f"category_names and category_levels do not fit {len(highest)} categorical features."
        )
    return dataclasses.replace(info, category_names=names, category_levels=levels)
