"""Work done ahead of its use, in a second thread."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Generic, TypeVar

import torch

Key = TypeVar("Key")
Made = TypeVar("Made")


class Prefetch(Generic[Key, Made]):
    """Makes things by their key, one of them ahead of its use.

    Where operations of the first thread use every core, a second one only makes them wait for each other:
    look whether it `pays`.

    Args:
        make: What makes a thing. It is called in either thread.
    """

    def __init__(self, make: Callable[[Key], Made]) -> None:
        self._make = make
        self._thread: ThreadPoolExecutor | None = None
        self._begun: tuple[Key, Future[Made]] | None = None

    @property
    def pays(self) -> bool:
        """Whether there is a core that operations of this thread leave idle."""
        return _cores() > torch.get_num_threads()

    def begin(self, key: Key) -> None:
        """Begin to make a thing; one that was begun before and not taken is forgotten."""
        if self._thread is None:
            self._thread = ThreadPoolExecutor(1, "pres-ahead")
        self._begun = (key, self._thread.submit(self._make, key))

    def take(self, key: Key) -> Made:
        """Return the thing of a key, begun or made now; an error in making it is raised here."""
        begun, self._begun = self._begun, None
        if begun is not None:
            wait([begun[1]])  # or it would go on beside the next
            if begun[0] == key:
                return begun[1].result()
        return self._make(key)


def _cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
