"""Writing files so that a reader only ever sees a whole one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pres.errors import StorageError


@contextmanager
def storage_errors(path: Path, advice: str = "Nothing was left behind.") -> Iterator[None]:
    """Turn what the system says against writing ``path`` into a `StorageError`."""
    try:
        yield
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise StorageError(f"cannot write {path}: {reason}. {advice}") from None


def write_whole(path: Path, write: Callable[[Path], object]) -> Path:
    """Let ``write`` fill a file beside ``path``, then put it in its place in one step; return ``path``."""
    target, path = path, path.resolve()  # a link stays a link, and what it leads to is replaced
    if path.exists() and not path.is_file():
        raise StorageError(f"cannot write {target}: it is not a file. Choose another name.")
    with storage_errors(target):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=path.suffix)
        os.close(descriptor)
        unfinished = Path(name)
        try:
            write(unfinished)
            umask = os.umask(0)
            os.umask(umask)
            unfinished.chmod(0o666 & ~umask)  # as an ordinary file; a temporary one is private
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    return target


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file with this content in one step; return ``path``."""
    return write_whole(path, lambda unfinished: unfinished.write_bytes(content))
