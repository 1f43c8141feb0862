"""An index that has grown answers as one that is built anew, and sorts few events twice."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pres
from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.sampling import Neighbours, TemporalIndex, growing
from pres.sampling.growing import GrownIndex, Segment, grown
from pres.sampling.index import Direction
from tests.oracles.sampling import Event
from tests.streams import as_stream, small_streams


@pytest.fixture(autouse=True, scope="module")
def small_segments() -> Iterator[None]:
    """Keep segments of a single event, so that short streams have many."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(growing, "SMALL", 1)
        yield


def beginning(stream: EventStream, stop: int) -> EventStream:
    """The first events as a stream of its own, which knows no node that comes later."""
    part = stream[:stop]
    nodes = int(torch.cat([part.src, part.dst]).max()) + 1
    return EventStream(part.src, part.dst, part.t, num_nodes=nodes, directed=stream.directed)


def built_in_steps(stream: EventStream, cuts: list[int], direction: Direction | None = None) -> TemporalIndex:
    index = TemporalIndex(beginning(stream, cuts[0]), direction)
    for cut in cuts[1:]:
        index = grown(index, beginning(stream, cut))
    return index


def same(found: Neighbours, expected: Neighbours) -> bool:
    return all(
        torch.equal(getattr(found, name), getattr(expected, name))
        for name in ("nodes", "events", "t", "mask")
    )


@given(
    events=small_streams(min_events=2),
    steps=st.lists(st.integers(1, 39), max_size=12),
    k=st.integers(1, 6),
    direction=st.sampled_from(["both", "out", "in"]),
    seed=st.integers(0, 9),
)
def test_a_grown_index_answers_as_one_built_anew(
    events: list[Event], steps: list[int], k: int, direction: Direction, seed: int
) -> None:
    stream = as_stream(events)
    cuts = [*sorted({step for step in steps if step < len(stream)}), len(stream)]
    index = grown(built_in_steps(stream, cuts, direction), stream)
    anew = TemporalIndex(stream, direction)
    nodes = torch.arange(stream.num_nodes).repeat(len(stream) + 1)
    cutoffs = torch.arange(len(stream) + 1).repeat_interleave(stream.num_nodes)
    assert torch.equal(index.counts(nodes, cutoffs), anew.counts(nodes, cutoffs))
    assert same(index.recent(nodes, cutoffs, k), anew.recent(nodes, cutoffs, k))
    assert same(index.uniform(nodes, cutoffs, k, seed), anew.uniform(nodes, cutoffs, k, seed))
    assert torch.equal(index.cutoffs(stream), anew.cutoffs(stream))
    assert torch.equal(index.cutoff_at(stream.t), anew.cutoff_at(stream.t))
    every = torch.arange(len(stream))
    assert torch.equal(index.before(every), anew.before(every))


@given(events=small_streams(min_events=3), middle=st.integers(1, 39))
def test_an_index_that_others_grow_from_stays_as_it_is(events: list[Event], middle: int) -> None:
    stream = as_stream(events)
    middle = min(middle, len(stream) - 1)
    src, dst = (torch.cat([of[:middle], of.flip(0) + 5]) for of in (stream.src, stream.dst))
    t = torch.cat([stream.t[:middle], stream.t - stream.t[0] + stream.t[-1]])
    other = EventStream(src, dst, t, num_nodes=20)
    index = built_in_steps(stream, [1, middle] if middle > 1 else [1])
    for longer in (stream, other, stream):
        found, anew = grown(index, longer), TemporalIndex(longer)
        assert torch.equal(found.cutoffs(longer), anew.cutoffs(longer))
        nodes, end = torch.arange(longer.num_nodes), torch.full((longer.num_nodes,), len(longer))
        assert same(found.recent(nodes, end, 5), anew.recent(nodes, end, 5))
    known, anew = torch.arange(index.num_nodes), TemporalIndex(beginning(stream, middle))
    end = torch.full((len(known),), middle)
    assert same(index.recent(known, end, 5), anew.recent(known, end, 5))
    assert torch.equal(index.cutoffs(stream[:middle]), anew.cutoffs(stream[:middle]))


def test_a_node_without_events_is_known_as_soon_as_the_stream_has_it() -> None:
    stream = as_stream([(0, 1, 1.0), (0, 2, 2.0)], isolated=0)
    more = EventStream(stream.src, stream.dst, stream.t, num_nodes=9)
    index = grown(TemporalIndex(stream), more)
    assert isinstance(index, GrownIndex) and not index.segments
    assert index.counts(torch.tensor([0, 8]), torch.tensor([2, 2])).tolist() == [2, 0]
    assert grown(index, more) is index


def test_every_event_is_sorted_a_logarithmic_number_of_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted, not timed: 4,000 events behind 8,000, one, ten or a hundred at a time."""
    monkeypatch.setattr(growing, "SMALL", 16)
    stream = pres.load("synthetic", num_events=12_000)
    begun = TemporalIndex(stream[:8_000])
    of, sizes = Segment.of, []

    def counted(events: EventStream, begin: int, direction: Direction) -> Segment:
        sizes.append(len(events) - begin)
        return of(events, begin, direction)

    monkeypatch.setattr(Segment, "of", counted)
    for step, at_most in (1, 20), (10, 11), (100, 7), (4_000, 1):
        index, sizes[:] = begun, []
        for start, stop in pairwise(range(8_000, 12_001, step)):
            index = grown(index, stream[:stop])
            assert isinstance(index, GrownIndex) and len(index.segments) <= 13, start
        assert sum(sizes) <= at_most * 4_000
    assert len(stream[:8_000]) == begun.num_events


def test_a_base_is_built_anew_when_the_stream_has_grown_by_half_of_it() -> None:
    stream = pres.load("synthetic", num_events=3_000)
    index = TemporalIndex(stream[:1_000])
    kinds = []
    for stop in range(1_100, 3_001, 100):
        index = grown(index, stream[:stop])
        kinds.append(type(index) is TemporalIndex)
    assert 1 <= sum(kinds) <= 4


def test_what_is_no_longer_stream_is_refused() -> None:
    stream = as_stream([(0, 1, float(i)) for i in range(6)])
    index = TemporalIndex(stream[:4])
    with pytest.raises(OptionError, match="more events than before"):
        grown(index, stream[:3])
    with pytest.raises(OptionError, match="more events than before"):
        grown(index, stream[1:])
    with pytest.raises(OptionError, match="not cut from the stream"):
        grown(index, as_stream([(0, 1, 10.0 + i) for i in range(6)]))
