import os
import threading
from pathlib import Path

import pytest

from pres.io.panics import quiet_panics

OPEN_FILES = Path("/proc/self/fd")


def test_what_is_written_meanwhile_is_not_seen(capfd: pytest.CaptureFixture[str]) -> None:
    os.write(2, b"before ")
    with pytest.raises(ValueError, match="broken"), quiet_panics():
        os.write(2, b"thread 'main' panicked")
        raise ValueError("broken")
    os.write(2, b"after")
    assert capfd.readouterr().err == "before after"


def test_a_process_without_standard_error_can_read_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_descriptor(_: int) -> int:
        raise OSError("bad file descriptor")

    monkeypatch.setattr(os, "dup", no_such_descriptor)
    reached = False
    with quiet_panics():
        reached = True
    assert reached


@pytest.mark.skipif(not OPEN_FILES.is_dir(), reason="this system does not list open files")
def test_no_file_stays_open() -> None:
    before = len(list(OPEN_FILES.iterdir()))
    for _ in range(20):
        with quiet_panics():
            pass
    assert len(list(OPEN_FILES.iterdir())) == before


def test_threads_take_turns_and_leave_standard_error_as_it_was() -> None:
    before = os.fstat(2)

    def redirect() -> None:
        for _ in range(50):
            with quiet_panics():
                pass

    threads = [threading.Thread(target=redirect) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    after = os.fstat(2)
    assert (after.st_dev, after.st_ino) == (before.st_dev, before.st_ino)
