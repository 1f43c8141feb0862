"""EventStream: a time-ordered, immutable sequence of events between nodes."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import torch
from torch import Tensor

from pres.errors import DegenerateStreamError, OptionError
from pres.ids import IdMap

if TYPE_CHECKING:
    from pres.summary import Summary

_PER_EVENT = ("src", "dst", "t", "x", "categories", "label")
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "h": 3600.0, "d": 86400.0}


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


@dataclass(frozen=True)
class StreamInfo:
    """What a stream is called and what its columns mean."""

    name: str = "events"
    variant: str | None = None  # how this copy differs from the published dataset, e.g. "featureless"
    time_unit: str | None = None  # one of ns, us, ms, s, h, d; None if unknown
    feature_names: tuple[str, ...] = ()
    category_names: tuple[str, ...] = ()
    category_levels: tuple[tuple[Any, ...], ...] = ()  # the user's value of each category index

    @property
    def title(self) -> str:
        """The name with its variant: what every result carries."""
        return self.name if self.variant is None else f"{self.name} ({self.variant})"


@dataclass(frozen=True, eq=False, repr=False)
class EventStream:
    """Events ``(src, dst, t)`` in time order, with optional features and labels.

    The constructor checks its input and keeps a copy; slices and splits are views and cost nothing.
    Nothing in a stream can be reassigned, and its tensors are never written to.
    """

    src: Tensor  # [n] int64
    dst: Tensor  # [n] int64
    t: Tensor  # [n] int64 or float64, never decreasing
    x: Tensor | None = None  # [n, d] float32, numeric edge features
    categories: Tensor | None = None  # [n, c] int64, categorical edge features as embedding indices
    label: Tensor | None = None  # [n] int64, state of the source at the event
    node_x: Tensor | None = None  # [num_nodes, d] float32, numeric node features
    num_nodes: int = 0  # found from the ids when 0
    num_src: int | None = None  # bipartite: sources are 0 … num_src - 1, destinations follow
    directed: bool = False  # whether neighbourhoods follow the direction of events
    offset: int = 0  # position of the first event in the stream this one was cut from
    info: StreamInfo = field(default_factory=StreamInfo)
    ids: IdMap = None  # type: ignore[assignment]  # the user's ids; counting from 0 when not given

    def __post_init__(self) -> None:
        own = {"src": _integers(self.src, "src"), "dst": _integers(self.dst, "dst"), "t": _times(self.t)}
        for name, dtype in (("x", torch.float32), ("categories", torch.int64), ("label", torch.int64)):
            if getattr(self, name) is not None:
                own[name] = torch.as_tensor(getattr(self, name)).to(dtype, copy=True)
        if self.node_x is not None:
            own["node_x"] = torch.as_tensor(self.node_x).to(torch.float32, copy=True)
        _check_shapes(own)
        num_nodes, num_src = _check_ids(own["src"], own["dst"], self.num_nodes, self.num_src)
        for name in ("x", "node_x"):
            if name in own and not bool(own[name].isfinite().all()):
                row = int((~own[name].isfinite()).nonzero()[0, 0])
                raise OptionError(f"{name} holds a value in row {row} that is not a finite float32.")
        if "node_x" in own and len(own["node_x"]) != num_nodes:
            raise OptionError(f"node_x has {len(own['node_x']):,} rows for {num_nodes:,} nodes.")
        ids = self.ids if self.ids is not None else IdMap.dense(num_nodes, num_src)
        self.__dict__.update(own, num_nodes=num_nodes, ids=ids)

    def __len__(self) -> int:
        return len(self.src)

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
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        for name in _PER_EVENT:
            if fields[name] is not None:
                fields[name] = fields[name][start:stop]
        return _unchecked(fields | {"offset": self.offset + start})

    def to(self, device: torch.device | str) -> EventStream:
        """Return the stream with its tensors on ``device``."""
        fields = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return _unchecked({k: v.to(device) if isinstance(v, Tensor) else v for k, v in fields.items()})

    def split(self, train: float = 0.70, val: float = 0.15) -> Split:
        """Return chronological train, validation and test parts; the test part gets the rest.

        Events with equal time stay together: those tied with a boundary belong to the earlier part,
        unless nothing would be left for the later one.
        """
        if not (train > 0 and val > 0 and train + val < 1):
            raise OptionError(
                f"split(train={train}, val={val}): both must be positive and leave a test part."
            )
        first = self._tie_edge(round(len(self) * train))
        second = self._tie_edge(round(len(self) * (train + val)))
        if not 0 < first < second < len(self):
            raise DegenerateStreamError(
                f"{self.info.title}: {len(self):,} events cannot be split {train:.0%} / {val:.0%} / rest "
                "without tearing events of equal time apart. Use more events or other fractions."
            )
        return Split(self._view(0, first), self._view(first, second), self._view(second, len(self)))

    def _tie_edge(self, position: int) -> int:
        """Return the end of the run of equal times around the boundary before event ``position``."""
        if not 0 < position < len(self):
            return position
        last = self.t[position - 1]
        end = int(torch.searchsorted(self.t, last, right=True))
        return end if end < len(self) else int(torch.searchsorted(self.t, last))

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
        return (self.t[-1] - self.t[0]).item() * _SECONDS[self.info.time_unit]

    def summary(self) -> Summary:
        """Return the stream's statistics."""
        from pres.summary import summarise

        return summarise(self)

    def __repr__(self) -> str:
        from pres.summary import describe

        return describe(self)


def _unchecked(fields: dict[str, Any]) -> EventStream:
    """Return a stream of parts that are known to fit, without copying them."""
    stream = object.__new__(EventStream)
    stream.__dict__.update(fields)
    return stream


def _integers(values: Any, name: str) -> Tensor:
    tensor = torch.as_tensor(values)
    if tensor.is_floating_point() or tensor.is_complex() or tensor.dtype == torch.bool:
        raise OptionError(f"{name} must hold integer node ids, not {tensor.dtype}.")
    return tensor.to(torch.int64, copy=True)


def _times(values: Any) -> Tensor:
    t = torch.as_tensor(values)
    t = t.to(torch.float64 if t.is_floating_point() else torch.int64, copy=True)
    if t.is_floating_point() and not bool(t.isfinite().all()):
        raise OptionError(f"t of event {int((~t.isfinite()).nonzero()[0])} is not a finite number.")
    if bool((t[1:] < t[:-1]).any()):
        place = int((t[1:] < t[:-1]).nonzero()[0]) + 1
        raise OptionError(
            f"t decreases at event {place} ({t[place - 1].item()} to {t[place].item()}): sort the events by "
            "time first. pres.read does it for you."
        )
    return t


def _check_shapes(tensors: dict[str, Tensor]) -> None:
    n = len(tensors["src"])
    for name in _PER_EVENT:
        if name not in tensors:
            continue
        shape, dimensions = tuple(tensors[name].shape), 2 if name in ("x", "categories") else 1
        if len(shape) != dimensions or shape[0] != n:
            raise OptionError(f"{name} has shape {shape}, expected {(n, 'd')[:dimensions]} for {n:,} events.")


def _check_ids(src: Tensor, dst: Tensor, num_nodes: int, num_src: int | None) -> tuple[int, int | None]:
    if len(src) == 0:
        return num_nodes, num_src
    lowest, highest = int(min(src.min(), dst.min())), int(max(src.max(), dst.max()))
    if lowest < 0:
        raise OptionError(f"node ids must not be negative, found {lowest}.")
    if num_nodes and highest >= num_nodes:
        raise OptionError(f"node id {highest} does not fit num_nodes={num_nodes}.")
    if num_src is not None and not (int(src.max()) < num_src <= int(dst.min())):
        raise OptionError(f"bipartite with num_src={num_src}: sources must lie below it, destinations not.")
    return num_nodes or highest + 1, num_src
