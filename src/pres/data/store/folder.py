"""The folder of a store: one raw array per column and per part of the index, opened without reading them.

``store.json`` says what the arrays do not: counts, names, the unit of time. The user's ids and the values of
categories lie beside it as Parquet. A folder appears under its name only when it is whole.
"""

from __future__ import annotations

import dataclasses
import json
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
import torch

from pres.data.ids import IdMap
from pres.data.incidence import IndexArrays
from pres.data.info import Origin, StreamInfo
from pres.data.store.arrays import mapped
from pres.data.stream import COLUMNS, EventStream, unchecked
from pres.errors import OptionError, SourceNotFoundError, StorageError, UnreadableSourceError, one_line
from pres.storage import storage_errors, user_path

FORMAT = 1
_ABOUT = "store.json"
_PLAIN = ("name", "variant", "time_unit", "dates", "feature_names", "category_names")  # of StreamInfo


def is_store(source: object) -> bool:
    """Return whether ``source`` is the folder of a store."""
    try:
        return isinstance(source, str | Path) and (Path(source).expanduser() / _ABOUT).is_file()
    except (OSError, RuntimeError):  # a name that no file can have
        return False


def open_store(folder: str | Path) -> EventStream:
    """Return the stream in a store; its tensors and its index stay on disk and are read where they are used.

    Opening takes no pass over the events, whatever their number. The tensors are maps of the store's files:
    they must not be written to, nor the folder be moved or removed while the stream is in use.
    """
    place = user_path(folder)
    about = _read_about(place)
    try:
        levels = [pl.read_parquet(place / f"category-{i}.parquet") for i in range(about["categories"])]
        names = {name: _as_tuple(about["info"][name]) for name in _PLAIN}
        info = StreamInfo(
            **names,
            category_levels=tuple(tuple(level.get_column("value").to_list()) for level in levels),
            origin=Origin(str(place.absolute()), {}),
        )
        index = IndexArrays(*(mapped(place / f"{name}.npy") for name in _INDEX))
        ids = _read_ids(place, about["num_src"])
        columns = {name: mapped(place / f"{name}.npy") for name in about["columns"]}
        counts = {"num_nodes": ids.num_nodes, "num_src": ids.num_src}
        events = unchecked(**columns, **counts, ids=ids, directed=about["directed"], info=info, index=index)
        told = [about[name] for name in ("events", "num_nodes", "num_src")]
        if [len(events), ids.num_nodes, ids.num_src] != told:
            raise ValueError("its files do not belong together")
    except (OSError, KeyError, TypeError, ValueError, pl.exceptions.PolarsError) as error:
        said = one_line(error)
        raise UnreadableSourceError(f"the store {place} is damaged: {said}. Write it anew.") from None
    return events


_INDEX = tuple(f"index-{name}" for name in IndexArrays._fields)


def _read_about(place: Path) -> dict[str, Any]:
    if not is_store(place):
        what = "is no store: it holds no store.json" if place.exists() else "does not exist"
        raise SourceNotFoundError(f"{place} {what}. pres.write_store (pres store) makes one.")
    try:
        about: dict[str, Any] = json.loads((place / _ABOUT).read_text())
        version = about["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UnreadableSourceError(f"{place / _ABOUT} cannot be read: {one_line(error)}.") from None
    if version != FORMAT:
        raise UnreadableSourceError(
            f"the store {place} is of format {version}, and this pres reads format {FORMAT}. Write it anew."
        )
    return about


def _as_tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


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
    beside = folder.absolute().parent / f".{folder.name}-{secrets.token_hex(8)}"
    with storage_errors(folder):
        try:
            beside.mkdir(parents=True)
            yield beside
            beside.rename(folder)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


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
        "info": {name: getattr(info, name) for name in _PLAIN},
        "made_from": None if info.origin is None else dataclasses.asdict(info.origin),
    }
    about |= {name: getattr(events, name) for name in ("num_nodes", "num_src", "directed")}
    (place / _ABOUT).write_text(json.dumps(about, indent=2, default=str))


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
