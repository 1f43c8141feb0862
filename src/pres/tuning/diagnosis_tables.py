"""A diagnosis as text: two tables for a terminal."""

from __future__ import annotations

from rich.console import Console, Group
from rich.table import Table

from pres.data.info import SECONDS_PER_UNIT, human_duration
from pres.data.summary import Summary
from pres.tuning.diagnose import Diagnosis


def as_tables(diagnosis: Diagnosis) -> Group:
    """Return the statistics and the pending loads as rich tables."""
    return Group(_statistics(diagnosis), "", _loads(diagnosis))


def as_text(diagnosis: Diagnosis) -> str:
    """Return the tables as plain text."""
    console = Console(width=110, no_color=True, force_terminal=False)
    with console.capture() as capture:
        console.print(as_tables(diagnosis))
    return capture.get().rstrip()


def _statistics(diagnosis: Diagnosis) -> Table:
    events, found = diagnosis.events, diagnosis.summary
    table = Table(title=events.info.title, title_justify="left", show_header=False, box=None)
    table.add_column(style="dim")
    table.add_column()
    for name, value in (
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
    ):
        table.add_row(name, value)
    return table


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
    table = Table(
        title=f"Pending load by batch size (ties: {diagnosis.ties})",
        title_justify="left",
        caption="pending: events of the batch at a strictly earlier time that share a node\n"
        "lost, chain, width go by stream order, equal times included:\n"
        "lost: updates left out by making one per node and batch\n"
        "chain: events that must follow each other; width: events per level of exact memory",
        caption_justify="left",
    )
    for name in ("batch", "largest", "batches", "with pending", "mean pending", "lost", "chain", "width"):
        table.add_column(name, justify="right", overflow="fold")
    for size, load in diagnosis.loads.items():
        table.add_row(
            f"{size:,}",
            f"{load.largest_batch:,}",
            f"{load.batches:,}",
            f"{load.events_with_pending:.1%}",
            f"{load.mean_pending:,.1f}",
            f"{load.lost_updates:.1%}",
            f"{load.longest_chain:,}",
            f"{load.mean_level_width:,.1f}",
        )
    return table
