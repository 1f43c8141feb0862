"""Statistics of the events of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pres.data.incidence import check_key_range, distinct, incidences, occurring

_WIDE = ("x", "categories", "node_x")
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


def summarise(columns: Mapping[str, Any], num_nodes: int) -> Summary:
    """Return the statistics of the events in a stream's columns, in O(n log n)."""
    src, dst, t, label = (columns[name] for name in ("src", "dst", "t", "label"))
    widths = {name: 0 if columns[name] is None else columns[name].shape[1] for name in _WIDE}
    n = len(src)
    check_key_range(num_nodes, num_nodes)
    distinct_pairs = len(distinct(src * num_nodes + dst))
    _, run_lengths = torch.unique_consecutive(t, return_counts=True)
    entries = incidences(src, dst, num_nodes)
    return Summary(
        events=n,
        nodes=num_nodes,
        active_src=len(distinct(src)),
        active_dst=len(distinct(dst)),
        edge_features=widths["x"],
        categorical_features=widths["categories"],
        node_features=widths["node_x"],
        first_t=t[0].item() if n else 0,
        last_t=t[-1].item() if n else 0,
        distinct_t=len(run_lengths),
        most_events_at_one_t=int(run_lengths.max()) if n else 0,
        self_loops=2 * n - len(entries.keys),
        distinct_pairs=distinct_pairs,
        repeated_share=1 - distinct_pairs / n if n else 0.0,
        most_events_of_a_node=int(torch.bincount(entries.nodes).max()) if n else 0,
        mean_gap=mean_gap(src, dst, t, num_nodes),
        positives=None if label is None else int((label != 0).sum()),
    )


def mean_gap(src: Tensor, dst: Tensor, t: Tensor, num_nodes: int) -> float:
    """Return the mean time between consecutive events of the same node; 0 where no node has two.

    The gaps of a node add up to its last time less its first: one pass, and memory for the nodes alone.
    """
    if len(src) == 0:
        return 0.0
    first, last = (t[end].repeat(num_nodes) for end in (-1, 0))  # to be lowered, and raised
    entries = 0
    for start in range(0, len(src), _AT_ONCE):
        ends = [side[start : start + _AT_ONCE] for side in (src, dst)]
        entries += 2 * len(ends[0]) - int((ends[0] == ends[1]).sum())
        for nodes in ends:
            first.scatter_reduce_(0, nodes, t[start : start + _AT_ONCE], "amin")
            last.scatter_reduce_(0, nodes, t[start : start + _AT_ONCE], "amax")
    there = occurring(num_nodes, src, dst)
    gaps = entries - int(there.sum())
    return float((last - first)[there].double().sum().item() / gaps) if gaps else 0.0


def gaps_of_nodes(src: Tensor, dst: Tensor, t: Tensor, num_nodes: int) -> Tensor:
    """Return the times between consecutive events of the same node, all nodes together."""
    entries = incidences(src, dst, num_nodes)
    times = t[entries.events]
    return (times[1:] - times[:-1])[entries.nodes[1:] == entries.nodes[:-1]]
