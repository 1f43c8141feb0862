import dataclasses
import io
import json
from typing import Any

import pytest
import torch
from rich.console import Console

import pres
from pres.cli.evaluate import as_tables
from pres.errors import DivergedError, OptionError
from pres.evaluation.baselines import EdgeBank, Popularity
from pres.evaluation.compare import STRATEGIES, Comparison, compare
from pres.evaluation.link import EVALUATION_SEED, link_scores, seen_in
from pres.evaluation.metrics import LinkMetrics, link_metrics
from pres.evaluation.scorer import ModelScorer, Scorer
from pres.models import MDGNN
from pres.sampling import NegativeSampler, TemporalBatches

EVENTS = pres.load("synthetic", num_events=1_500)
SPLIT = EVENTS.split()
SCORERS = ("JODIE", "EdgeBank", "EdgeBank (window)", "popularity")


def model_before(offset: int, batch_size: int = 100, cell: str = "gru") -> MDGNN:
    """A model with random weights whose memory has taken in everything before an event."""
    torch.manual_seed(0)
    model = pres.JODIE(EVENTS, memory_dim=16, time_dim=8, cell=cell)  # type: ignore[arg-type]
    for batch in TemporalBatches(EVENTS[:offset], batch_size):
        model.update_state(batch)
    return model


@pytest.fixture(scope="module")
def comparison() -> Comparison:
    return compare(model_before(SPLIT.test.offset), EVENTS, negatives=3, batch_size=60, seed=4)


def test_there_is_a_row_for_every_strategy_scorer_and_group(comparison: Comparison) -> None:
    assert [(row.strategy, row.scorer, row.staleness, row.group) for row in comparison.rows] == [
        (strategy, scorer, staleness, group)
        for strategy in STRATEGIES
        for scorer in SCORERS
        for staleness in (60, 0)
        for group in ("all", "seen", "unseen")
    ]
    assert (comparison.part, comparison.events, comparison.memory) == ("test", len(SPLIT.test), "as given")
    assert (comparison.pool, comparison.pool_size) == ("destinations", len(set(EVENTS.dst.tolist())))
    assert comparison.window == (SPLIT.test.t[-1] - SPLIT.test.t[0]).item()


def test_every_scorer_starts_every_strategy_just_before_the_part(comparison: Comparison) -> None:
    offset = SPLIT.test.offset
    seen = seen_in(SPLIT.train, SPLIT.test)
    for strategy in STRATEGIES:
        sampler = NegativeSampler(EVENTS, strategy, train_end=len(SPLIT.train))
        banks: list[EdgeBank | Popularity] = [
            EdgeBank(EVENTS),
            EdgeBank(EVENTS, comparison.window),
            Popularity(EVENTS),
        ]
        for bank in banks:
            bank.update_state(EVENTS[:offset])
        scorers: list[Scorer] = [ModelScorer(model_before(offset)), *banks]
        for name, scorer in zip(SCORERS, scorers, strict=True):
            (scores,) = link_scores(scorer, SPLIT.test, [sampler], batch_size=60, negatives=3, seed=4)
            expected = scores.by_group(seen)
            rows = [
                row
                for row in comparison.rows
                if (row.strategy, row.scorer, row.staleness) == (strategy, name, 60)
            ]
            assert len(rows) == 3
            for row in rows:
                own = expected[row.group]
                assert nearly(row.metrics) == (None if own is None else nearly(own.metrics))
                assert row.fallback_share == (None if own is None else own.fallback_share)


def nearly(metrics: LinkMetrics | None) -> dict[str, Any] | None:
    return None if metrics is None else {n: round(v, 3) for n, v in dataclasses.asdict(metrics).items()}


def test_random_negatives_never_fall_back_and_others_may(comparison: Comparison) -> None:
    shares = {row.strategy: row.fallback_share for row in comparison.rows if row.group == "all"}
    assert shares["random"] == 0
    assert (shares["inductive"] or 0) > 0


def test_the_model_is_left_as_it_was_found() -> None:
    model = model_before(SPLIT.test.offset).train()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    compare(model, EVENTS, strategies=["random"])
    compare(model, EVENTS, "val", strategies=["random"])
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    with torch.no_grad():
        model.link.out.bias.fill_(float("nan"))
    with pytest.raises(DivergedError):
        compare(model, EVENTS)
    assert torch.equal(model.memory.memory, before["memory.memory"])
    assert int(model.memory.position) == SPLIT.test.offset


@pytest.mark.parametrize("position", [0, 700, 1_500])
def test_a_memory_from_elsewhere_is_made_anew(position: int) -> None:
    found = compare(model_before(position), EVENTS, "val", batch_size=50, strategies=["random"])
    expected = compare(
        model_before(SPLIT.val.offset, batch_size=50), EVENTS, "val", batch_size=50, strategies=["random"]
    )
    assert (found.memory, expected.memory) == ("replayed", "as given")
    assert found.rows == expected.rows


def test_the_test_of_a_run_is_found_again() -> None:
    torch.manual_seed(0)
    model = pres.JODIE(EVENTS, memory_dim=16, time_dim=8)
    run = pres.fit(model, EVENTS, epochs=1, batch_size=100, seed=3)
    run.restore(model)
    found = compare(model, EVENTS, seed=3, strategies=["random"], baselines=False, negatives=1)
    assert found.rows[0].metrics == run.test
    assert {row.scorer for row in found.rows} == {"JODIE"}
    assert found.window is None


def test_memory_may_move_with_every_event_of_a_batch() -> None:
    """Made anew by batches of 100, it is that of one event after the other."""
    made, offset = model_before(0), SPLIT.test.offset
    alone = model_before(offset, batch_size=1)
    options: dict[str, Any] = {"strategies": ["random"], "baselines": False, "batch_size": 100}
    found, expected = (compare(model, EVENTS, sequential=True, **options) for model in (made, alone))
    standard = compare(made, EVENTS, **options)
    assert (found.memory, expected.memory) == ("replayed", "as given")
    assert found.sequential and not standard.sequential
    aps = [row.metrics.ap for row in (found.rows[0], expected.rows[0], standard.rows[0]) if row.metrics]
    assert aps[0] == pytest.approx(aps[1], abs=1e-4) and abs(aps[2] - aps[0]) > 1e-3


def test_progress_counts_every_event_that_is_scored_or_replayed() -> None:
    heard: list[tuple[int, int]] = []
    compare(
        model_before(0),
        EVENTS,
        "val",
        strategies=["random", "random", "historical"],  # named twice, scored once
        on_progress=lambda done, to_do: heard.append((done, to_do)),
    )
    # At either staleness both strategies are scored in one pass.
    total = len(SPLIT.train) + 2 * len(SCORERS) * len(SPLIT.val)
    assert heard[-1] == (total, total)
    assert [done for done, _ in heard] == sorted({done for done, _ in heard})


def test_a_group_without_events_has_no_metrics() -> None:
    # every node acts in the training part
    n = 200
    src, dst = torch.arange(n) % 5, 5 + torch.arange(n) * 7 % 30
    events = pres.EventStream(src, dst, torch.arange(n), num_nodes=35)
    found = compare(pres.JODIE(events, memory_dim=8, time_dim=4), events, batch_size=10)
    unseen = [row for row in found.rows if row.group == "unseen"]
    assert unseen and all(row.metrics is None and row.fallback_share is None for row in unseen)
    text = shown(found)
    assert "popularity" in text and "  unseen  " not in text and "  seen  " not in text
    assert "both endpoints" not in text  # nor is it said what seen means


def test_the_comparison_is_plain_values_and_a_table(comparison: Comparison) -> None:
    plain = json.loads(json.dumps(comparison.to_dict(), allow_nan=False))
    assert len(plain["rows"]) == len(comparison.rows)
    assert plain["rows"][0]["metrics"]["negatives"] == 3
    text = shown(comparison)
    first = comparison.rows[0].metrics
    assert first is not None
    for expected in (
        f"{first.ap:.4f}",
        "Hits@3",
        "as the run left it",
        f"the {comparison.pool_size:,} nodes",
    ):
        assert expected in text
    assert "Hits@10" not in text  # of 3 negatives every event is among the first 10


def test_events_at_staleness_0_are_scored_as_batches_of_one(comparison: Comparison) -> None:
    fresh = {
        (row.strategy, row.scorer): row.metrics
        for row in comparison.rows
        if (row.staleness, row.group) == (0, "all")
    }
    for strategy in STRATEGIES:
        sampler = NegativeSampler(EVENTS, strategy, train_end=len(SPLIT.train))
        drawn = torch.cat(
            [sampler.sample(batch, 3, EVALUATION_SEED + 4).nodes for batch in TemporalBatches(SPLIT.test, 60)]
        )
        bank = EdgeBank(EVENTS)
        bank.update_state(EVENTS[: SPLIT.test.offset])
        # The definition: whether the pair occurred at a strictly earlier time, in either direction.
        t = [EVENTS.t[e].item() for e in range(len(EVENTS))]
        met: dict[tuple[int, int], float] = {}
        for e, (u, v) in enumerate(zip(EVENTS.src.tolist(), EVENTS.dst.tolist(), strict=True)):
            met.setdefault((min(u, v), max(u, v)), t[e])
        first = SPLIT.test.offset
        hits = [
            [
                float(met.get((min(u, v), max(u, v)), t[-1] + 1) < t[first + row])
                for v in (SPLIT.test.dst[row].item(), *drawn[row].tolist())
            ]
            for row, u in enumerate(SPLIT.test.src.tolist())
        ]
        truth = torch.tensor(hits)
        found = fresh[strategy, "EdgeBank"]
        sizes = tuple(len(batch) for batch in TemporalBatches(SPLIT.test, 60))
        assert found == link_metrics(truth[:, 0], truth[:, 1:], sizes)


@pytest.mark.parametrize("cell", ["gru", "scan"])
def test_both_values_of_staleness_start_just_before_the_part(cell: str) -> None:
    model = model_before(SPLIT.test.offset, cell=cell)
    both = compare(model, EVENTS, strategies=["random", "historical"], baselines=False)
    apart = [
        compare(model, EVENTS, strategies=["random", "historical"], baselines=False, staleness=one)
        for one in ("batch", 0)
    ]
    assert [{row.staleness for row in found.rows} for found in (both, *apart)] == [{200, 0}, {200}, {0}]
    assert sorted(map(str, both.rows)) == sorted(str(row) for found in apart for row in found.rows)
    old, new = (found.rows[0].metrics for found in apart)
    assert old != new  # what happened inside the batch is seen
    assert both.rows[0].scorer == both.model == ("JODIE-scan" if cell == "scan" else "JODIE")
    assert {row.group for row in both.rows} == {"all", "seen", "unseen"}


@pytest.mark.parametrize("cell", ["gru", "scan"])
def test_several_samplers_in_one_pass_give_what_each_gives_alone(cell: str) -> None:
    samplers = [NegativeSampler(EVENTS, strategy, train_end=len(SPLIT.train)) for strategy in STRATEGIES]
    together = link_scores(
        model_before(SPLIT.test.offset, cell=cell), SPLIT.test, samplers, negatives=2, staleness=0
    )
    for sampler, found in zip(samplers, together, strict=True):
        model = model_before(SPLIT.test.offset, cell=cell)
        (alone,) = link_scores(model, SPLIT.test, [sampler], negatives=2, staleness=0)
        torch.testing.assert_close(found.positive, alone.positive)
        torch.testing.assert_close(found.negative, alone.negative)
        assert torch.equal(found.fallback, alone.fallback) and found.batches == alone.batches
        model = model_before(SPLIT.test.offset, cell=cell)
        metrics = pres.evaluate(model, SPLIT.test, sampler, negatives=2, staleness=0)
        assert metrics == alone.metrics


def test_algorithm_2_at_staleness_0_is_evaluated_in_batches_of_one() -> None:
    model = model_before(0)
    run = pres.fit(model, EVENTS, epochs=1, batch_size=100, smoothing=pres.PRES.published("algorithm"))
    sampler = NegativeSampler(EVENTS)
    run.restore(model)
    (fresh,) = link_scores(model, SPLIT.test, [sampler], staleness=0)
    run.restore(model)
    drawn = torch.cat(
        [sampler.sample(batch, 1, EVALUATION_SEED).nodes for batch in TemporalBatches(SPLIT.test, 200)]
    )
    scorer, offset = ModelScorer(model), SPLIT.test.offset
    for batch in TemporalBatches(SPLIT.test, 1, ties="whole"):
        rows = slice(batch.offset - offset, batch.offset - offset + len(batch))
        positive, negative = scorer.score(batch, drawn[rows])
        scorer.update_state(batch)
        assert torch.equal(fresh.positive[rows], positive)
        assert torch.equal(fresh.negative[rows], negative)


def test_tables_at_different_staleness_are_apart_and_say_so(comparison: Comparison) -> None:
    text = " ".join(shown(comparison).split())
    for expected in (
        "random negatives, staleness 60",
        "random negatives, staleness 0",
        "from the state at the start of its group of 60 events",
        "from the state after all strictly earlier events",
        "never set figures at different staleness against each other",
    ):
        assert expected in text


def shown(comparison: Comparison) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(as_tables(comparison))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_what_cannot_be_compared_is_one_clear_line() -> None:
    model = model_before(0)
    with pytest.raises(OptionError, match="part='train' is not one of 'val', 'test'"):
        compare(model, EVENTS, "train")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="strategy='hard' is not one of"):
        compare(model, EVENTS, strategies=["hard"])  # type: ignore[list-item]
    with pytest.raises(OptionError, match="at least one strategy"):
        compare(model, EVENTS, strategies=[])
    with pytest.raises(OptionError, match="staleness=5: give 'both', 'batch' or 0"):
        compare(model, EVENTS, staleness=5)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="negatives=0"):
        compare(model, EVENTS, negatives=0)
    with pytest.raises(OptionError, match="window=-1"):
        compare(model, EVENTS, window=-1)
