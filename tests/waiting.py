"""Waiting for other processes and threads, for as long as a busy machine may take."""

import time
from collections.abc import Callable

PATIENCE = 900.0  # seconds; whoever has waited so long waits for something that will not come


def until(condition: Callable[[], bool]) -> None:
    """Wait until something is so."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
