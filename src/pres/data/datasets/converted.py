"""Converted copies of datasets that are slow to parse: one file in the cache, whole or not there."""

from __future__ import annotations

import hashlib
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from pres.data.datasets.locate import Found, cache_folder
from pres.data.datasets.raw import RawEvents
from pres.data.datasets.registry import Dataset
from pres.errors import StorageError, notify
from pres.storage import write_whole

_MOST_BYTES = 8 << 30  # of a copy: beyond this it costs more than it saves


def read_converted(found: Found, dataset: Dataset) -> RawEvents | None:
    """Return the events from an earlier conversion of exactly these files, or None."""
    try:
        with safe_open(_place(found, dataset), "pt") as file:
            parts = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # no mapping
            told = (file.metadata() or {}).get("sha256")
        return RawEvents(str(found.where), **parts) if told == _digest(parts) else None
    except (OSError, SafetensorError, TypeError):  # absent or damaged: it is made anew
        return None


def keep_converted(raw: RawEvents, found: Found, dataset: Dataset) -> None:
    """Write the events to the cache for the next time; say so once if that cannot be done."""
    parts = raw.per_event() | ({} if raw.node_x is None else {"node_x": raw.node_x})
    for name in {"x", "node_x"} & parts.keys():
        parts[name] = parts[name].float()
    if sum(part.nbytes for part in parts.values()) > _MOST_BYTES:
        return
    parts, path = {name: part.contiguous() for name, part in parts.items()}, _place(found, dataset)
    about = {"sha256": _digest(parts)}
    try:
        write_whole(path, lambda unfinished: save_file(parts, unfinished, about))
        for outdated in path.parent.glob(f"{path.stem.rpartition('-')[0]}-*"):
            if outdated != path:  # of the same files in an earlier state
                outdated.unlink(missing_ok=True)
    except (OSError, SafetensorError, StorageError) as error:
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        notify(
            f"'{dataset.name}' will be slow to load each time: no converted copy can be kept in "
            f"{path.parent} ({reason}). Set PRES_CACHE to a folder with room."
        )


def _digest(parts: dict[str, Tensor]) -> str:
    digest = hashlib.sha256()
    for name, part in sorted(parts.items()):
        digest.update(f"{name} {part.dtype} {tuple(part.shape)} ".encode())
        digest.update(part.numpy().data)
    return digest.hexdigest()


def _place(found: Found, dataset: Dataset) -> Path:
    """Return where a copy is: its name tells the source files and their state apart."""
    source, state = hashlib.sha256(), hashlib.sha256()
    for path in found.sources:
        source.update(f"{path.resolve()}\n".encode())
        facts = path.stat()
        state.update(f"{facts.st_size} {facts.st_mtime_ns}\n".encode())
    name = f"{dataset.name}-{source.hexdigest()[:12]}-{state.hexdigest()[:12]}.safetensors"
    return cache_folder() / "converted" / name
