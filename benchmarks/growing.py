"""What an event costs that is appended to a long stream, beside what one costs where all are read at once.

``python -m benchmarks growing``, or with the events before and those appended: ``python -m benchmarks.growing
10000000 1000000``. Times are the processor's.
"""

import sys
import time
import warnings
from collections.abc import Callable, Iterable

import polars as pl
import torch
from rich.console import Console
from rich.table import Table

import pres
from pres.data import GrowingStream
from pres.sampling import TemporalIndex, grown

CHUNKS = (200, 1_000, 10_000, 100_000, 1_000_000)
AT_MOST = 500  # chunks of a size that are appended and timed


def seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


def table_of(num_events: int) -> pl.DataFrame:
    """A log of so many events by ten times fewer users, in no particular order of ids."""
    generator = torch.Generator().manual_seed(0)
    users, items = (
        torch.randint(0, max(2, num_events // share), (num_events,), generator=generator)
        for share in (10, 100)
    )
    return pl.DataFrame({"src": users.numpy(), "dst": items.numpy(), "t": torch.arange(num_events).numpy()})


def append(growing: GrowingStream, index: TemporalIndex, chunks: Iterable[pl.DataFrame]) -> None:
    for chunk in chunks:
        index = grown(index, growing.append(chunk))


def measure(begun: int, appended: int) -> list[tuple[str, float]]:
    """Return microseconds per event, by how events came."""
    log = table_of(begun + appended)
    found: list[TemporalIndex] = []
    first = log[:begun]
    events: list[pres.EventStream] = []
    read = seconds(lambda: events.append(pres.read(first, src="src", dst="dst", t="t", bipartite=True)))
    built = seconds(lambda: found.append(TemporalIndex(events[0])))
    rows = [("read and indexed at once", 1e6 * (read + built) / begun)]
    made: list[GrowingStream] = []
    rows.append(("made growable", 1e6 * seconds(lambda: made.append(GrowingStream(events[0]))) / begun))
    append(made[0], found[0], [log[begun : begun + 1]])  # makes the room that later appends use
    for size in CHUNKS:
        count = min(appended // size, AT_MOST)
        if not count:
            continue
        growing = GrowingStream(events[0])
        append(growing, found[0], [log[begun : begun + 1]])
        chunks = [log[begun + 1 + i * size : begun + 1 + (i + 1) * size] for i in range(count)]
        index = grown(found[0], growing.events)
        took = seconds(lambda g=growing, i=index, c=chunks: append(g, i, c))  # type: ignore[misc]
        rows.append((f"appended, {size:,} at a time", 1e6 * took / sum(map(len, chunks))))
    return rows


def run(begun: int = 1_000_000, appended: int = 100_000) -> None:
    with warnings.catch_warnings(action="ignore", category=pres.Notice):
        rows = measure(begun, appended)
    table = Table("events", "µs per event", title=f"{appended:,} events behind {begun:,}")
    for name, micros in rows:
        table.add_row(name, f"{micros:.2f}")
    Console().print(table)


if __name__ == "__main__":
    run(*(int(argument) for argument in sys.argv[1:]))
