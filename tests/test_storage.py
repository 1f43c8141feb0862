import errno
import hashlib
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pres.errors import SourceNotFoundError, StorageError, UnreadableSourceError
from pres.storage import (
    checksum,
    keep_previous,
    new_folder,
    previous_of,
    read_json,
    sweep,
    take,
    write_bytes,
    write_json,
    write_whole,
)


def test_a_writer_that_makes_a_file_of_its_own_changes_no_rights(tmp_path: Path) -> None:
    def replaced(unfinished: Path) -> None:
        unfinished.unlink()
        os.close(os.open(unfinished, os.O_CREAT | os.O_WRONLY, 0o600))

    usual = write_whole(tmp_path / "usual.txt", lambda unfinished: unfinished.write_text("a"))
    own = write_whole(tmp_path / "own.txt", replaced)
    assert own.stat().st_mode == usual.stat().st_mode


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


def test_a_file_is_on_the_disk_before_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    replace, fsync = Path.replace, os.fsync

    def synced(descriptor: int) -> None:
        steps.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")
        fsync(descriptor)

    def replaced(source: Path, target: Path) -> Path:
        steps.append("name")
        return replace(source, target)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "replace", replaced)
    write_bytes(tmp_path / "a.txt", b"new")
    assert steps == ["file", "name", "folder"]
    steps.clear()
    with new_folder(tmp_path / "b") as place:
        (place / "inside").mkdir()
        (place / "inside" / "a.txt").write_text("one")
    assert sorted(steps[:-2]) == ["file", "file", "folder", "folder"] and steps[-2:] == ["name", "folder"]


def test_what_killed_writers_left_is_swept_and_what_is_being_written_is_not(tmp_path: Path) -> None:
    stale, other = tmp_path / f".a.txt.{'0' * 16}.txt", tmp_path / f".b.txt.{'1' * 16}.txt"
    for path in (stale, other, tmp_path / ".mine.txt", tmp_path / ".making"):
        path.write_text("half")

    def write(unfinished: Path) -> None:
        assert not stale.exists() and other.exists()
        unfinished.write_text("outer")
        write_bytes(tmp_path / "a.txt", b"inner")
        assert unfinished.exists()

    write_whole(tmp_path / "a.txt", write)
    assert (tmp_path / "a.txt").read_text() == "outer"
    sweep(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.txt", "a.txt"]


VALUES = {"lr": 0.001, "name": "é\udc80", "sizes": (1, 2), "none": None, "of": {"2": True, "10": "two"}}


def test_an_object_comes_back_as_it_was(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", VALUES)
    assert read_json(path) == VALUES | {"sizes": [1, 2]}
    with pytest.raises(SourceNotFoundError, match="no such file"):
        read_json(tmp_path / "b.json")


def test_no_changed_bit_of_an_object_goes_unnoticed(tmp_path: Path) -> None:
    path = write_json(tmp_path / "a.json", VALUES)
    content, known, said = path.read_bytes(), read_json(path), 0
    for bit in range(8 * len(content)):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        path.write_bytes(changed)
        try:
            assert read_json(path) == known  # the white space between two values, say
        except UnreadableSourceError as error:
            assert "is damaged: " in str(error)
            said += 1
    assert said > 7 * len(content)
    for part in range(len(content) - 1):
        path.write_bytes(content[:part])
        with pytest.raises(UnreadableSourceError, match="is damaged"):
            read_json(path)


@pytest.mark.parametrize("content", [b"[]", b"{}", b'{"a": 1}', b"[" * 100_000, b"\xff", b"1" * 5_000])
def test_what_is_no_object_with_a_checksum_is_one_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(UnreadableSourceError, match="is damaged: "):
        read_json(tmp_path / "a.json")


def test_the_checksum_of_a_file_is_that_of_its_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"abc")
    assert checksum(tmp_path / "a.txt") == hashlib.sha256(b"abc").hexdigest()


@pytest.mark.parametrize("links", [True, False])
def test_the_file_before_is_kept(links: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not links:

        def none(*arguments: object) -> None:
            raise OSError(errno.EPERM, os.strerror(errno.EPERM))

        monkeypatch.setattr(os, "link", none)
    path = tmp_path / "a.txt"
    keep_previous(path)
    assert not list(tmp_path.iterdir())
    for text in ("one", "two", "three"):
        keep_previous(path)
        assert path.exists() == (links and text != "one")
        path.unlink(missing_ok=True)  # written in place, a second name of the file would change too
        write_bytes(path, text.encode())
    assert path.read_text() == "three" and previous_of(path).read_text() == "two"
    assert sorted(found.name for found in tmp_path.iterdir()) == ["a-previous.txt", "a.txt"]


def test_a_file_stays_where_there_is_no_room_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_bytes(tmp_path / "a.txt", b"one")

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "link", full)
    with pytest.raises(StorageError, match="no space left"):
        keep_previous(path)
    assert [found.name for found in tmp_path.iterdir()] == ["a.txt"] and path.read_bytes() == b"one"


def test_a_new_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    target = tmp_path / "of" / "mine[1]"
    stale = target.with_name(f".{target.name}-{'0' * 16}")
    stale.mkdir(parents=True)
    with new_folder(target) as place:
        (place / "a.txt").write_text("one")
        assert not target.exists() and not stale.exists()
        with (
            pytest.raises(StorageError, match=rf"is being written by process {os.getpid()} on "),
            new_folder(target),
        ):
            pass
    assert (target / "a.txt").read_text() == "one"
    assert list(target.parent.iterdir()) == [target]


def test_a_new_folder_that_fails_leaves_nothing(tmp_path: Path) -> None:
    for error in (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), KeyboardInterrupt()):
        with (
            pytest.raises((StorageError, KeyboardInterrupt)) as raised,
            new_folder(tmp_path / "a") as place,
        ):
            (place / "a.txt").write_text("one")
            raise error
        assert isinstance(raised.value, KeyboardInterrupt) or "no space left" in str(raised.value)
        assert list(tmp_path.iterdir()) == []


def test_a_new_folder_replaces_an_empty_one_and_no_other(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    with new_folder(tmp_path / "link") as place:
        (place / "a.txt").write_text("one")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "empty" / "a.txt").read_text() == "one"
    with pytest.raises(StorageError, match="cannot write"), new_folder(tmp_path / "empty") as place:
        (place / "a.txt").write_text("two")
    assert (tmp_path / "empty" / "a.txt").read_text() == "one"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "link"]


def test_a_lock_names_the_process_that_holds_it_and_ends_with_it(tmp_path: Path) -> None:
    file = tmp_path / ".lock"
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(file)], stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(StorageError, match=rf"runs/a is being written by process {holder.pid} on "):
        take(file, Path("runs/a"))
    holder.kill()
    holder.communicate()
    lock = take(file, tmp_path)
    with pytest.raises(StorageError, match=f"by process {os.getpid()} on "):
        take(file, tmp_path)
    lock.release()
    take(file, tmp_path).release()


@pytest.mark.skipif(sys.platform == "win32", reason="locks of another kind")
def test_a_file_system_without_locks_has_one_writer_too_and_a_kill_frees_the_place(tmp_path: Path) -> None:
    said = []
    for how in ("die", "end", "end"):
        command = [sys.executable, "-W", "ignore", "-c", WITHOUT_LOCKS, str(tmp_path), how]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        said.append(done.stdout.splitlines())
        assert (done.returncode != 0) == (how == "die"), done.stderr
    assert all(lines[0].startswith("it is being written by process ") for lines in said)
    assert said[0][1:] == [] and said[1][1:] == said[2][1:] == ["two"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt"]


WITHOUT_LOCKS = """
import errno, fcntl, os, signal, sys
from pathlib import Path

def none(descriptor, operation):
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

fcntl.flock = none
from pres.errors import StorageError
from pres.storage import take, write_bytes
place = Path(sys.argv[1])
lock = take(place / ".lock", Path("it"))
write_bytes(place / "a.txt", b"one")
write_bytes(place / "a.txt", b"two")
try:
    take(place / ".lock", Path("it"))
except StorageError as error:
    print(error, flush=True)
if sys.argv[2] == "die":
    os.kill(os.getpid(), signal.SIGKILL)
lock.release()
print((place / "a.txt").read_text())
"""
HOLD = """
import sys
from pathlib import Path
from pres.storage import take
lock = take(Path(sys.argv[1]), Path("it"))
print("held", flush=True)
sys.stdin.read()
"""
