"""Keep a crash inside the Parquet reader from printing more than our own one line."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import RLock

_TURN = RLock()


@contextmanager
def quiet_panics() -> Iterator[None]:
    """Send the standard error of the process nowhere meanwhile.

    On a corrupt file polars panics: it raises an exception, which we explain, but has by then written a
    report of several lines to the file descriptor itself, where Python cannot catch it. The descriptor
    belongs to the whole process, so threads take turns.
    """
    with _TURN:
        yield from _redirected()


def _redirected() -> Iterator[None]:
    try:
        kept = os.dup(2)
    except OSError:  # the process has no standard error
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
