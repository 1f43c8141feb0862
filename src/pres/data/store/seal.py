"""Folders that say what they hold: a JSON file with the size and the checksum of every other file."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.console import Console
from rich.progress import Progress

from pres.errors import UnreadableSourceError
from pres.storage import read_json, write_json

_AT_ONCE = 1 << 22  # bytes
_LONG = 1 << 31  # bytes that take about a second, so that a bar is shown


class _File(BaseModel):
    bytes: int
    sha256: str


def seal(folder: Path, name: str, about: dict[str, Any]) -> None:
    """Write ``about`` into the file of that name, with the size and the SHA-256 of all other files."""
    paths = sorted(path for path in folder.iterdir() if path.name != name and path.name[0] != ".")
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": found}
        for path, found in zip(paths, _checksums(paths), strict=True)
    }
    write_json(folder / name, about | {"files": files})


def sealed(folder: Path, name: str, verify: bool = True) -> dict[str, Any]:
    """Return what was written about a folder; raise if a file of it is not as it was then.

    Sizes are always compared. With ``verify`` the content is too, at about 2 GB a second and core.
    """
    about = read_json(folder / name)
    try:
        files = TypeAdapter(dict[str, _File]).validate_python(about.get("files"))
    except ValidationError:
        raise UnreadableSourceError(f"{folder / name} is damaged: it names no files.") from None
    for file, told in files.items():
        path = folder / file
        if not path.is_file():
            raise UnreadableSourceError(f"{path} is missing.")
        if path.stat().st_size != told.bytes:
            raise UnreadableSourceError(
                f"{path} is damaged: it has {path.stat().st_size:,} bytes, and was written with "
                f"{told.bytes:,}."
            )
    if verify:
        for file, found in zip(files, _checksums([folder / file for file in files]), strict=True):
            if found != files[file].sha256:
                raise UnreadableSourceError(f"{folder / file} is damaged: it is not what its checksum says.")
    return about


def _checksums(paths: list[Path]) -> list[str]:
    """Return the SHA-256 of files, with a bar on a terminal where it takes long."""
    total = sum(path.stat().st_size for path in paths)
    shown = total > _LONG and sys.stderr.isatty()
    with (
        Progress(console=Console(stderr=True), transient=True, disable=not shown) as bars,
        ThreadPoolExecutor() as threads,  # hashing leaves Python to other threads
    ):
        task = bars.add_task("checking files", total=total)
        return list(threads.map(lambda path: _checksum(path, lambda n: bars.advance(task, n)), paths))


def _checksum(path: Path, show: Callable[[int], None]) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while some := file.read(_AT_ONCE):
            digest.update(some)
            show(len(some))
    return digest.hexdigest()
