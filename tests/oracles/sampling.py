"""Slow and obviously right: neighbours, negatives, pending sets and levels by loops over plain tuples."""

from collections.abc import Sequence

Event = tuple[int, int, float]  # src, dst, t
Neighbour = tuple[int, int, float]  # node, event, t


def history(
    events: Sequence[Event], node: int, t: float, before: int | None = None, direction: str = "both"
) -> list[Neighbour]:
    """All neighbours of ``node`` strictly before ``t`` (and event ``before``), the most recent first."""
    found: list[Neighbour] = []
    for position, (src, dst, at) in enumerate(events):
        if at >= t or (before is not None and position >= before):
            continue
        if src == node and direction in ("both", "out"):
            found.append((dst, position, at))
        elif dst == node and direction in ("both", "in"):
            found.append((src, position, at))
    return found[::-1]


def forbidden_pairs(batch: Sequence[Event], directed: bool) -> set[tuple[int, int]]:
    pairs = {(src, dst) for src, dst, _ in batch}
    return pairs if directed else pairs | {(dst, src) for src, dst in pairs}


def allowed_negatives(
    events: Sequence[Event],
    start: int,
    stop: int,
    event: int,
    *,
    strategy: str,
    pool: set[int],
    directed: bool,
    train_end: int = 0,
) -> tuple[set[int], bool]:
    """The destinations a negative of ``event`` may be, and whether they are the pool for want of better."""
    src, _, t = events[event]
    banned = forbidden_pairs(events[start:stop], directed)
    from_pool = {node for node in pool if (src, node) not in banned}
    if strategy == "random":
        return from_pool, False
    first_met: dict[int, int] = {}
    for position, (other, dst, _) in enumerate(events):
        if other == src:
            first_met.setdefault(dst, position)
    met = {
        dst
        for dst, position in first_met.items()
        if position < start and events[position][2] < t and (src, dst) not in banned
    }
    if strategy == "inductive":
        met = {dst for dst in met if first_met[dst] >= train_end}
    return (met, False) if met else (from_pool, True)


def pending_set(batch: Sequence[Event], i: int) -> list[int]:
    """Positions of the events of ``batch`` that event ``i`` is pending on (Definitions 1 and 2)."""
    src, dst, t = batch[i]
    return [j for j, (u, v, at) in enumerate(batch) if at < t and {u, v} & {src, dst}]


def updates_per_node(batch: Sequence[Event]) -> dict[int, int]:
    counts: dict[int, int] = {}
    for src, dst, _ in batch:
        for node in {src, dst}:
            counts[node] = counts.get(node, 0) + 1
    return counts


def level_of_events(batch: Sequence[Event]) -> list[int]:
    """One above the highest level among the batch's earlier events, in stream order, that share a node."""
    found: list[int] = []
    for i, (src, dst, _) in enumerate(batch):
        before = [found[j] for j in range(i) if {src, dst} & set(batch[j][:2])]
        found.append(max(before, default=-1) + 1)
    return found


def fixed_edges(n: int, size: int) -> list[int]:
    return [*range(0, n, size), n]


def whole_tie_edges(times: Sequence[float], size: int) -> list[int]:
    edges = [0]
    while edges[-1] < len(times):
        stop = min(edges[-1] + size, len(times))
        while stop < len(times) and times[stop] == times[stop - 1]:
            stop += 1
        edges.append(stop)
    return edges


def window_edges(times: Sequence[float], window: float) -> list[int]:
    edges = [0]
    for i in range(1, len(times)):
        if (times[i] - times[0]) // window != (times[i - 1] - times[0]) // window:
            edges.append(i)
    return [*edges, len(times)]
