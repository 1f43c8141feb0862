import errno
import os
from pathlib import Path

import pytest

from pres.errors import StorageError
from pres.storage import write_whole


def test_a_whole_file_replaces_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    assert write_whole(path, lambda unfinished: unfinished.write_text("new")) == path
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(tmp_path: Path, code: int) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def write(unfinished: Path) -> None:
        unfinished.write_text("half of the n")
        raise OSError(code, os.strerror(code))

    with pytest.raises(StorageError, match=os.strerror(code).lower()):
        write_whole(path, write)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_nothing(tmp_path: Path) -> None:
    def write(unfinished: Path) -> None:
        unfinished.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_whole(tmp_path / "a.txt", write)
    assert list(tmp_path.iterdir()) == []
