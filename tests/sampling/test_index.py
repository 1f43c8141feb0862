import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pres
from pres.data.incidence import check_key_range, incidences
from pres.data.stream import EventStream
from pres.errors import IndexOverflowError, OptionError
from pres.sampling import Neighbours, TemporalIndex
from pres.sampling import index as index_module
from tests.oracles.sampling import Event, history
from tests.streams import as_stream, small_streams


def rows(neighbours: Neighbours) -> list[list[tuple[int, int, float]]]:
    """The unmasked neighbours of each query; checks that they come first and that the rest is 0."""
    found = []
    for i in range(len(neighbours)):
        count = int(neighbours.mask[i].sum())
        assert neighbours.mask[i, :count].all()
        for values in (neighbours.nodes, neighbours.events, neighbours.t):
            assert (values[i, count:] == 0).all()
        found.append(
            [
                (int(neighbours.nodes[i, j]), int(neighbours.events[i, j]), float(neighbours.t[i, j]))
                for j in range(count)
            ]
        )
    return found


def test_landmarks_lead_to_where_a_plain_search_does(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = pres.load("synthetic", num_events=3_000)
    index = TemporalIndex(stream)
    assert len(index._first_landmarks) > 3
    nodes = torch.arange(stream.num_nodes).repeat(40)
    cutoffs = torch.arange(len(nodes)) * 37 % (len(stream) + 1)
    wanted = index.counts(nodes, cutoffs)
    monkeypatch.setattr(index_module, "_SEARCHED_AT_ONCE", 0)
    assert torch.equal(index.counts(nodes, cutoffs), wanted)
    tiny = TemporalIndex(stream[:1])
    assert tiny.counts(torch.tensor([0, int(stream.src[0])]), torch.tensor([1, 1])).tolist() == [
        int(stream.src[0] == 0),
        1,
    ]


@given(events=small_streams(), k=st.integers(1, 6), direction=st.sampled_from(["both", "out", "in"]))
def test_recent_neighbours_equal_the_loop_at_any_time(events: list[Event], k: int, direction: str) -> None:
    stream = as_stream(events)
    index = TemporalIndex(stream, direction)  # type: ignore[arg-type]
    times = sorted({t for *_, t in events} | {events[0][2] - 1, events[-1][2] + 1, events[0][2] + 0.5})
    queries = [(node, t) for node in range(stream.num_nodes) for t in times]
    nodes = torch.tensor([node for node, _ in queries])
    cutoffs = index.cutoff_at(torch.tensor([t for _, t in queries]))
    expected = [history(events, node, t, direction=direction) for node, t in queries]
    assert rows(index.recent(nodes, cutoffs, k)) == [found[:k] for found in expected]
    assert index.counts(nodes, cutoffs).tolist() == [len(found) for found in expected]


@given(events=small_streams(), start=st.integers(0, 39), size=st.integers(1, 10), k=st.integers(1, 4))
def test_no_query_sees_its_own_time_or_later_under_either_visibility(
    events: list[Event], start: int, size: int, k: int
) -> None:
    stream = as_stream(events)
    batch = stream[start : start + size]
    index = TemporalIndex(stream)
    for visibility in ("fresh", "batch"):
        cutoffs = index.cutoffs(batch, visibility)
        before = start if visibility == "batch" else None
        for nodes in (batch.src, batch.dst):
            expected = [
                history(events, int(node), float(t), before)[:k]
                for node, t in zip(nodes, batch.t, strict=True)
            ]
            found = rows(index.recent(nodes, cutoffs, k))
            assert found == expected
            for t, neighbours in zip(batch.t.tolist(), found, strict=True):
                assert all(at < t for *_, at in neighbours)


@given(events=small_streams(), k=st.integers(1, 5), seed=st.integers(-(2**70), 2**70))
def test_uniform_neighbours_are_distinct_events_of_the_history(
    events: list[Event], k: int, seed: int
) -> None:
    stream = as_stream(events)
    index = TemporalIndex(stream)
    cutoffs = index.cutoffs(stream)
    found = rows(index.uniform(stream.src, cutoffs, k, seed))
    for (src, _, t), neighbours in zip(events, found, strict=True):
        everything = history(events, src, t)
        assert len(neighbours) == min(k, len(everything))
        assert set(neighbours) <= set(everything)
        assert [event for _, event, _ in neighbours] == sorted({e for _, e, _ in neighbours}, reverse=True)
    again = index.uniform(stream.src.flip(0), cutoffs.flip(0), k, seed)
    assert rows(again) == found[::-1]  # a draw depends on the query, not on its place among others


def test_uniform_neighbours_are_uniform_over_subsets() -> None:
    stream = as_stream([(0, node, float(node)) for node in range(1, 7)])
    index = TemporalIndex(stream)
    draws = 30_000
    counts: dict[tuple[int, ...], int] = {}
    query = (torch.tensor([0]), index.cutoff_at(torch.tensor([5.0])))  # 4 earlier neighbours, 6 pairs of them
    for seed in range(draws // 10):
        pair = tuple(index.uniform(*query, 2, seed).nodes[0].tolist())
        counts[pair] = counts.get(pair, 0) + 1
    expected = draws / 10 / 6
    chi_squared = sum((count - expected) ** 2 / expected for count in counts.values())
    assert len(counts) == 6
    assert chi_squared < 20.5  # the 0.999 quantile at 5 degrees of freedom


@given(events=small_streams(), strategy=st.sampled_from(["recent", "uniform"]))
def test_hops_ask_each_neighbour_strictly_before_the_event_that_made_it_one(
    events: list[Event], strategy: str
) -> None:
    stream = as_stream(events)
    index = TemporalIndex(stream)
    find = index.recent if strategy == "recent" else index.uniform
    first = find(stream.dst, index.cutoffs(stream), 3)
    second = find(first.nodes.flatten(), index.before(first.events.flatten()), 2)
    third = find(second.nodes.flatten(), index.before(second.events.flatten()), 2)
    assert (len(first), len(second), len(third)) == (len(events), 3 * len(events), 6 * len(events))
    for above, below in ((first, second), (second, third)):
        flat = [cell for line in padded(above) for cell in line]
        for cell, found in zip(flat, rows(below), strict=True):
            everything = [] if cell is None else history(events, cell[0], cell[2])
            if strategy == "recent":
                assert found == everything[: below.mask.shape[1]]
            else:
                assert set(found) <= set(everything)
                assert len(found) == min(below.mask.shape[1], len(everything))


def padded(neighbours: Neighbours) -> list[list[tuple[int, int, float] | None]]:
    k = neighbours.mask.shape[1]
    return [[*line, *[None] * (k - len(line))] for line in rows(neighbours)]


def test_a_node_without_events_and_a_first_event_have_no_neighbours() -> None:
    stream = as_stream([(0, 1, 1.0), (0, 2, 1.0), (1, 2, 2.0)], isolated=3)
    index = TemporalIndex(stream)
    assert not index.recent(torch.tensor([3, 4, 5]), torch.tensor([3, 3, 3]), 4).mask.any()
    assert not index.recent(stream.src[:2], index.cutoffs(stream[:2]), 4).mask.any()


def test_a_self_loop_is_one_neighbour() -> None:
    stream = as_stream([(1, 1, 1.0), (1, 0, 2.0)])
    found = TemporalIndex(stream).recent(torch.tensor([1]), torch.tensor([1]), 3)
    assert rows(found) == [[(1, 0, 1.0)]]


def test_a_directed_stream_shows_destinations_to_sources_only() -> None:
    stream = as_stream([(0, 1, 1.0), (1, 2, 2.0)], directed=True)
    index = TemporalIndex(stream)
    assert index.direction == "out"
    found = rows(index.recent(torch.tensor([0, 1, 2]), torch.full((3,), 2), 2))
    assert found == [[(1, 0, 1.0)], [(2, 1, 2.0)], []]


def test_integer_times_are_compared_exactly() -> None:
    late = 1_700_000_000_000_000_000
    stream = EventStream(
        torch.tensor([0, 0, 0]), torch.tensor([1, 2, 3]), torch.tensor([late, late + 1, late + 2])
    )
    index = TemporalIndex(stream)
    assert index.cutoff_at(torch.tensor([late, late + 1, late + 2, late + 3])).tolist() == [0, 1, 2, 3]
    whole = EventStream(torch.tensor([0, 0]), torch.tensor([1, 2]), torch.tensor([5, 7]))
    assert TemporalIndex(whole).cutoff_at(torch.tensor([5.0, 5.5, 7.0, 7.1])).tolist() == [0, 1, 1, 2]


def test_keys_are_64_bit_even_when_nodes_times_events_are_not_32_bit() -> None:
    n, num_nodes = 1_000, 2**40
    src = torch.full((n,), num_nodes - 2)
    entries = incidences(src, src + 1, num_nodes)
    assert bool((entries.keys[1:] > entries.keys[:-1]).all())
    assert entries.events.tolist() == [*range(n), *range(n)]


def test_keys_that_cannot_fit_are_refused() -> None:
    with pytest.raises(IndexOverflowError, match=r"4,294,967,296 nodes x 2,147,483,648 events"):
        check_key_range(2**32, 2**31)
    check_key_range(2**31, 2**31)


def test_bad_questions_get_clear_errors() -> None:
    stream = as_stream([(0, 1, 1.0), (1, 2, 2.0)])
    index = TemporalIndex(stream)
    with pytest.raises(OptionError, match="k=0"):
        index.recent(stream.src, index.cutoffs(stream), 0)
    with pytest.raises(OptionError, match=r"visibility='frech'.*Did you mean 'fresh'"):
        index.cutoffs(stream, "frech")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="whole stream"):
        TemporalIndex(stream[1:])


def test_questions_about_other_events_are_refused() -> None:
    stream = as_stream([(0, 1, float(i)) for i in range(6)])
    other = as_stream([(0, 1, 100.0 + i) for i in range(6)])
    index = TemporalIndex(stream)
    node, ok = torch.tensor([0]), torch.tensor([3])
    for nodes, cutoffs, message in (
        (node, torch.tensor([7]), "cutoff 7 is not between 0 and 6"),
        (node, torch.tensor([-1]), "cutoff -1"),
        (torch.tensor([4]), ok, "node 4 is not between 0 and 3"),
        (torch.tensor([-1]), ok, "node -1"),
        (node, torch.tensor([3.0]), "integers"),
        (node, torch.tensor([3, 3]), "one of each"),
    ):
        for ask in (index.recent, index.uniform):
            with pytest.raises(OptionError, match=message):
                ask(nodes, cutoffs, 2)
        with pytest.raises(OptionError, match=message):
            index.counts(nodes, cutoffs)
    with pytest.raises(OptionError, match="knows only 4 events"):
        TemporalIndex(stream[:4]).cutoffs(stream[3:5])
    with pytest.raises(OptionError, match="not cut from the stream"):
        index.cutoffs(other[2:4])
    with pytest.raises(OptionError, match="NaN"):
        index.cutoff_at(torch.tensor([float("nan")]))


def test_infinite_times_see_nothing_or_everything() -> None:
    infinities = torch.tensor([-torch.inf, torch.inf])
    for t in (torch.tensor([5, 7]), torch.tensor([5.0, 7.0])):
        stream = EventStream(torch.tensor([0, 0]), torch.tensor([1, 2]), t)
        assert TemporalIndex(stream).cutoff_at(infinities).tolist() == [0, 2]


def test_float_times_are_compared_in_64_bits() -> None:
    t = torch.tensor([1e9, 1e9 + 0.25, 1e9 + 0.5], dtype=torch.float64)
    index = TemporalIndex(EventStream(torch.tensor([0, 0, 0]), torch.tensor([1, 2, 3]), t))
    assert index.cutoff_at(t).tolist() == [0, 1, 2]


def test_queries_of_any_integer_type_and_plain_lists_are_understood() -> None:
    n = 70_000  # nodes times events exceed 32 bits
    stream = EventStream(torch.arange(n) % 50_000, torch.full((n,), n), torch.arange(n), num_nodes=n + 1)
    index = TemporalIndex(stream)
    nodes, cutoffs = stream.src[-100:], torch.full((100,), n)
    expected = index.recent(nodes, cutoffs, 2)
    found = index.recent(nodes.int(), cutoffs.int(), 2)
    assert bool(expected.mask.any()) and torch.equal(found.events, expected.events)
    assert torch.equal(index.recent(nodes.tolist(), cutoffs.tolist(), 2).events, expected.events)  # type: ignore[arg-type]


def test_what_an_index_returns_can_be_written_to() -> None:
    stream = as_stream([(0, 1, float(i)) for i in range(6)])
    index = TemporalIndex(stream)
    index.cutoffs(stream).add_(100)
    assert index.cutoffs(stream).tolist() == [0, 1, 2, 3, 4, 5]
