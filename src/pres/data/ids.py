"""The two-way mapping between the user's node ids and dense ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl
import torch
from torch import Tensor

from pres.errors import OptionError, UnknownIdError


@dataclass(frozen=True, eq=False)
class IdMap:
    """The user's ids of the nodes ``0 … num_nodes - 1``.

    In a shared id space ``dst_values`` is None and node ``k`` is ``src_values[k]``. In a bipartite one node
    ``src_nodes[k]`` is ``src_values[k]``, and likewise for destinations: sources come first, and nodes that a
    stream takes in later have the next numbers, whichever side they are of.
    """

    src_values: pl.Series
    dst_values: pl.Series | None = None
    src_nodes: Tensor | None = None  # [sources] int64, increasing; None in a shared id space
    dst_nodes: Tensor | None = None  # [destinations] likewise

    def __post_init__(self) -> None:
        if self.dst_values is not None and self.dst_nodes is None:
            nodes = torch.arange(self.num_nodes)
            object.__setattr__(self, "src_nodes", nodes[: len(self.src_values)])
            object.__setattr__(self, "dst_nodes", nodes[len(self.src_values) :])

    @classmethod
    def dense(cls, num_nodes: int, num_src: int | None = None) -> IdMap:
        """Return the map of a stream whose ids were dense already: every node is its own id."""
        if num_src is None:
            return cls(_counting(0, num_nodes))
        return cls(_counting(0, num_src), _counting(num_src, num_nodes))

    @classmethod
    def two_counts(cls, num_src: int, num_dst: int) -> IdMap:
        """Return the map of a bipartite stream whose sources and destinations both counted from 0."""
        return cls(_counting(0, num_src), _counting(0, num_dst))

    @classmethod
    def of(cls, src: pl.Series, dst: pl.Series, bipartite: bool) -> IdMap:
        """Return the map of the ids found in two columns; dense ids follow the order of the values."""
        if bipartite:
            return cls(src.unique().sort(), dst.unique().sort())
        return cls(pl.concat([src, dst.cast(src.dtype)]).unique().sort())

    @property
    def num_nodes(self) -> int:
        """Number of nodes on both sides."""
        return len(self.src_values) + (0 if self.dst_values is None else len(self.dst_values))

    @property
    def num_src(self) -> int | None:
        """Number of sources in a bipartite space, None in a shared one."""
        return None if self.dst_values is None else len(self.src_values)

    @property
    def sources_first(self) -> bool:
        """Whether every source is numbered before every destination, as before a stream has grown."""
        return (
            self.src_nodes is None or not len(self.src_nodes) or int(self.src_nodes[-1]) < len(self.src_nodes)
        )

    def find_src(self, values: pl.Series) -> Tensor:
        """Return the nodes `[n]` of source ids; -1 where one is unknown."""
        return _of_side(positions(values, self.src_values), self.src_nodes)

    def find_dst(self, values: pl.Series) -> Tensor:
        """Return the nodes `[n]` of destination ids; -1 where one is unknown."""
        known = self.src_values if self.dst_values is None else self.dst_values
        return _of_side(positions(values, known), self.dst_nodes)

    def encode_src(self, values: Any) -> Tensor:
        """Return the nodes `[n]` of source ids; unknown ones are an error that names them."""
        return _encode(values, self.src_values, self.find_src, "source")

    def encode_dst(self, values: Any) -> Tensor:
        """Return the nodes `[n]` of destination ids; unknown ones are an error that names them."""
        known = self.src_values if self.dst_values is None else self.dst_values
        return _encode(values, known, self.find_dst, "destination")

    def decode(self, nodes: Any) -> pl.Series:
        """Return the user's ids of nodes `[n]` that lie on one side (all sources or all destinations)."""
        try:
            nodes = torch.as_tensor(nodes).reshape(-1)
        except (TypeError, ValueError, RuntimeError):
            raise OptionError("decode takes nodes: a tensor, an array or a list of integers.") from None
        if nodes.is_floating_point():
            raise OptionError(f"decode takes integer nodes, not {nodes.dtype}.")
        outside = nodes[(nodes < 0) | (nodes >= self.num_nodes)]
        if len(outside):
            raise UnknownIdError(f"node {int(outside[0])} is none of the stream's {self.num_nodes:,} nodes.")
        nodes = nodes.cpu().long()
        if self.dst_values is None or self.src_nodes is None or self.dst_nodes is None:
            return self.src_values.gather(nodes.numpy())
        for values, of_side in (self.src_values, self.src_nodes), (self.dst_values, self.dst_nodes):
            place = torch.searchsorted(of_side, nodes)
            if len(of_side) and torch.equal(of_side[place.clamp(max=len(of_side) - 1)], nodes):
                return values.gather(place.numpy())
        raise OptionError("the nodes lie on both sides of a bipartite stream: decode each side on its own.")


def positions(values: pl.Series, known: pl.Series) -> Tensor:
    """Return where `[n]` each value is among the ``known``, which are distinct; -1 where it is not."""
    same = values.cast(known.dtype, strict=False)
    if same.dtype != values.dtype:  # '007' is not 7
        same = same.set((same.cast(values.dtype, strict=False) != values).fill_null(True), None)
    place = _counting(0, len(known))
    found = same.replace_strict(known, place, default=-1, return_dtype=pl.Int64)
    return torch.from_numpy(found.to_numpy(writable=True))


def _of_side(places: Tensor, nodes: Tensor | None) -> Tensor:
    """Return the nodes `[n]` at places among those of a side; -1 stays."""
    if nodes is None or not len(nodes):
        return places
    return torch.where(places < 0, -1, nodes[places.clamp(min=0)])


def _counting(start: int, stop: int) -> pl.Series:
    return pl.int_range(start, stop, dtype=pl.Int64, eager=True).alias("id")


def _encode(values: Any, known: pl.Series, find: Callable[[pl.Series], Tensor], side: str) -> Tensor:
    wanted = _series(values, side)
    if not len(wanted):
        return torch.empty(0, dtype=torch.int64)
    as_text = wanted.dtype in (pl.String, pl.Categorical, pl.Enum)
    if not (wanted.dtype.is_integer() or (as_text and known.dtype == pl.String)):
        raise UnknownIdError(
            f"{side} ids are {known.dtype}, but {wanted[0]!r} ({wanted.dtype}) was asked for. "
            "Give ids of the type the stream was read with."
        )
    nodes = find(wanted)
    unknown = nodes < 0
    if bool(unknown.any()):
        missing = wanted.filter(pl.Series(unknown.numpy())).unique(maintain_order=True)
        shown = ", ".join(repr(value) for value in missing.head(3).to_list())
        more = f" and {len(missing) - 3:,} more" if len(missing) > 3 else ""
        raise UnknownIdError(f"{side} id {shown}{more} never occurs in the stream.")
    return nodes


def _series(values: Any, side: str) -> pl.Series:
    """Return ids given in any form as a series; a single id needs no brackets."""
    if isinstance(values, (str, int)):
        values = [values]
    try:
        return pl.Series("id", values.numpy(force=True) if isinstance(values, Tensor) else values)
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        raise UnknownIdError(f"{side} ids must be one list of text or of integers.") from None
