"""`pres.diagnose`: the statistics of a stream and its pending load against the batch size."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console, Group
from rich.progress import Progress
from rich.table import Table

from pres.data.info import SECONDS_PER_UNIT, human_duration
from pres.data.stream import EventStream
from pres.data.summary import Summary
from pres.errors import OptionError
from pres.sampling import PendingLoad, PendingProfile, TemporalBatches
from pres.sampling.batches import Ties
from pres.tables import listed, table

SAMPLE = 1_000_000
_MEANING = """\
pending: events of the batch at a strictly earlier time that share a node
lost, chain, width go by stream order, equal times included:
lost: updates left out by making one per node and batch
chain: events that must follow each other; width: events per level of exact memory"""
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
        console = Console(width=110, no_color=True, force_terminal=False)
        with console.capture() as capture:
            console.print(self.shown())
        return capture.get().rstrip()

    def shown(self) -> Group:
        """Return the statistics and the pending loads as tables for a terminal."""
        return Group(_statistics(self), "", _loads(self), "", _MEANING)


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


def _statistics(diagnosis: Diagnosis) -> Table:
    found = diagnosis.summary
    return listed(
        ("events", diagnosis.looked_at),
        ("nodes", _nodes(diagnosis)),
        ("time", _time(diagnosis)),
        ("equal times", f"{found.distinct_t:,} distinct, at most {found.most_events_at_one_t:,} at one"),
        ("gap", f"{_duration(diagnosis, found.mean_gap)} on average between events of a node"),
        ("pairs", f"{found.distinct_pairs:,} distinct, {found.repeated_share:.1%} of events repeat one"),
        ("busiest node", f"{found.most_events_of_a_node:,} events"),
        ("self-loops", f"{found.self_loops:,}"),
        ("features", _features(found)),
        ("labels", "none" if found.positives is None else f"{found.positives:,} events not 0"),
        title=diagnosis.events.info.title,
    )


def _nodes(diagnosis: Diagnosis) -> str:
    found, kind = diagnosis.summary, "bipartite" if diagnosis.events.bipartite else "one kind"
    return (
        f"{found.nodes:,} ({kind}; {found.active_src:,} act as source, {found.active_dst:,} as destination)"
    )


def _time(diagnosis: Diagnosis) -> str:
    found, events = diagnosis.summary, diagnosis.events
    times = f"{events.time_text(found.first_t)} … {events.time_text(found.last_t)}"
    if events.info.time_unit is None:
        return f"{times} (in a unit that was not said)"
    return f"{times} ({_duration(diagnosis, found.last_t - found.first_t)})"


def _duration(diagnosis: Diagnosis, amount: float) -> str:
    unit = diagnosis.events.info.time_unit
    return f"{amount:,.4g} units of time" if unit is None else human_duration(amount * SECONDS_PER_UNIT[unit])


def _features(found: Summary) -> str:
    return (
        f"{found.edge_features} numeric and {found.categorical_features} categorical per event, "
        f"{found.node_features} per node"
    )


def _loads(diagnosis: Diagnosis) -> Table:
    rows = [
        (
            *(f"{size:,}", f"{load.largest_batch:,}", f"{load.batches:,}", f"{load.events_with_pending:.1%}"),
            *(f"{load.mean_pending:,.1f}", f"{load.lost_updates:.1%}", f"{load.longest_chain:,}"),
            f"{load.mean_level_width:,.1f}",
        )
        for size, load in diagnosis.loads.items()
    ]
    return table(
        ("batch", "largest", "batches", "with pending", "mean pending", "lost", "chain", "width"),
        rows,
        title=f"Pending load by batch size (ties: {diagnosis.ties})",
    )
