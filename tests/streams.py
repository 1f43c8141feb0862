"""Random small streams for property tests: ties, self-loops, repeats, isolated nodes."""

import torch
from hypothesis import strategies as st

from pres.data.stream import EventStream
from tests.oracles.sampling import Event


@st.composite
def small_streams(draw: st.DrawFn, max_events: int = 40, min_events: int = 1) -> list[Event]:
    """Events in time order among few nodes and few times, so that everything collides."""
    n = draw(st.integers(min_events, max_events))
    num_nodes = draw(st.integers(1, 8))
    node = st.integers(0, num_nodes - 1)
    gaps = draw(st.lists(st.sampled_from([0, 0, 1, 3]), min_size=n, max_size=n))
    t, events = draw(st.integers(-5, 5)), []
    for gap in gaps:
        t += gap
        events.append((draw(node), draw(node), float(t)))
    return events


def as_stream(events: list[Event], isolated: int = 2, *, directed: bool = False) -> EventStream:
    """The tuples as an EventStream with some further nodes that have no event."""
    src, dst, t = (torch.tensor(column) for column in zip(*events, strict=True))
    num_nodes = int(max(src.max(), dst.max())) + 1 + isolated
    return EventStream(src, dst, t.double(), num_nodes=num_nodes, directed=directed)
