"""What a person wants to know of a stream: its statistics and its description."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pres.data.incidence import check_key_range, distinct, incidences, occurring
from pres.data.stream import EventStream

_AT_ONCE = 1 << 22  # events of a pass that are looked at together


@dataclass(frozen=True)
class Summary:
    """Statistics of one stream; times are in the stream's own unit."""

    events: int
    nodes: int
    active_src: int  # distinct nodes that occur as source
    active_dst: int
    edge_features: int
    categorical_features: int
    node_features: int
    first_t: float | int
    last_t: float | int
    distinct_t: int
    most_events_at_one_t: int
    self_loops: int
    distinct_pairs: int  # distinct (src, dst)
    repeated_share: float  # share of events whose (src, dst) occurred before
    most_events_of_a_node: int
    mean_gap: float  # mean time between consecutive events of a node
    positives: int | None  # events with a non-zero label; None without labels


def summarise(events: EventStream) -> Summary:
    """Return the statistics of ``events`` in O(n log n)."""
    n = len(events)
    check_key_range(events.num_nodes, events.num_nodes)
    distinct_pairs = len(distinct(events.src * events.num_nodes + events.dst))
    _, run_lengths = torch.unique_consecutive(events.t, return_counts=True)
    entries = incidences(events.src, events.dst, events.num_nodes)
    return Summary(
        events=n,
        nodes=events.num_nodes,
        active_src=len(distinct(events.src)),
        active_dst=len(distinct(events.dst)),
        edge_features=0 if events.x is None else events.x.shape[1],
        categorical_features=0 if events.categories is None else events.categories.shape[1],
        node_features=0 if events.node_x is None else events.node_x.shape[1],
        first_t=events.t[0].item() if n else 0,
        last_t=events.t[-1].item() if n else 0,
        distinct_t=len(run_lengths),
        most_events_at_one_t=int(run_lengths.max()) if n else 0,
        self_loops=2 * n - len(entries.keys),
        distinct_pairs=distinct_pairs,
        repeated_share=1 - distinct_pairs / n if n else 0.0,
        most_events_of_a_node=int(torch.bincount(entries.nodes).max()) if n else 0,
        mean_gap=mean_gap(events),
        positives=None if events.label is None else int((events.label != 0).sum()),
    )


def mean_gap(events: EventStream) -> float:
    """Return the mean time between consecutive events of the same node; 0 where no node has two.

    The gaps of a node add up to its last time less its first: one pass, and memory for the nodes alone.
    """
    if len(events) == 0:
        return 0.0
    first, last = (events.t[end].repeat(events.num_nodes) for end in (-1, 0))  # to be lowered, and raised
    entries = 0
    for start in range(0, len(events), _AT_ONCE):
        some = events[start : start + _AT_ONCE]
        entries += 2 * len(some) - int((some.src == some.dst).sum())
        for nodes in (some.src, some.dst):
            first.scatter_reduce_(0, nodes, some.t, "amin")
            last.scatter_reduce_(0, nodes, some.t, "amax")
    there = occurring(events.num_nodes, events.src, events.dst)
    gaps = entries - int(there.sum())
    return float((last - first)[there].double().sum().item() / gaps) if gaps else 0.0


def gaps_between_events_of_a_node(events: EventStream) -> Tensor:
    """Return the times between consecutive events of the same node, all nodes together."""
    entries = incidences(events.src, events.dst, events.num_nodes)
    times = events.t[entries.events]
    return (times[1:] - times[:-1])[entries.nodes[1:] == entries.nodes[:-1]]


def describe(events: EventStream) -> str:
    """Return the few lines that stand for a stream in a terminal."""
    info, n = events.info, len(events)
    kind = "directed" if events.directed else "undirected"
    if events.num_src is not None:
        kind = f"{events.num_src:,} sources → {events.num_nodes - events.num_src:,} destinations, {kind}"
    lines = [f"EventStream '{info.title}': {n:,} events, {events.num_nodes:,} nodes ({kind})"]
    if n:
        unit = "" if info.time_unit is None else f" {info.time_unit}"
        span = events.span_seconds
        lines.append(
            f"  t         {events.t[0].item():,} … {events.t[-1].item():,}{unit}"
            + (f", spanning {human_duration(span)}" if span is not None else "")
        )
    lines.append(f"  features  {_features(events)}")
    lines.append(f"  labels    {'none' if events.label is None else 'one per event'}")
    if events.offset and n:
        lines.append(f"  events    {events.offset:,} … {events.offset + n - 1:,} of the whole stream")
    return "\n".join(lines)


def _features(events: EventStream) -> str:
    parts = []
    if events.x is not None:
        parts.append(f"{events.x.shape[1]} per event")
    for name, levels in zip(events.info.category_names, events.num_categories, strict=True):
        parts.append(f"'{name}' ({levels:,} categories)")
    if events.node_x is not None:
        parts.append(f"{events.node_x.shape[1]} per node")
    return ", ".join(parts) or "none"


def human_duration(seconds: float) -> str:
    """Return a duration in the largest unit that fits, e.g. ``31.0 days``."""
    for size, unit in ((86400 * 365.25, "years"), (86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.3g} seconds"
