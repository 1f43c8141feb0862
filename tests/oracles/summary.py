"""Statistics of a stream by counting events one after the other."""

from collections import Counter, defaultdict
from itertools import pairwise

from tests.oracles.sampling import Event


def summary(events: list[Event]) -> dict[str, float]:
    """Return the statistics that ties, repeats and self-loops have a say in."""
    at_time: Counter[float] = Counter()
    of_node: Counter[int] = Counter()
    times_of_node: dict[int, list[float]] = defaultdict(list)
    pairs: set[tuple[int, int]] = set()
    self_loops = repeats = 0
    for src, dst, t in events:
        at_time[t] += 1
        self_loops += src == dst
        repeats += (src, dst) in pairs
        pairs.add((src, dst))
        for node in {src, dst}:  # a self-loop is one event of its node
            of_node[node] += 1
            times_of_node[node].append(t)
    gaps = [later - earlier for times in times_of_node.values() for earlier, later in pairwise(times)]
    return {
        "events": len(events),
        "active_src": len({src for src, _, _ in events}),
        "active_dst": len({dst for _, dst, _ in events}),
        "first_t": events[0][2],
        "last_t": events[-1][2],
        "distinct_t": len(at_time),
        "most_events_at_one_t": max(at_time.values()),
        "self_loops": self_loops,
        "distinct_pairs": len(pairs),
        "repeated_share": repeats / len(events),
        "most_events_of_a_node": max(of_node.values()),
        "mean_gap": sum(gaps) / len(gaps) if gaps else 0.0,
    }
