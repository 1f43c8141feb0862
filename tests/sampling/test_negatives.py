from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pres.errors import NoNegativeError, OptionError
from pres.sampling import NegativeSampler, TemporalBatches, negatives
from tests.oracles.sampling import Event, allowed_negatives
from tests.streams import as_stream, small_streams

STRATEGIES = ["random", "historical", "inductive"]


@given(
    events=small_streams(min_events=4),
    strategy=st.sampled_from(STRATEGIES),
    directed=st.booleans(),
    cut=st.tuples(st.integers(0, 30), st.integers(1, 8)),
    pool=st.sampled_from(["destinations", "train", "nodes"]),
    train_end=st.integers(1, 20),
    seed=st.integers(0, 5),
)
def test_negatives_lie_where_the_loop_says_they_may(
    events: list[Event],
    strategy: str,
    directed: bool,
    cut: tuple[int, int],
    pool: str,
    train_end: int,
    seed: int,
) -> None:
    stream = as_stream(events, directed=directed)
    start = min(cut[0], len(events) - 1)
    stop = min(start + cut[1], len(events))
    train_end = min(train_end, len(events))
    pools = {
        "destinations": {dst for _, dst, _ in events},
        "train": {dst for _, dst, _ in events[:train_end]},
        "nodes": set(range(stream.num_nodes)),
    }
    allowed = [
        allowed_negatives(
            events,
            start,
            stop,
            i,
            strategy=strategy,
            pool=pools[pool],
            directed=directed,
            train_end=train_end,
        )
        for i in range(start, stop)
    ]
    sampler = NegativeSampler(stream, strategy, pool=pool, train_end=train_end)  # type: ignore[arg-type]
    assert set(sampler.pool.tolist()) == pools[pool]
    if not all(nodes for nodes, _ in allowed):
        with pytest.raises(NoNegativeError, match="no negative is left"):
            sampler.sample(stream[start:stop], 3, seed)
        return
    found = sampler.sample(stream[start:stop], 3, seed)
    for (nodes, fell_back), drawn, fallback in zip(allowed, found.nodes, found.fallback, strict=True):
        assert set(drawn.tolist()) <= nodes
        assert fallback.tolist() == [fell_back] * 3


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_every_allowed_destination_is_equally_likely(strategy: str) -> None:
    met = [(0, node, float(node)) for node in range(1, 9)]
    events = [*met, (0, 3, 20.0), (0, 5, 21.0), (9, 10, 22.0), (9, 11, 22.0)]
    stream = as_stream(events, isolated=0)
    sampler = NegativeSampler(stream, strategy, train_end=4)  # type: ignore[arg-type]
    batch = stream[8:10]
    drawn = sampler.sample(batch, 20_000).nodes
    allowed, _ = allowed_negatives(
        events, 8, 10, 8, strategy=strategy, pool=set(sampler.pool.tolist()), directed=False, train_end=4
    )
    assert len(allowed) > 2
    for column in drawn:
        counts = Counter(column.tolist())
        expected = 20_000 / len(allowed)
        assert set(counts) == allowed
        assert sum((count - expected) ** 2 / expected for count in counts.values()) < 29.6  # 0.999 at 10 df


@given(events=small_streams(min_events=6), size=st.integers(1, 6), strategy=st.sampled_from(STRATEGIES))
def test_draws_do_not_depend_on_the_order_or_the_number_of_calls(
    events: list[Event], size: int, strategy: str
) -> None:
    stream = as_stream(events, isolated=60)
    sampler = NegativeSampler(stream, strategy, pool="nodes", train_end=2)  # type: ignore[arg-type]
    starts = range(0, len(events), size)
    forward = {start: sampler.sample(stream[start : start + size], 2, 7).nodes for start in starts}
    fresh = NegativeSampler(stream, strategy, pool="nodes", train_end=2)  # type: ignore[arg-type]
    for start in reversed(starts):
        assert torch.equal(fresh.sample(stream[start : start + size], 2, 7).nodes, forward[start])


def test_draws_do_not_depend_on_how_many_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = as_stream([(i % 5, 5 + i % 7, i) for i in range(60)])
    whole = NegativeSampler(stream, pool="nodes")
    expected = [whole.sample(stream[i : i + 4], seed=1).nodes for i in range(0, 60, 4)]
    monkeypatch.setattr(negatives, "DRAWN_AT_ONCE", 10)  # no multiple of the batch, and again in the middle
    piecewise = NegativeSampler(stream, pool="nodes")
    for i, nodes in zip(range(0, 60, 4), expected, strict=True):
        assert torch.equal(piecewise.sample(stream[i : i + 4], seed=1).nodes, nodes)


@given(
    events=small_streams(min_events=12),
    strategy=st.sampled_from(STRATEGIES),
    directed=st.booleans(),
    b=st.integers(1, 5),
)
def test_batches_drawn_for_together_are_those_drawn_for_alone(
    events: list[Event], strategy: str, directed: bool, b: int
) -> None:
    stream = as_stream(events, directed=directed)
    sampler = NegativeSampler(stream, strategy, pool="nodes", train_end=4)  # type: ignore[arg-type]
    num_batches = len(events) // b
    found = sampler.sample(stream[: num_batches * b], count=2, seed=3, num_batches=num_batches)
    for turn in range(num_batches):
        own = slice(turn * b, turn * b + b)
        alone = sampler.sample(stream[own], count=2, seed=3)
        assert torch.equal(found.nodes[own], alone.nodes)
        assert torch.equal(found.fallback[own], alone.fallback)


@given(
    events=small_streams(min_events=12),
    strategy=st.sampled_from(STRATEGIES),
    directed=st.booleans(),
    b=st.integers(2, 6),
    window=st.integers(1, 7),
)
def test_windows_of_batches_are_drawn_for_as_if_each_were_a_batch(
    events: list[Event], strategy: str, directed: bool, b: int, window: int
) -> None:
    stream = as_stream(events, directed=directed)
    sampler = NegativeSampler(stream, strategy, pool="nodes", train_end=4)  # type: ignore[arg-type]
    num_batches = len(events) // b
    found = sampler.sample(stream[: num_batches * b], count=2, seed=3, num_batches=num_batches, window=window)
    for turn in range(num_batches):
        for first in range(0, b, window):
            own = slice(turn * b + first, turn * b + min(first + window, b))
            alone = sampler.sample(stream[own], count=2, seed=3)
            assert torch.equal(found.nodes[own], alone.nodes)
            assert torch.equal(found.fallback[own], alone.fallback)


def test_a_window_avoids_whom_a_source_meets_in_it_and_nobody_else() -> None:
    stream = as_stream([(0, 1 + i % 4, float(i)) for i in range(8)])
    sampler = NegativeSampler(stream)  # the pool: 1, 2, 3, 4
    with pytest.raises(NoNegativeError, match="window of 8"):
        sampler.sample(stream)
    with pytest.raises(NoNegativeError, match="window of 4"):
        sampler.check(TemporalBatches(stream, 8), window=4)
    sampler.check(TemporalBatches(stream, 8), window=2)
    nodes = sampler.sample(stream, count=40, window=2).nodes
    assert [set(row.tolist()) for row in nodes] == [{3, 4}, {3, 4}, {1, 2}, {1, 2}] * 2
    with pytest.raises(OptionError, match="window=0"):
        sampler.sample(stream, window=0)


def test_another_seed_gives_other_negatives() -> None:
    stream = as_stream([(0, 1, float(i)) for i in range(50)], isolated=1000)
    sampler = NegativeSampler(stream, pool="nodes")
    assert not torch.equal(sampler.sample(stream, seed=0).nodes, sampler.sample(stream, seed=1).nodes)


def test_the_pool_can_be_given_and_is_checked() -> None:
    stream = as_stream([(0, 1, 1.0), (0, 2, 2.0)], isolated=7)
    sampler = NegativeSampler(stream, pool=torch.tensor([8, 5, 5]))
    assert set(sampler.sample(stream, 50).nodes.flatten().tolist()) == {5, 8}
    with pytest.raises(OptionError, match="nodes below 10"):
        NegativeSampler(stream, pool=torch.tensor([3, 10]))
    with pytest.raises(OptionError, match="train_end"):
        NegativeSampler(stream, "inductive")
    with pytest.raises(OptionError, match="count=0"):
        sampler.sample(stream, 0)


def test_a_draw_belongs_to_its_event_whatever_the_batch() -> None:
    events = [(i % 5, 5 + i % 7, float(i)) for i in range(60)]
    stream = as_stream(events, isolated=100_000)  # so many that no first choice occurs in a batch
    sampler = NegativeSampler(stream, pool="nodes")
    whole = sampler.sample(stream, 2, 9).nodes
    for start, stop in ((0, 7), (7, 30), (30, 60)):
        assert torch.equal(sampler.sample(stream[start:stop], 2, 9).nodes, whole[start:stop])


def test_only_refused_first_choices_depend_on_the_batch() -> None:
    events = [(i % 20, 20 + (i * 7) % 40, float(i)) for i in range(400)]
    stream = as_stream(events, isolated=0)
    sampler = NegativeSampler(stream)
    small = torch.cat([sampler.sample(stream[i : i + 20]).nodes for i in range(0, 400, 20)])
    large = torch.cat([sampler.sample(stream[i : i + 100]).nodes for i in range(0, 400, 100)])
    assert float((small == large).double().mean()) > 0.8


def test_a_node_twice_in_the_pool_is_not_twice_as_likely() -> None:
    stream = as_stream([(0, 1, 1.0), (0, 2, 2.0)], isolated=7)
    drawn = NegativeSampler(stream, pool=torch.tensor([8, 5, 5, 5])).sample(stream, 4_000).nodes
    assert abs(float((drawn == 5).double().mean()) - 0.5) < 0.05


def test_other_batches_and_pools_are_refused() -> None:
    stream = as_stream([(0, 1, float(i)) for i in range(6)], isolated=20)
    with pytest.raises(OptionError, match="whole stream"):
        NegativeSampler(stream[2:])
    with pytest.raises(OptionError, match="knows only 4 events"):
        NegativeSampler(stream[:4]).sample(stream[3:5])
    for pool in (torch.ones(22, dtype=torch.bool), torch.tensor([1.5])):
        with pytest.raises(OptionError, match="integer nodes"):
            NegativeSampler(stream, pool=pool)
    for train_end in (-5, 0, 7):
        with pytest.raises(OptionError, match="train_end"):
            NegativeSampler(stream, "inductive", train_end=train_end)
