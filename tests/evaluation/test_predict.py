"""Scores of any pairs: as evaluation gives them, as loops over nodes give them, and of nothing later."""

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from torch import Tensor

import pres
from pres.data.stream import EventStream
from pres.errors import DivergedError, EmptySourceError, OptionError, UnknownIdError
from pres.evaluation.link import link_scores
from pres.evaluation.predict import predict
from pres.models import MDGNN
from pres.sampling import NegativeSampler, TemporalBatches
from pres.training.checkpoint import state_of
from tests.models.conftest import KINDS, make, random_events, stream_of
from tests.oracles.sampling import Event
from tests.oracles.twin import slow_twin

pytestmark = pytest.mark.filterwarnings(
    "ignore::pres.errors.Notice"
)  # times before the stream are meant here


def without_ties(seed: int, n: int = 90) -> EventStream:
    events = random_events(seed=seed, n=n)
    return stream_of([(src, dst, i + t / 7) for i, (src, dst, t) in enumerate(events)])


def random_pairs(events: list[Event], seed: int, count: int = 60) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs at, between, before and after the events."""
    generator = torch.Generator().manual_seed(seed)
    src, dst = torch.randint(0, 12, (2, count), generator=generator)
    first, last = int(events[0][2]), int(events[-1][2])
    t = torch.randint(2 * first - 3, 2 * last + 5, (count,), generator=generator) / 2.0
    return src, dst, t.double()


def slow_scores(
    kind: str, model: MDGNN, events: list[Event], pairs: tuple[Tensor, Tensor, Tensor], b: int, known: int = 0
) -> list[float]:
    """One pair after the other, each with a model of its own that absorbs what it may know."""
    found = []
    for src, dst, t in zip(*(column.tolist() for column in pairs), strict=True):
        before = sum(at < t for _, _, at in events)
        slow = slow_twin(kind, model, events, torch.empty(len(events), 0))
        if before >= known:
            slow.update_state(0, known, model.visibility)
        start = known if before >= known else 0
        while start + b <= before or start < before == len(events):
            slow.update_state(start, min(start + b, len(events)), model.visibility)
            start = min(start + b, len(events))
        logit = slow.score(src, dst, t, start if model.visibility == "batch" else None)
        found.append(1 / (1 + math.exp(-logit)))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("embed", ["event", "node"])
def test_predicting_the_test_part_equals_evaluating_it(kind: str, embed: str) -> None:
    stream = without_ties(seed=1)
    model = make(kind, stream, embed=embed)
    test = stream.split().test
    for batch in TemporalBatches(stream[: test.offset], 13):
        model.update_state(batch)
    found = predict(model, stream, test.src, test.dst, test.t, batch_size=5)
    sampler = NegativeSampler(stream, pool="nodes")
    (scored,) = link_scores(model, test, [sampler], batch_size=5)
    expected = scored.positive.double().sigmoid()
    assert torch.allclose(found.score, expected, atol=1e-6)
    assert not found.new.any() and found.new_nodes == 0
    assert float(found.score.std()) > 0.01


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("visibility", ["fresh", "batch"])
@pytest.mark.parametrize("b", [1, 7, 100])
def test_scores_equal_those_of_a_loop_over_nodes(kind: str, visibility: str, b: int) -> None:
    events = random_events(seed=b, n=40)  # with ties, which a batch may cut
    stream = stream_of(events)
    options: dict[str, Any] = {} if kind == "jodie" else {"visibility": visibility}
    model = make(kind, stream, **options)
    pairs = random_pairs(events, seed=b, count=25)
    found = predict(model, stream, *pairs, batch_size=b).score
    np.testing.assert_allclose(found, slow_scores(kind, model, events, pairs, b), atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_what_lies_behind_the_memory_goes_on_from_it_and_the_rest_from_the_beginning(kind: str) -> None:
    events = random_events(seed=2, n=40)
    stream = stream_of(events)
    model = make(kind, stream)
    model.update_state(stream[:25])  # as one batch: a replay in batches of 6 gives another memory
    pairs = random_pairs(events, seed=3, count=25)
    seen: list[tuple[int, int]] = []
    found = predict(model, stream, *pairs, batch_size=6, on_progress=lambda *step: seen.append(step)).score
    np.testing.assert_allclose(found, slow_scores(kind, model, events, pairs, 6, known=25), atol=1e-9)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})
    assert seen[-1][0] == seen[-1][1] <= 25 + 15
    late = pairs[2] > events[-1][2]
    alone = predict(model, stream, *(column[late] for column in pairs), batch_size=6).score
    assert late.any() and torch.allclose(alone, found[late], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_replayed_for_pairs_after_a_stream_that_the_memory_knows(kind: str) -> None:
    stream = stream_of(random_events(seed=4))
    model = make(kind, stream)
    for batch in TemporalBatches(stream, 9):
        model.update_state(batch)
    steps: list[int] = []
    nodes = torch.arange(9)
    found = predict(model, stream, nodes, nodes.flip(0), on_progress=lambda *step: steps.extend(step))
    assert steps == []
    fresh = make(kind, stream)
    replayed = predict(fresh, stream, nodes, nodes.flip(0), batch_size=9)
    assert torch.allclose(found.score, replayed.score, atol=1e-12)
    just_after = torch.nextafter(stream.t[-1], torch.tensor(math.inf, dtype=torch.float64)).item()
    assert torch.equal(found.score, predict(model, stream, nodes, nodes.flip(0), just_after).score)


@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_rows_does_not_matter_and_equal_rows_score_alike(kind: str) -> None:
    events = random_events(seed=5)
    stream = stream_of(events)
    model = make(kind, stream)
    model.update_state(stream[:30])
    src, dst, t = (torch.cat([column, column[:9]]) for column in random_pairs(events, seed=6))
    found = predict(model, stream, src, dst, t, batch_size=8).score
    assert torch.equal(found[:9], found[-9:])
    order = torch.randperm(len(src), generator=torch.Generator().manual_seed(0))
    shuffled = predict(model, stream, src[order], dst[order], t[order], batch_size=8).score
    assert torch.equal(shuffled, found[order])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("embed", ["event", "node"])
def test_no_event_at_or_after_its_time_matters_to_a_pair(kind: str, embed: str) -> None:
    events = random_events(seed=7)
    src, dst, _ = random_pairs(events, seed=8, count=12)
    before = stream_of(events)
    for at in (20, 33, 47):
        t = events[at][2]
        other = [((s + 4) % 9, (d + 5) % 9, u) if u >= t else (s, d, u) for s, d, u in events]
        assert other != events
        found, same = (
            predict(make(kind, stream, seed=1, embed=embed), stream, src, dst, t, batch_size=8).score
            for stream in (before, stream_of(other))
        )
        assert torch.equal(found, same)
        stream = stream_of([((s + 1) % 9, (d + 2) % 9, u) for s, d, u in events])  # earlier ones do matter
        moved = predict(make(kind, stream, seed=1, embed=embed), stream, src, dst, t, batch_size=8).score
        assert not torch.equal(found, moved)


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_is_left_bit_for_bit_as_it_was(kind: str) -> None:
    events = random_events(seed=9)
    stream = stream_of(events)
    options: dict[str, Any] = {} if kind == "jodie" else {"dropout": 0.5}
    model = make(kind, stream, **options).train()
    model.update_state(stream[:30])
    before, random = state_of(model), torch.get_rng_state()
    src, dst, t = random_pairs(events, seed=10)
    first = predict(model, stream, src, dst, t, batch_size=8)
    predict(model, stream, ["12", "1"], [2, 3], unknown="new")
    with pytest.raises(UnknownIdError):
        predict(model, stream, 12, 3)
    assert torch.equal(torch.get_rng_state(), random) and model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert all(parameter.grad is None for parameter in model.parameters())
    assert torch.equal(predict(model, stream, src, dst, t, batch_size=8).score, first.score)


@pytest.mark.parametrize("kind", KINDS)
def test_pairs_before_every_event_leave_the_model_as_it_was(kind: str) -> None:
    stream = stream_of(random_events(seed=9))
    model = make(kind, stream)
    model.update_state(stream[:30])
    before = state_of(model)
    early = predict(model, stream, [1, 2], [3, 4], stream.t[0].item(), batch_size=8)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    fresh = predict(make(kind, stream), stream, [1, 2], [3, 4], stream.t[0].item(), batch_size=8)
    assert torch.equal(early.score, fresh.score)


def interactions() -> pl.DataFrame:
    rows = torch.arange(200)
    return pl.DataFrame(
        {
            "user": [f"u{i}" for i in (rows * 5 % 13).tolist()],
            "item": (rows * 7 % 11 * 100).tolist(),
            "ts": (rows * 10).tolist(),
        }
    )


def user_model(**options: Any) -> tuple[MDGNN, EventStream]:
    stream = pres.read(interactions(), src="user", dst="item", t="ts", bipartite=True, **options)
    model = make("tgn", stream)
    for batch in TemporalBatches(stream, 50):
        model.update_state(batch)
    return model, stream


def test_ids_are_the_users_own_in_any_form_and_one_goes_with_many() -> None:
    model, stream = user_model()
    items = [0, 300, 700]
    ids = stream.ids
    subgraph = model.sample_pairs(
        ids.encode_src(["u4"] * 3), ids.encode_dst(items), stream.t[-1].repeat(3) + 1
    )
    expected = model.score(subgraph, model.updated_memory(subgraph.nodes))[0].detach().sigmoid()
    forms: list[tuple[Any, Any]] = [
        ("u4", items),
        (["u4"] * 3, np.array(items)),
        (pl.Series(["u4"] * 3), torch.tensor(items)),
        (np.array(["u4"] * 3), pl.Series([str(item) for item in items])),
    ]
    for src, dst in forms:
        assert torch.allclose(pres.predict(model, stream, src, dst).score, expected, atol=1e-12)
    both = pres.predict(model, stream, ["u1", "u4"], 300, [900, 2000])
    assert len(both) == 2
    assert torch.allclose(both.score[1:], pres.predict(model, stream, "u4", 300, 2000).score, atol=1e-12)


def test_an_id_that_the_stream_never_saw_is_named_with_its_row() -> None:
    model, stream = user_model()
    with pytest.raises(UnknownIdError) as error:
        pres.predict(model, stream, ["u1", "zed", "u2", "zed", "yan", "xi", "wu"], 300)
    assert str(error.value) == (
        "the pairs, row 2, column 'src': 'zed' never occurs in the stream, nor do 'yan', 'xi' and 1 more. "
        "To score such ids as nodes without any history, use unknown='new'."
    )
    with pytest.raises(UnknownIdError, match=r"row 1, column 'dst': 301 never occurs in the stream\. "):
        pres.predict(model, stream, "u1", 301)
    with pytest.raises(OptionError, match="unknown='old' is not one of 'error', 'new'"):
        pres.predict(model, stream, "u1", 300, unknown="old")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_id_scores_as_a_node_without_events(kind: str) -> None:
    stream = stream_of(random_events(seed=11))  # nodes 9, 10 and 11 never act
    model = make(kind, stream)
    model.update_state(stream[:20])
    t = [5.0, stream.t[30].item(), None]
    for at in t:
        found = predict(model, stream, [99, 3, 98, 2], [4, 99, 99, 1], at, batch_size=8, unknown="new")
        same = predict(model, stream, [11, 3, 10, 2], [4, 11, 11, 1], at, batch_size=8, unknown="new")
        assert torch.allclose(found.score, same.score, atol=1e-12)
        assert found.new.tolist() == [True, True, True, False] and found.new_nodes == 2
        assert not same.new.any() and same.new_nodes == 0


def test_scores_follow_training() -> None:
    events = pres.load("synthetic", num_events=1_500)
    torch.manual_seed(0)
    model = pres.JODIE(events, memory_dim=16, time_dim=8)
    run = pres.fit(model, events, epochs=3, batch_size=50, lr=5e-3)
    run.restore(model)
    test = events.split().test
    ids = events.ids
    sampler = NegativeSampler(events)
    against = sampler.sample(test, seed=1).nodes[:, 0]
    true, drawn = (
        pres.predict(model, events, ids.decode(test.src), ids.decode(dst), test.t).score
        for dst in (test.dst, against)
    )
    assert true.dtype == torch.float64 and bool(((true > 0) & (true < 1)).all())
    assert float(true.mean()) > float(drawn.mean())


def test_dates_are_times_of_a_stream_that_was_read_from_dates() -> None:
    log = interactions().with_columns(
        (pl.lit("2024-05-17").str.to_datetime() + pl.duration(minutes="ts")).alias("ts")
    )
    stream = pres.read(log, src="user", dst="item", t="ts", bipartite=True)
    model = make("tgn", stream)
    start = int(stream.t[0])
    numbers = pres.predict(model, stream, "u4", [300, 300], [start + 3600, start + 90_000.5]).score
    dates = ["2024-05-17T01:00:00", "2024-05-18 02:00:00.5+01:00"]
    assert torch.equal(pres.predict(model, stream, "u4", 300, dates).score, numbers)
    plain, of_numbers = user_model()
    with pytest.raises(
        OptionError, match=r"'t' holds dates, but the stream's times are numbers, from 0 to 1,990\."
    ):
        pres.predict(plain, of_numbers, "u4", 300, "2024-05-17")


def test_what_cannot_be_predicted_is_one_clear_line() -> None:
    model, stream = user_model()
    with pytest.raises(EmptySourceError, match="the pairs has no rows"):
        pres.predict(model, stream, [], [])
    with pytest.raises(pres.PresError, match="'dst' has shape"):
        pres.predict(model, stream, ["u1", "u2"], [300, 0, 700])
    with pytest.raises(pres.PresError, match="row 2, column 't' is nan"):
        pres.predict(model, stream, "u1", 300, [5.0, math.nan])
    with pytest.raises(pres.PresError, match="row 2, column 'src' is empty"):
        pres.predict(model, stream, ["u1", None], 300)
    with pytest.raises(OptionError, match="batch_size=0"):
        pres.predict(model, stream, "u1", 300, batch_size=0)
    with pytest.raises(OptionError, match="Give the whole stream"):
        pres.predict(model, stream[:100], "u1", 300)
    with torch.no_grad():
        model.link.out.bias.fill_(math.nan)
    with pytest.raises(DivergedError, match="not finite"):
        pres.predict(model, stream, "u1", 300)
