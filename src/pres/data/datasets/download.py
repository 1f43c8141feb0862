"""Download one public file: with progress, resumed where it stopped, checked, and never half there."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

from filelock import FileLock
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

from pres.errors import ChecksumError, DownloadError, StorageError
from pres.storage import storage_errors

_SECONDS_WITHOUT_AN_ANSWER = 30
_CHUNK = 1 << 18


@dataclass(frozen=True)
class _Unfinished:
    """What an earlier attempt left behind."""

    path: Path  # the bytes so far
    version: Path  # the server's mark of the version they belong to

    def size(self) -> int:
        """Return how many bytes are there."""
        return self.path.stat().st_size if self.path.exists() else 0

    def discard(self) -> None:
        """Remove the bytes and their mark."""
        for path in (self.path, self.version):
            path.unlink(missing_ok=True)


def download(url: str, target: Path, sha256: str | None = None) -> Path:
    """Return ``target``, downloaded unless it is there; it appears whole and checked, or not at all.

    Args:
        url: The public address.
        target: The file to write. What arrived of it is kept beside it, and the next call goes on there.
        sha256: The published checksum. Without one, that of the first download is pinned beside the file,
            and a later download must have it too.
    """
    unfinished = _Unfinished(Path(f"{target}.part"), Path(f"{target}.part.version"))
    with _alone(target):
        if not target.exists():  # another process may have been first
            _fetch(url, target, unfinished)
            _check(url, target, unfinished, sha256)
            with _storing(target):
                unfinished.path.replace(target)
                unfinished.discard()
    return target


@contextmanager
def _alone(target: Path) -> Iterator[None]:
    """Keep other downloads of the same file waiting; afterwards the lock is gone, and folders left empty."""
    with _storing(target):
        made = [folder for folder in target.parents if not folder.exists()]  # from the inside out
    try:
        with _storing(target):
            lock = _acquire(target)
        try:
            yield
        finally:
            # Only while it is held: whoever waits for it sees that the file is gone, and makes a new one.
            with suppress(OSError):
                Path(lock.lock_file).unlink()
            lock.release()
    finally:
        with suppress(OSError):  # something was kept in it, or another download has begun there
            for folder in made:
                folder.rmdir()


def _acquire(target: Path) -> FileLock:
    """Return the lock of the target, held; its folder is made."""
    lock = FileLock(f"{target}.lock")
    for left in reversed(range(100)):
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            lock.acquire()
            break
        except (FileNotFoundError, FileExistsError):  # a download that failed has just removed the folder
            if not left or target.parent.is_file():
                raise
    return lock


def _storing(target: Path) -> AbstractContextManager[None]:
    return storage_errors(target, "Make room or set PRES_CACHE to another folder.")


def _fetch(url: str, target: Path, unfinished: _Unfinished) -> None:
    """Bring the unfinished file to its full size."""
    with _storing(target):
        start = unfinished.size()
    response = _ask(url, unfinished, start)
    if response is None:  # nothing is left to send, or what is here is of no use to the server
        return
    with response:
        # Not always where it was asked to start: a server sends everything if the file changed.
        start = _start_of(response)
        if not 0 <= start <= unfinished.size():
            unfinished.discard()
            raise DownloadError(f"{url} sends another part of the file than it was asked for. Try again.")
        rest = response.headers.get("Content-Length")
        total = start + int(rest) if rest is not None and rest.isdigit() else None
        _check_room(target, start, total)
        try:
            with _storing(target):
                unfinished.version.write_text(_version(response))
                arrived = _receive(response, url, unfinished, start, total)
        except StorageError:
            unfinished.discard()  # a full disk is not left full
            raise
    if total is not None and arrived != total:
        raise _interrupted(url, unfinished, "the connection ended early", total)


def _ask(url: str, unfinished: _Unfinished, start: int) -> HTTPResponse | None:
    """Return the server's answer to a request for the bytes from ``start`` on; None if there are none."""
    headers = {"User-Agent": "pres", "Accept-Encoding": "identity"}
    if start:
        headers["Range"] = f"bytes={start}-"
        version = unfinished.version.read_text() if unfinished.version.exists() else ""
        if version:
            headers["If-Range"] = version  # a file that changed since is sent from its beginning
    try:
        response = urlopen(Request(url, headers=headers), timeout=_SECONDS_WITHOUT_AN_ANSWER)
    except HTTPError as error:
        error.close()
        if error.code == 416 and start:
            if error.headers.get("Content-Range", "").rpartition("/")[2] == str(start):
                return None
            unfinished.discard()
            return _ask(url, unfinished, 0)
        raise DownloadError(f"{url} answers {error.code} {error.reason}.") from None
    except (URLError, HTTPException, OSError, ValueError) as error:
        raise _interrupted(url, unfinished, _reason(error), None) from None
    assert isinstance(response, HTTPResponse)
    return response


def _receive(response: HTTPResponse, url: str, unfinished: _Unfinished, start: int, total: int | None) -> int:
    """Return the size of the unfinished file after everything the server sent has been added."""
    columns = ("{task.description}", BarColumn(), DownloadColumn(), TransferSpeedColumn())
    console = Console(stderr=True)
    with (
        unfinished.path.open("r+b" if start else "wb") as file,
        Progress(
            *columns,
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as progress,
    ):
        file.seek(start)
        task = progress.add_task(url.partition("?")[0].rpartition("/")[2], total=total, completed=start)
        while chunk := _next_chunk(response, url, unfinished, total):
            file.write(chunk)
            file.flush()  # so that an interruption can say what is kept
            progress.update(task, advance=len(chunk))
        file.truncate()  # what was sent again may end earlier than what was there
        os.fsync(file.fileno())
        return file.tell()


def _next_chunk(response: HTTPResponse, url: str, unfinished: _Unfinished, total: int | None) -> bytes:
    try:
        return response.read(_CHUNK)
    except (HTTPException, OSError) as error:  # here, and not around the writing: only the network fails here
        raise _interrupted(url, unfinished, _reason(error), total) from None


def _interrupted(url: str, unfinished: _Unfinished, reason: str, total: int | None) -> DownloadError:
    kept = unfinished.size()
    of = f" of {_megabytes(total)}" if total else ""
    state = f"{_megabytes(kept)}{of} are kept; run again to go on from there." if kept else "Try again later."
    return DownloadError(f"{url} could not be downloaded: {reason}. {state}")


def _check(url: str, target: Path, unfinished: _Unfinished, published: str | None) -> None:
    """Raise if the file has not the published checksum, or the pinned one; pin it if there is none yet."""
    pin = Path(f"{target}.sha256")
    with _storing(target), unfinished.path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    with _storing(pin):
        pinned = pin.read_text().split()[0] if published is None and pin.exists() else None
    wanted = published or pinned
    if wanted is None:
        with _storing(pin):
            beside = Path(f"{pin}.new")
            beside.write_text(f"{found}  {target.name}\n")
            beside.replace(pin)
    elif found != wanted.lower():
        unfinished.discard()
        if published is not None:
            raise ChecksumError(
                f"{url} is not the published file: sha256 {wanted} published, {found} downloaded. "
                "Nothing was kept; try again, and if it stays so, do not trust the source."
            )
        raise ChecksumError(
            f"{url} changed since it was first downloaded: sha256 {wanted} then, {found} now. Nothing was "
            f"kept; to accept the new file, delete {pin} and run again."
        )


def _check_room(target: Path, start: int, total: int | None) -> None:
    if total is None:
        return
    with _storing(target):
        free = shutil.disk_usage(target.parent).free
    if total - start > free:
        raise StorageError(
            f"{target} needs {_megabytes(total - start)}, but only {_megabytes(free)} are free there. "
            "Make room or set PRES_CACHE to another folder."
        )


def _start_of(response: HTTPResponse) -> int:
    """Return the place of the first byte of an answer; -1 if a partial one does not say."""
    if response.status != 206:
        return 0
    first = response.headers.get("Content-Range", "").removeprefix("bytes ").partition("-")[0]
    return int(first) if first.isdigit() else -1


def _version(response: HTTPResponse) -> str:
    """Return the server's mark of this version of the file; a weak one cannot be asked for again."""
    tag = response.headers.get("ETag", "")
    return tag if tag and not tag.startswith("W/") else response.headers.get("Last-Modified", "")


def _reason(error: Exception) -> str:
    inner = error.reason if isinstance(error, URLError) else error
    return getattr(inner, "strerror", None) or str(inner) or type(inner).__name__


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size:,} bytes"
