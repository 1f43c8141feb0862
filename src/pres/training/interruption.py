"""Stopping between two batches, never inside one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stopping_between_batches() -> Iterator[Callable[[], None]]:
    """Give a function that raises `KeyboardInterrupt` if one (or a SIGTERM) has come since the last call.

    A second signal interrupts at once. Outside the main thread signals do not arrive, and nothing changes.
    """
    asked = False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        asked = True

    def stop_if_asked() -> None:
        if asked:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield stop_if_asked
        return
    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop_if_asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
