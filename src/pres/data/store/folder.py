"""The folder of a store: one raw array per column and per part of the index, opened without reading them.

``store.json`` says what the arrays do not: counts, names, the unit of time, and every file's checksum. The
user's ids and the values of categories lie beside it as Parquet. A folder appears under its name only when it
is whole.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import pydantic
import torch

from pres.data.ids import IdMap
from pres.data.incidence import BLOCK, IndexArrays, whole_blocks
from pres.data.info import Origin, StreamInfo
from pres.data.store.arrays import mapped
from pres.data.store.seal import seal, sealed
from pres.data.stream import COLUMNS, EventStream, unchecked
from pres.errors import OptionError, SourceNotFoundError, StorageError, UnreadableSourceError, one_line
from pres.settings import by_schema
from pres.storage import new_folder, storage_errors, user_path

FORMAT = 2
_ABOUT = "store.json"


def is_store(source: object) -> bool:
    """Return whether ``source`` is the folder of a store."""
    try:
        return isinstance(source, str | Path) and (Path(source).expanduser() / _ABOUT).is_file()
    except (OSError, RuntimeError):  # a name that no file can have
        return False


def open_store(folder: str | Path, verify: bool = True) -> EventStream:
    """Return the stream in a store; its tensors and its index stay on disk and are read where they are used.

    The tensors are maps of the store's files: they must not be written to, nor the folder be moved or removed
    while the stream is in use.

    Args:
        folder: The store.
        verify: Whether to hold every file against its checksum, and nodes against their ranges, at about 2 GB
            a second and core. Without it only sizes, types and lengths are compared, which takes no time,
            and a changed bit gives other numbers.
    """
    place = user_path(folder)
    about = _read_about(place, verify)
    try:
        if missing := {"src", "dst", "t"} - set(about.columns):
            raise ValueError(f"there is no {min(missing)}")
        levels = [pl.read_parquet(place / f"category-{i}.parquet") for i in range(about.categories)]
        info = StreamInfo(
            **about.info.model_dump(),
            category_levels=tuple(tuple(level.get_column("value").to_list()) for level in levels),
            origin=Origin(str(place.absolute()), {}),
        )
        index = IndexArrays(*(mapped(place / f"{name}.npy") for name in _INDEX))
        ids = _read_ids(place, about.num_src)
        columns = {name: mapped(place / f"{name}.npy") for name in about.columns}
        counts = {"num_nodes": ids.num_nodes, "num_src": ids.num_src}
        events = unchecked(**columns, **counts, ids=ids, directed=about.directed, info=info, index=index)
        _check_arrays(events, about)
        if verify:  # which reads them
            _check_nodes(events)
    except (OSError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        raise _damaged(place, one_line(error)) from None
    return events


_INDEX = tuple(f"index-{name}" for name in IndexArrays._fields)


class _Info(pydantic.BaseModel):
    """What `StreamInfo` holds beside the levels of categories and its origin."""

    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    name: str
    variant: str | None
    time_unit: str | None
    dates: bool
    feature_names: tuple[str, ...]
    category_names: tuple[str, ...]


class _About(pydantic.BaseModel):
    """What ``store.json`` holds."""

    model_config = pydantic.ConfigDict(strict=True, extra="forbid")

    format: int
    events: int
    num_nodes: int
    num_src: int | None
    directed: bool
    columns: tuple[str, ...]
    categories: int
    info: _Info
    made_from: Any
    files: dict[str, Any]


def _read_about(place: Path, verify: bool) -> _About:
    if not is_store(place):
        what = "is no store: it holds no store.json" if place.exists() else "does not exist"
        raise SourceNotFoundError(f"{place} {what}. pres.write_store (pres store) makes one.")
    try:
        found = sealed(place, _ABOUT, verify)
    except UnreadableSourceError as error:
        raise _damaged(place, str(error).rstrip(".")) from None
    if found.get("format") != FORMAT:
        raise UnreadableSourceError(
            f"the store {place} is of format {found.get('format')}, and this pres reads format {FORMAT}. "
            "Write it anew."
        )
    try:
        return by_schema(_About, found)
    except ValueError as error:
        raise _damaged(place, f"in {_ABOUT}, {error}") from None


def _damaged(place: Path, what: str) -> UnreadableSourceError:
    return UnreadableSourceError(f"the store {place} is damaged: {what}. Write it anew.")


def _check_arrays(events: EventStream, about: _About) -> None:
    """Raise unless all arrays are of the types and lengths that the rest of them expects."""
    n, nodes = about.events, about.num_nodes
    if [events.num_nodes, events.num_src] != [nodes, about.num_src] or n < 1:
        raise ValueError("its files do not belong together")
    index = events.index
    assert index is not None
    m = int(index.start[-1]) if len(index.start) else -1
    long, times = (torch.int64,), (torch.int64, torch.float64)
    wanted: dict[str, tuple[Any, tuple[torch.dtype, ...], tuple[int | None, ...]]] = {
        **{name: (getattr(events, name), long, (n,)) for name in ("src", "dst", "label", "row")},
        "t": (events.t, times, (n,)),
        "x": (events.x, (torch.float32,), (n, None)),
        "categories": (events.categories, long, (n, about.categories)),
        "node_x": (events.node_x, (torch.float32,), (nodes, None)),
        "index-keys": (index.keys, long, (whole_blocks(m + 1),)),
        "index-landmarks": (index.landmarks, long, (whole_blocks(whole_blocks(m + 1) // BLOCK),)),
        "index-neighbour": (index.neighbour, long, (m + 1,)),
        "index-time": (index.time, (events.t.dtype,), (m + 1,)),
        "index-start": (index.start, long, (nodes + 1,)),
        "index-first_of_equal": (index.first_of_equal, long, (n,)),
    }
    for name, (array, types, shape) in wanted.items():
        if array is None:
            continue
        fits = len(array.shape) == len(shape) and all(
            given in (None, found) for found, given in zip(array.shape, shape, strict=True)
        )
        if not fits or array.dtype not in types:
            raise ValueError(f"{name}.npy holds {array.dtype} of shape {list(array.shape)}")


def _check_nodes(events: EventStream) -> None:
    """Raise unless sources and destinations are nodes of their side."""
    nodes = events.num_nodes
    apart = events.num_src if events.num_src is not None and events.ids.sources_first else None
    for name, low, high in (("src", 0, nodes if apart is None else apart), ("dst", apart or 0, nodes)):
        least, greatest = getattr(events, name).aminmax()
        if not low <= int(least) <= int(greatest) < high:
            raise ValueError(f"{name}.npy names nodes from {int(least)} to {int(greatest)}")


def _read_ids(place: Path, num_src: int | None) -> IdMap:
    src, dst = (place / f"ids-{side}.parquet" for side in ("src", "dst"))
    of_src = pl.read_parquet(src)
    if num_src is None:
        return IdMap(of_src.get_column("id"))
    of_dst = pl.read_parquet(dst)
    src_nodes, dst_nodes = (
        torch.from_numpy(side.get_column("node").to_numpy(writable=True)) if "node" in side.columns else None
        for side in (of_src, of_dst)
    )
    return IdMap(of_src.get_column("id"), of_dst.get_column("id"), src_nodes, dst_nodes)


def check_free(folder: Path) -> None:
    """Raise unless a store can be made under that name without loss."""
    with storage_errors(folder):
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise StorageError(f"{folder} exists already. Choose another name, or remove it first.")


@contextmanager
def making(folder: Path) -> Iterator[Path]:
    """Give a new folder to fill; it gets its name at the end, or nothing is left behind."""
    check_free(folder)
    with new_folder(folder) as place, storage_errors(folder):
        yield place


def write_about(events: EventStream, place: Path) -> None:
    """Write what the arrays of a stream do not say; that makes the folder a store."""
    info = events.info
    for i, values in enumerate(info.category_levels):
        _write_levels(info.category_names[i], values, place / f"category-{i}.parquet")
    ids = events.ids
    sides = [("src", ids.src_values, ids.src_nodes)]
    if ids.dst_values is not None:
        sides.append(("dst", ids.dst_values, ids.dst_nodes))
    for side, known, nodes in sides:
        frame = known.alias("id").to_frame()
        if nodes is not None and not ids.sources_first:
            frame = frame.with_columns(pl.Series("node", nodes.numpy()))
        frame.write_parquet(place / f"ids-{side}.parquet")
    about = {
        "format": FORMAT,
        "events": len(events),
        "columns": [name for name in COLUMNS if getattr(events, name) is not None],
        "categories": len(info.category_levels),
        "info": {name: getattr(info, name) for name in _Info.model_fields},
        "made_from": None if info.origin is None else dataclasses.asdict(info.origin),
    }
    about |= {name: getattr(events, name) for name in ("num_nodes", "num_src", "directed")}
    seal(place, _ABOUT, json.loads(json.dumps(about, default=str)))


def _write_levels(name: str, values: tuple[Any, ...], path: Path) -> None:
    try:
        column = pl.Series("value", values)
        kept = all(map(_equal, column.to_list(), values))
    except (TypeError, ValueError, pl.exceptions.PolarsError):
        kept = False
    if not kept:
        raise OptionError(f"the values of the category '{name}' are of several types; make them all text.")
    column.to_frame().write_parquet(path)


def _equal(ours: Any, theirs: Any) -> bool:
    """Return whether two values are one category: NaN, which does not equal itself, is one too."""
    return bool(ours == theirs or (ours != ours and theirs != theirs))
