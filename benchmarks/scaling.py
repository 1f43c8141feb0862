"""Whether index building and sampling cost the same per event from 100 k to 10 M events.

``OMP_NUM_THREADS=1 python -m benchmarks scaling``: seconds are those of the processor, and would count it
as work if several threads waited for each other.
"""

import torch
from rich.console import Console
from rich.table import Table

import pres
from benchmarks.timing import processor_seconds
from pres.sampling import TemporalBatches, TemporalIndex

SIZES = (100_000, 1_000_000, 10_000_000)
BATCH, K = 600, 10
SAMPLED = 300_000  # events at the end of the stream, where histories are longest


def run() -> None:
    table = Table(
        title=f"Synthetic streams: nanoseconds per event, batches of {BATCH}, k = {K}", title_justify="left"
    )
    for name in ("events", "build", "sample", "build / smallest", "sample / smallest"):
        table.add_column(name, justify="right")
    rows = []
    for size in SIZES:
        events = pres.load("synthetic", num_events=size, features=0, labels=False)
        build = min(processor_seconds(lambda: TemporalIndex(events)) for _ in range(3)) / size  # noqa: B023
        index = TemporalIndex(events)
        batches = list(TemporalBatches(events[-SAMPLED:], BATCH))

        def sample() -> None:
            for batch in batches:  # noqa: B023
                roots = torch.cat([batch.src, batch.dst])
                index.recent(roots, index.cutoffs(batch).repeat(2), K)  # noqa: B023

        rows.append((size, build, min(processor_seconds(sample) for _ in range(3)) / min(size, SAMPLED)))
    for size, build, spent in rows:
        table.add_row(
            f"{size:,}",
            f"{build * 1e9:.0f}",
            f"{spent * 1e9:.0f}",
            f"{build / rows[0][1]:.2f}",
            f"{spent / rows[0][2]:.2f}",
        )
    Console().print(table)
