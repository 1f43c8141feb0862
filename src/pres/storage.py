"""Files and folders that a reader only ever sees whole, and that say when they no longer are.

A write goes to a temporary name, from there to the disk, and then in one step to its own name. What a killed
process leaves under a temporary name is removed by the next one that writes there.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import BaseFileLock, FileLock, SoftFileLock, Timeout

from pres.errors import SourceNotFoundError, StorageError, UnreadableSourceError, one_line

MAKING = ".making"  # the lock of a folder that is not whole yet
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
_TEMPORARY = re.compile(rf"{re.escape(MAKING)}|\..+\.[0-9a-f]{{16}}(\.[^.]*)?")  # see `write_whole`


def user_path(path: str | Path) -> Path:
    """Return a path with a leading ``~`` or ``~user`` as the home folder."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise SourceNotFoundError(f"{path}: there is no such user. Write the folder out.") from None


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
        make_folder(path.parent)
        sweep(path.parent, path.name)
        unfinished = path.with_name(f".{path.name}.{secrets.token_hex(8)}{path.suffix}")
        lock = FileLock(unfinished)  # says to `sweep` that somebody still writes here
        try:
            os.close(os.open(unfinished, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
            with suppress(OSError):  # without locks in the file system nobody sweeps what is there
                lock.acquire(blocking=False)
            mode = unfinished.stat().st_mode
            write(unfinished)
            unfinished.chmod(mode)  # who writes may have put a file of its own there
            sync(unfinished)
            unfinished.replace(path)
            sync(path.parent)
        finally:
            lock.release()
            unfinished.unlink(missing_ok=True)
    return target


def write_bytes(path: Path, content: bytes) -> Path:
    """Write a file with this content in one step; return ``path``."""
    return write_whole(path, lambda unfinished: unfinished.write_bytes(content))


def write_json(path: Path, value: dict[str, Any]) -> Path:
    """Write an object with its checksum in one step; return ``path``."""
    known = json.loads(json.dumps(value))  # as a reader will have it: names are text, tuples are lists
    text = json.dumps(known | {"sha256": _digest(known)}, indent=2, ensure_ascii=False) + "\n"
    return write_bytes(path, text.encode("utf-8", "surrogatepass"))


def read_json(path: Path) -> dict[str, Any]:
    """Return the object that `write_json` wrote, or raise that it is not there or no longer what it was."""
    try:
        found = json.loads(path.read_bytes().decode("utf-8", "surrogatepass"))
    except FileNotFoundError:
        raise SourceNotFoundError(f"{path}: no such file.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise UnreadableSourceError(f"{path} is damaged: {one_line(error)}.") from None
    if not isinstance(found, dict):
        raise UnreadableSourceError(f"{path} is damaged: it holds no object.")
    told = found.pop("sha256", None)
    if told != _digest(found):
        what = "it has no checksum" if told is None else "it is not what its checksum says"
        raise UnreadableSourceError(f"{path} is damaged: {what}.")
    return found


def _digest(value: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def keep_previous(path: Path) -> None:
    """Let a file that is to be replaced be found as ``<name>-previous`` too, in place of an older one."""
    previous = previous_of(path)
    if not path.exists():
        return
    with storage_errors(previous):
        beside = path.with_name(f".{previous.name}.{secrets.token_hex(8)}{path.suffix}")
        try:
            os.link(path, beside)
        except OSError as error:
            if error.errno in _NO_ROOM:  # nor would there be for what is to replace it: it stays
                raise
            beside = path  # a file system without links: for a moment there is only the previous one
        try:
            beside.replace(previous)
        finally:
            if beside != path:
                beside.unlink(missing_ok=True)


def previous_of(path: Path) -> Path:
    """Return where the file before this one is kept."""
    return path.with_name(f"{path.stem}-previous{path.suffix}")


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's list of names, is on the disk."""
    if os.name == "nt" and path.is_dir():  # which opens no folders
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it, as far as they are missing."""
    if not folder.is_dir():
        if folder.exists():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(folder))
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync(folder.parent)


def sweep(folder: Path, name: str = "") -> None:
    """Remove what killed processes left of unfinished files, of the file with that name or of all."""
    for path in list(folder.iterdir()):
        if path.name.startswith(f".{name}") and _TEMPORARY.fullmatch(path.name) and path.is_file():
            lock = FileLock(path)
            try:
                lock.acquire(blocking=False)
            except (Timeout, OSError):  # somebody writes it, or it is not ours
                continue
            path.unlink(missing_ok=True)
            lock.release()


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Give a hidden folder to fill; at the end it gets the name ``folder``, or nothing is left behind.

    ``folder`` must not exist, or be empty. What killed processes left that made the same one is removed.
    """
    target = folder.resolve()
    with storage_errors(folder):
        make_folder(target.parent)
        beside = f".{target.name}-"
        for path in list(target.parent.iterdir()):
            if path.name.startswith(beside) and re.fullmatch("[0-9a-f]{16}", path.name[len(beside) :]):
                with taken(path / MAKING, folder):
                    shutil.rmtree(path)
        place = target.with_name(beside + secrets.token_hex(8))
        place.mkdir()
        try:
            with taken(place / MAKING, folder):
                yield place
                for path in (*place.rglob("*"), place):
                    sync(path)
                with storage_errors(folder, "Name a folder that does not exist yet."):
                    place.replace(target)
                sync(target.parent)
                (target / MAKING).unlink()
        finally:
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def taken(file: Path, what: Path) -> Iterator[None]:
    """Hold the lock at ``file`` for the while; see `take`."""
    lock = take(file, what)
    try:
        yield
    finally:
        lock.release()


def take(file: Path, what: Path) -> BaseFileLock:
    """Return the lock at ``file``, held by this process until it is released or the process ends.

    Raise, with the number of the process that holds it, if another writes ``what``.
    """
    lock = FileLock(file)
    with storage_errors(what):
        try:
            lock.acquire(blocking=False)
        except Timeout:  # which is an error of the system, too
            raise StorageError(
                f"{what} is being written by {_holder(file)}. Wait until it ends, or stop it."
            ) from None
        if isinstance(lock, SoftFileLock):  # of a file system without locks: the file says who holds it
            return lock
        try:
            with file.open("r+b") as own:
                own.write(f"{os.getpid()} on {platform.node()}".ljust(80).encode())
        except BaseException:
            lock.release()
            raise
    return lock


def _holder(file: Path) -> str:
    try:
        told = " on ".join(file.read_text(errors="replace").strip().splitlines()[:2])
    except OSError:
        told = ""
    return f"process {told}" if told else "another process"
