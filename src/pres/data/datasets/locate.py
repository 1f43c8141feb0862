"""Where a dataset is on this machine: the folder PRES_DATA names, then the cache."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from zipfile import ZipFile

from pres.data.datasets.formats import FORMATS
from pres.data.datasets.registry import Dataset
from pres.errors import SourceNotFoundError, StorageError, UnreadableSourceError, one_line
from pres.storage import user_path

_DISK_REFUSES = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EPERM, errno.EROFS, errno.EFBIG)


@dataclass(frozen=True)
class Found:
    """A copy of a dataset."""

    format: str
    place: Path  # a folder, or a zip file
    files: Mapping[str, str]  # name in the place, by role

    @property
    def packed(self) -> bool:
        """Whether the files are inside a zip file."""
        return self.place.is_file()

    @property
    def where(self) -> Path:
        """The file, folder or zip file a person would look for."""
        if self.packed or "events" not in self.files:
            return self.place
        return self.place / self.files["events"]

    @property
    def sources(self) -> tuple[Path, ...]:
        """The files on disk that the copy consists of."""
        return (self.place,) if self.packed else tuple(self.place / file for file in self.files.values())

    @contextmanager
    def opened(self) -> Iterator[Mapping[str, Path]]:
        """Yield the path of each role, unpacked for the while if need be."""
        if not self.packed:
            yield {role: self.place / file for role, file in self.files.items()}
            return
        with unpacked(self.place, set(self.files.values())) as folder:
            yield {role: folder / Path(file).name for role, file in self.files.items()}


def data_folder() -> Path | None:
    """Return the folder that PRES_DATA names, or None when it is not set."""
    named = os.environ.get("PRES_DATA")
    if not named:
        return None
    folder = user_path(named)
    if not folder.is_dir():
        raise SourceNotFoundError(f"PRES_DATA names {folder}, which is not a folder. Mend it or unset it.")
    return folder


def cache_folder() -> Path:
    """Return the folder for downloads and converted copies: PRES_CACHE, or the user's cache folder."""
    named = os.environ.get("PRES_CACHE")
    if named:
        return user_path(named)
    import platformdirs

    return Path(platformdirs.user_cache_dir("pres", appauthor=False))


def locate(dataset: Dataset) -> Found | None:
    """Return the first copy of the dataset in PRES_DATA, then in the cache, or None."""
    for root in (data_folder(), cache_folder()):
        found = None if root is None else search(root, dataset, own=dataset.names_folder(root.name))
        if found is not None:
            return found
    return None


def search(root: Path, dataset: Dataset, own: bool) -> Found | None:
    """Return the copy of the dataset in a folder, in a folder of its own inside it, or in its zip file.

    Args:
        root: The folder to look in.
        dataset: What to look for.
        own: Whether the folder is the dataset's own, so that names like ``edges.csv`` mean this dataset.
    """
    places = [(root, own)]
    for folder in _inside(root):
        if folder.is_dir() and dataset.names_folder(folder.name):
            places += [(folder, True), (folder / "raw", True)]
    in_folders = (
        (place, {path.name: path.name for path in _inside(place)}, owned) for place, owned in places
    )
    found = _match(in_folders, dataset)
    if found is not None:
        return found
    zips = [path for place, _ in places for path in _inside(place) if dataset.names_archive(path.name)]
    return _match(((path, members(path), True) for path in zips if path.is_file()), dataset)


def _match(places: Iterable[tuple[Path, Mapping[str, str], bool]], dataset: Dataset) -> Found | None:
    """Return the copy in the first layout of the dataset that any place has."""
    listed = list(places)
    for name in dataset.formats:
        for place, contents, owned in listed:
            files = FORMATS[name].match(contents.keys(), dataset, owned)
            if files is not None:
                return Found(name, place, {role: contents[file] for role, file in files.items()})
    return None


def _inside(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:  # absent or closed to this user: nothing to be found
        return []


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
