"""How much memory something takes at most."""

from __future__ import annotations

import gc
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pres.nn.allocation import give_back_free_blocks

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")
_PAUSE = 0.1  # seconds between two looks
_STILL = 15  # looks in a row that find the process no smaller
_LOOKS = 300  # at most
_NOISE = 1024  # KiB


@contextmanager
def peak_memory() -> Iterator[Callable[[], int | None]]:
    """Give a function that returns by how many bytes this process grew at most inside the block.

    What was freed before is given back to the system first, or the block would use it again and seem to take
    less. It returns None where the system does not tell: the mark that the kernel keeps is Linux's.
    """
    before = _start_again()
    found: int | None = None
    yield lambda: found
    if before is not None:
        found = max(0, _kibibytes("VmHWM") - before) * 1024


def _start_again() -> int | None:
    """Let the kernel's mark start again from what is held now, and return that; None where it keeps none."""
    gc.collect()
    give_back_free_blocks()
    try:
        _settle()
        _RESET.write_text("5")
        _kibibytes("VmHWM")
        return _kibibytes("VmRSS")
    except OSError:
        return None


def _settle() -> None:
    """Wait until this process shrinks no more.

    The allocator of polars gives back what was freed in a thread of its own, over about two seconds.
    """
    least, still = _kibibytes("VmRSS"), 0
    for _ in range(_LOOKS):
        if still == _STILL:
            return
        time.sleep(_PAUSE)
        now = _kibibytes("VmRSS")
        least, still = (now, 0) if now < least - _NOISE else (least, still + 1)


def _kibibytes(name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB", _STATUS.read_text(), flags=re.MULTILINE)
    if match is None:
        raise OSError(f"{_STATUS} has no {name}")
    return int(match.group(1))
