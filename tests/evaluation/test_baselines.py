import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.evaluation.baselines import EdgeBank, Popularity
from pres.evaluation.link import evaluate
from pres.sampling import NegativeSampler, TemporalBatches
from tests.oracles.sampling import Event
from tests.streams import as_stream, small_streams


def negatives_for(batch: EventStream, count: int = 3) -> torch.Tensor:
    """Any nodes will do: a scorer does not care how they were drawn."""
    generator = torch.Generator().manual_seed(batch.offset)
    return torch.randint(0, batch.num_nodes, (len(batch), count), generator=generator)


@given(small_streams(), st.integers(1, 9), st.booleans(), st.sampled_from([None, 0, 2, 2.5, 7]))
def test_edgebank_equals_a_set_of_pairs(
    events: list[Event], size: int, directed: bool, window: float | None
) -> None:
    stream = as_stream(events, directed=directed)
    bank = EdgeBank(stream, window)
    for batch in TemporalBatches(stream, size):
        drawn = negatives_for(batch)
        past = events[: batch.offset]
        if window is not None and past:
            past = [event for event in past if event[2] >= past[-1][2] - window]
        pairs = {(s, d) for s, d, _ in past}
        if not directed:
            pairs |= {(d, s) for s, d in pairs}
        positive, negative = bank.score(batch, drawn)
        assert positive.tolist() == [float((e.src, e.dst) in pairs) for e in batch]
        assert negative.tolist() == [
            [float((e.src, node) in pairs) for node in own]
            for e, own in zip(batch, drawn.tolist(), strict=True)
        ]
        bank.update_state(batch)


@given(small_streams(), st.integers(1, 9), st.booleans(), st.sampled_from([0.5, 3.0, 1_000.0]))
def test_popularity_equals_a_sum_over_the_past(
    events: list[Event], size: int, directed: bool, half_life: float
) -> None:
    stream = as_stream(events, directed=directed)
    popularity = Popularity(stream, half_life)

    def count(node: int, before: int) -> float:
        ends = [({d} if directed else {s, d}) for s, d, _ in events[:before]]
        return math.fsum(0.5 ** ((before - i) / half_life) for i, end in enumerate(ends) if node in end)

    never = -len(events) / half_life - 1
    for batch in TemporalBatches(stream, size):
        drawn = negatives_for(batch)
        positive, negative = popularity.score(batch, drawn)
        nodes = batch.dst.tolist() + drawn.flatten().tolist()
        for node, score in zip(nodes, positive.tolist() + negative.flatten().tolist(), strict=True):
            expected = count(node, batch.offset)
            assert score == pytest.approx(math.log2(expected) if expected else never, abs=1e-9)
            assert not expected or score > never
        popularity.update_state(batch)


def test_a_long_past_can_be_absorbed_at_once_and_does_not_vanish() -> None:
    n = 5_000
    stream = EventStream(torch.arange(n) % 3, 3 + (torch.arange(n) > 0).long(), torch.arange(n), num_nodes=6)
    at_once, in_parts = Popularity(stream, half_life=2), Popularity(stream, half_life=2)
    at_once.update_state(stream[:4_990])
    for batch in TemporalBatches(stream[:4_990], 100):
        in_parts.update_state(batch)
    last, candidates = stream[4_990:4_991], torch.tensor([[3, 4, 5]])
    found = at_once.score(last, candidates)[1][0]
    torch.testing.assert_close(found, in_parts.score(last, candidates)[1][0])
    # node 3 occurred once, 2,495 half-lives ago: 2 ** -2495 is no float64; node 5 never did
    assert found[0].item() == pytest.approx(-4_990 / 2)
    assert found[1] > found[0] > found[2]


def test_a_window_is_exact_for_large_integer_times() -> None:
    start = 1_700_000_000_000_000_000
    t = torch.tensor([start, start + 1, start + 1_000_000_001, start + 1_000_000_002])
    dst = torch.tensor([3, 3, 3, 3])
    for source, remembered in ((0, 0.0), (1, 1.0)):  # one unit too long ago; just within the window
        stream = EventStream(torch.tensor([0, 1, 2, source]), dst, t, num_nodes=4)
        for window in (1_000_000_000, 1e9):
            bank = EdgeBank(stream, window)
            bank.update_state(stream[:3])
            assert bank.score(stream[3:], torch.tensor([[3]]))[0].tolist() == [remembered]


def test_what_a_baseline_knows_does_not_depend_on_later_events() -> None:
    src, dst, t = torch.tensor([0, 1, 0, 2]), torch.tensor([3, 4, 4, 3]), torch.arange(4)
    stream = EventStream(src, dst, t, num_nodes=6)
    other = EventStream(torch.tensor([0, 1, 2, 1]), torch.tensor([3, 4, 5, 5]), t, num_nodes=6)
    candidates = torch.tensor([[3, 4, 5]])
    for make in (EdgeBank, lambda events: EdgeBank(events, 1), Popularity):
        scores = []
        for events in (stream, other):
            scorer = make(events)
            scorer.update_state(events[:2])
            asked = EventStream(src[:3], dst[:3], t[:3], num_nodes=6)[2:]
            scores.append(scorer.score(asked, candidates)[1].tolist())
        assert scores[0] == scores[1]


@pytest.mark.parametrize("make", [EdgeBank, Popularity])
def test_a_baseline_starts_again_after_a_reset(make: type[EdgeBank] | type[Popularity]) -> None:
    stream = as_stream([(i % 3, 3 + i % 4, float(i)) for i in range(40)], isolated=30)
    sampler, scorer = NegativeSampler(stream, pool="nodes"), make(stream)
    scorer.update_state(stream[:20])
    first = evaluate(scorer, stream[20:], sampler, batch_size=6)
    assert scorer.position == 40
    scorer.reset()
    cold = evaluate(scorer, stream, sampler, batch_size=6)
    scorer.reset()
    scorer.update_state(stream[:20])
    assert evaluate(scorer, stream[20:], sampler, batch_size=6) == first
    assert cold.events == 40


@pytest.mark.parametrize("make", [EdgeBank, Popularity])
def test_a_gap_or_a_repetition_is_one_clear_line(make: type[EdgeBank] | type[Popularity]) -> None:
    stream = as_stream([(0, 1, float(i)) for i in range(10)])
    scorer = make(stream)
    scorer.update_state(stream[:4])
    for batch in (stream[5:], stream[:4]):
        with pytest.raises(OptionError, match=f"has taken in 4 events, .* event {batch.offset}"):
            scorer.score(batch, negatives_for(batch))
        with pytest.raises(OptionError, match="has taken in 4 events"):
            scorer.update_state(batch)
    with pytest.raises(OptionError, match="whole stream"):
        make(stream[2:])


def test_a_window_and_a_half_life_that_make_no_sense_are_refused() -> None:
    stream = as_stream([(0, 1, 0.0), (1, 2, 1.0)])
    for window in (-1, float("nan"), float("inf")):
        with pytest.raises(OptionError, match="window="):
            EdgeBank(stream, window)
    for half_life in (0, -1.0, float("nan")):
        with pytest.raises(OptionError, match="half_life="):
            Popularity(stream, half_life)
