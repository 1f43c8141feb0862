"""`pres.diagnose`: the statistics of a stream and its pending load against the batch size."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress

from pres.data.stream import EventStream
from pres.data.summary import Summary
from pres.errors import OptionError
from pres.sampling import PendingLoad, PendingProfile, TemporalBatches
from pres.sampling.batches import Ties

SAMPLE = 1_000_000
BATCH_SIZES = (50, 100, 200, 400, 800, 1600, 3200, 6400)


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Statistics and pending loads of one stream, to be read, drawn or saved."""

    events: EventStream  # what was looked at: the stream, or its last events
    stream_events: int  # events of the whole stream
    summary: Summary
    ties: Ties
    loads: dict[int, PendingLoad]  # by batch size

    @property
    def looked_at(self) -> str:
        """How many events were diagnosed and, if not all, of how many."""
        whole = len(self.events) == self.stream_events
        return (
            f"{len(self.events):,}" if whole else f"the last {len(self.events):,} of {self.stream_events:,}"
        )

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as `pres diagnose --json` prints it."""
        info = self.events.info
        return {
            "dataset": info.name,
            "variant": info.variant,
            "time_unit": info.time_unit,
            "bipartite": self.events.bipartite,
            "directed": self.events.directed,
            "stream_events": self.stream_events,
            "summary": dataclasses.asdict(self.summary),
            "ties": self.ties,
            "pending": [{"batch_size": size} | dataclasses.asdict(load) for size, load in self.loads.items()],
        }

    def save_png(self, path: str | Path) -> Path:
        """Draw the diagnosis as one picture at ``path`` and return it."""
        from pres.tuning.diagnosis_figure import save_figure

        return save_figure(self, Path(path))

    def __repr__(self) -> str:
        from pres.tuning.diagnosis_tables import as_text

        return as_text(self)


def diagnose(
    events: EventStream,
    batch_sizes: Sequence[int] | None = None,
    *,
    ties: Ties = "cut",
    sample: int = SAMPLE,
    progress: bool = False,
) -> Diagnosis:
    """Return the statistics of ``events`` and its pending load at each batch size up to its length.

    It takes time and memory for ``sample`` events at most.

    Args:
        events: The stream to look at.
        batch_sizes: Sizes to try; by default 50 to 6,400 as far as the stream reaches.
        sample: A longer stream is not read as a whole: its last ``sample`` events are diagnosed.
        ties: Whether batches may cut events of equal time apart, see `TemporalBatches`.
        progress: Whether to show a progress bar on stderr.
    """
    if len(events) == 0:
        raise OptionError(f"'{events.info.title}' has no events to diagnose.")
    if sample < 1:
        raise OptionError(f"sample={sample}: look at one event at least.")
    stream_events, events = len(events), events[-sample:]
    if batch_sizes is None:
        batch_sizes = [size for size in BATCH_SIZES if size <= len(events)] or [len(events)]
    sizes = sorted(set(batch_sizes))
    if not sizes or sizes[-1] > len(events):
        raise OptionError(f"batch sizes {sizes} do not fit a stream of {len(events):,} events.")
    loads: dict[int, PendingLoad] = {}
    with Progress(console=Console(stderr=True), transient=True, disable=not progress) as bars:
        task = bars.add_task("statistics", total=1 + len(sizes))
        summary = events.summary()
        for size in sizes:
            bars.update(task, description=f"pending load in batches of {size:,}", advance=1)
            edges = TemporalBatches(events, size, ties=ties).edges
            loads[size] = PendingProfile.of(events, edges).load()
    return Diagnosis(events, stream_events, summary, ties, loads)
