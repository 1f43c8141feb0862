"""Single files out of a zip file, without trusting the names inside it."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from pres.errors import StorageError, UnreadableSourceError, one_line

_DISK_REFUSES = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EFBIG)


def members(archive: Path) -> Mapping[str, str]:
    """Return the members of a zip file by their bare name, without folders."""
    try:
        with ZipFile(archive) as opened:
            names = [name for name in opened.namelist() if not name.startswith("__MACOSX")]
    except Exception as error:  # a damaged file makes the reader fail in many ways
        raise UnreadableSourceError(f"{archive} is cut short or no zip file: {one_line(error)}.") from None
    return {PurePosixPath(name).name: name for name in names}


@contextmanager
def unpacked(archive: Path, wanted: Collection[str]) -> Iterator[Path]:
    """Yield a folder that holds the wanted members under their bare names, for the while."""
    try:
        folder = TemporaryDirectory(prefix="pres-", ignore_cleanup_errors=True)
    except OSError as error:
        raise StorageError(f"no folder to unpack {archive} into: {error.strerror}.") from None
    with folder:
        for member in wanted:
            _unpack(archive, member, Path(folder.name))
        yield Path(folder.name)


def _unpack(archive: Path, member: str, folder: Path) -> None:
    # Only the bare name is used, so that a member called "../x" cannot leave the folder.
    target = folder / PurePosixPath(member).name
    try:
        with ZipFile(archive) as opened, opened.open(member) as packed, target.open("wb") as out:
            shutil.copyfileobj(packed, out, 1 << 20)
    except NotImplementedError:  # Deflate64, in which one public archive is packed
        raise UnreadableSourceError(
            f"{archive} is packed in a way Python cannot undo. Unpack it with the unzip command; the folder "
            "will be found."
        ) from None
    except Exception as error:
        if isinstance(error, OSError) and error.errno in _DISK_REFUSES:
            raise StorageError(
                f"{archive} cannot be unpacked into {folder}: {error.strerror}. Make room there, or set "
                "TMPDIR to another folder."
            ) from None
        raise UnreadableSourceError(
            f"{archive} is cut short or corrupt at {member}: {one_line(error)}."
        ) from None
