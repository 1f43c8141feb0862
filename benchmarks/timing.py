"""Timing that is fair on a noisy machine: contestants take turns, and the median counts."""

import statistics
import time
from collections.abc import Callable, Mapping


def seconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def processor_seconds(work: Callable[[], object]) -> float:
    """How long the processor works at one call, in all threads: other work on the machine does not count."""
    start = time.process_time()
    work()
    return time.process_time() - start


def median_seconds(contestants: Mapping[str, Callable[[], object]], rounds: int = 5) -> dict[str, float]:
    """The median time of each contestant over interleaved rounds, after one round to warm up."""
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 1):
        for name, work in contestants.items():
            spent = seconds(work)
            if turn:
                times[name].append(spent)
    return {name: statistics.median(spent) for name, spent in times.items()}
