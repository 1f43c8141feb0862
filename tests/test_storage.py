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


def test_a_link_stays_a_link_and_its_target_is_replaced(tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("old")
    link.symlink_to(target)
    write_whole(link, lambda unfinished: unfinished.write_text("new"))
    assert link.is_symlink() and target.read_text() == "new"


def test_what_is_not_a_file_is_never_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(StorageError, match="it is not a file"):
            write_whole(path, lambda unfinished: unfinished.write_text("new"))
    assert pipe.is_fifo()
