import dataclasses

import pytest
import torch
from hypothesis import given

import pres
from pres.data import summary
from pres.data.info import StreamInfo
from pres.data.stream import EventStream
from tests.oracles import summary as oracle
from tests.oracles.sampling import Event
from tests.streams import as_stream, small_streams


@given(small_streams())
def test_summary_equals_counting_one_by_one(events: list[Event]) -> None:
    found = dataclasses.asdict(as_stream(events).summary())
    for name, expected in oracle.summary(events).items():
        assert found[name] == pytest.approx(expected), name


def test_summary_of_a_stream_known_by_hand() -> None:
    events = EventStream(
        src=torch.tensor([0, 1, 0, 2, 0]),
        dst=torch.tensor([1, 2, 1, 2, 3]),
        t=torch.tensor([10, 10, 30, 30, 30]),
        x=torch.zeros(5, 7),
        categories=torch.tensor([[0], [1], [2], [1], [0]]),
        label=torch.tensor([0, 1, 0, 2, 0]),
        node_x=torch.zeros(6, 3),
        num_nodes=6,
    )
    s = events.summary()
    assert (s.events, s.nodes, s.active_src, s.active_dst) == (5, 6, 3, 3)
    assert (s.edge_features, s.categorical_features, s.node_features) == (7, 1, 3)
    assert (s.first_t, s.last_t, s.distinct_t, s.most_events_at_one_t) == (10, 30, 2, 3)
    assert (s.self_loops, s.distinct_pairs) == (1, 4) and s.repeated_share == pytest.approx(0.2)
    assert s.most_events_of_a_node == 3
    # node 0: 10, 30, 30; node 1: 10, 10, 30; node 2: 10, 30
    assert s.mean_gap == pytest.approx((20 + 0 + 0 + 20 + 20) / 5)
    assert s.positives == 2


def test_the_mean_gap_is_found_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    events = pres.load("synthetic", num_events=500)
    wanted = float(summary.gaps_of_nodes(events.src, events.dst, events.t, events.num_nodes).double().mean())
    for at_once in (1, 7, 500):
        monkeypatch.setattr(summary, "_AT_ONCE", at_once)
        assert events.mean_gap() == wanted


def test_summary_of_an_empty_slice_and_of_a_stream_without_labels() -> None:
    events = EventStream(torch.tensor([0, 1]), torch.tensor([1, 0]), torch.tensor([1, 2]))
    assert events.summary().positives is None
    empty = events[1:1].summary()
    assert (empty.events, empty.nodes, empty.distinct_t, empty.mean_gap) == (0, 2, 0, 0.0)


def test_a_person_can_read_a_stream() -> None:
    events = EventStream(
        src=torch.tensor([0, 1, 1]),
        dst=torch.tensor([2, 3, 2]),
        t=torch.tensor([1_700_000_000, 1_700_000_100, 1_702_592_000]),
        x=torch.zeros(3, 4),
        categories=torch.tensor([[0], [1], [0]]),
        label=torch.tensor([0, 0, 1]),
        num_src=2,
        info=StreamInfo(
            "clicks", "featureless", "s", category_names=("kind",), category_levels=(("a", "b"),)
        ),
    )
    assert repr(events).splitlines() == [
        "EventStream 'clicks (featureless)': 3 events, 4 nodes (2 sources → 2 destinations, undirected)",
        "  t         2023-11-14 22:13:20 … 2023-12-14 22:13:20 (1,700,000,000 … 1,702,592,000 s), "
        "spanning 30.0 days",
        "  features  4 per event, 'kind' (2 categories)",
        "  labels    one per event",
    ]
    assert repr(events[1:]).splitlines()[-1] == "  events    1 … 2 of the whole stream"


def test_the_repr_of_a_bare_stream_and_of_an_empty_slice() -> None:
    events = EventStream(torch.tensor([0, 1]), torch.tensor([1, 0]), torch.tensor([0.5, 2.0]), directed=True)
    assert repr(events).splitlines() == [
        "EventStream 'events': 2 events, 2 nodes (directed)",
        "  t         0.5 … 2.0",
        "  features  none",
        "  labels    none",
    ]
    assert repr(events[2:]).splitlines()[0] == "EventStream 'events': 0 events, 2 nodes (directed)"


def test_the_mean_gap_of_many_long_lives_in_nanoseconds_does_not_overflow() -> None:
    year, nodes = 365 * 86_400 * 10**9, 1_000
    src = torch.arange(nodes).repeat(2)
    t = torch.cat([torch.zeros(nodes, dtype=torch.int64), torch.full((nodes,), year)])
    events = EventStream(src, torch.full_like(src, nodes), t)
    gaps = nodes + 2 * nodes - 1  # one of each source, and those of their common partner
    assert events.mean_gap() == pytest.approx((nodes * year + year) / gaps)
