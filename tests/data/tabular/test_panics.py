import os
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pres.data.tabular import rows
from pres.data.tabular.rows import quiet_panics


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


def test_no_file_stays_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its own: others are opened and closed in this process at any time."""
    open_files: list[int] = []
    most = 0

    def noted(opening: Callable[..., int]) -> Callable[..., int]:
        def opened(*given: Any) -> int:
            nonlocal most
            open_files.append(opening(*given))
            most = max(most, len(open_files))
            return open_files[-1]

        return opened

    def close(file: int) -> None:
        open_files.remove(file)
        os.close(file)

    ours = vars(os) | {"dup": noted(os.dup), "open": noted(os.open), "close": close}
    monkeypatch.setattr(rows, "os", SimpleNamespace(**ours))
    with quiet_panics():
        pass
    with pytest.raises(ValueError, match="broken"), quiet_panics():
        raise ValueError("broken")
    assert most == 2 and open_files == []


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
