"""How much memory something takes at most."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@contextmanager
def peak_memory() -> Iterator[Callable[[], int | None]]:
    """Give a function that returns by how many bytes this process grew at most inside the block.

    It returns None where the system does not tell: the mark that the kernel keeps is Linux's.
    """
    gc.collect()
    before: int | None = None
    found: int | None = None
    if _RESET.exists():
        try:
            _RESET.write_text("5")  # the mark starts again from what is held now
            before = _kibibytes("VmRSS")
        except OSError:
            before = None
    yield lambda: found
    if before is not None:
        found = max(0, _kibibytes("VmHWM") - before) * 1024


def _kibibytes(name: str) -> int:
    match = re.search(rf"^{name}:\s+(\d+) kB", _STATUS.read_text(), flags=re.MULTILINE)
    if match is None:
        raise OSError(f"{_STATUS} has no {name}")
    return int(match.group(1))
