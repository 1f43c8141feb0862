"""Converted copies: a dataset in a slow format is kept in the cache in the Parquet layout."""

from __future__ import annotations

import hashlib
import secrets
import shutil
import warnings
from pathlib import Path

from polars.exceptions import PolarsError

from pres.data.datasets.locate import Found, cache_folder
from pres.data.datasets.registry import Dataset
from pres.data.formats import FORMATS, RawEvents, parquet
from pres.errors import Notice, PresError

_MOST_BYTES = 8 << 30  # beyond this a second copy costs more than it saves


def read_converted(found: Found, dataset: Dataset) -> RawEvents | None:
    """Return the events from an earlier conversion of exactly these files, or None."""
    folder = _folder(found, dataset)
    try:
        names = {path.name for path in folder.iterdir()}
        files = parquet.match(names, dataset, own=True)
        if files is None:
            return None
        return parquet.read({role: folder / file for role, file in files.items()}, dataset)
    except (OSError, PresError):  # absent or damaged: it is made anew
        return None


def keep_converted(raw: RawEvents, found: Found, dataset: Dataset) -> None:
    """Write the events to the cache for the next time; say so once if that cannot be done."""
    size = sum(4 * part.numel() for part in raw.per_event().values())
    if size > _MOST_BYTES:
        return
    folder = _folder(found, dataset)
    try:
        _write(raw, folder, dataset)
    except (OSError, PolarsError) as error:
        reason = getattr(error, "strerror", None) or str(error).partition("\n")[0]
        warnings.warn(
            f"'{dataset.name}' will be slow to load each time: no converted copy can be kept in "
            f"{folder.parent} ({reason}). Set PRES_CACHE to a folder with room.",
            Notice,
            stacklevel=4,
        )


def _folder(found: Found, dataset: Dataset) -> Path:
    """Return the folder of a copy: its name tells the source files and their state apart."""
    source, state = hashlib.sha256(), hashlib.sha256()
    for path in found.sources:
        source.update(f"{path.resolve()}\n".encode())
        facts = path.stat()
        state.update(f"{facts.st_size} {facts.st_mtime_ns}\n".encode())
    name = f"{dataset.name}-{source.hexdigest()[:12]}-{state.hexdigest()[:12]}"
    return cache_folder() / "converted" / name


def _write(raw: RawEvents, folder: Path, dataset: Dataset) -> None:
    """Write into a folder beside the final one and rename it, so that no reader sees a part of it."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    beside = folder.parent / f".making-{secrets.token_hex(8)}"
    try:
        beside.mkdir()
        parquet.write(raw, beside, dataset)
        outdated = folder.name.rpartition("-")[0] + "-"
        for old in folder.parent.glob(f"{outdated}*"):  # of the same files in an earlier state
            shutil.rmtree(old, ignore_errors=True)
        beside.rename(folder)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def is_slow(found: Found) -> bool:
    """Return whether a converted copy is worth keeping."""
    return FORMATS[found.format].needs_conversion
