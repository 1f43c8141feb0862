from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from pres.data.stream import EventStream
from pres.errors import DivergedError, OptionError
from pres.evaluation import scorer as evaluation
from pres.evaluation.link import EVALUATION_SEED, LinkScores, evaluate, link_scores, seen_in
from pres.evaluation.metrics import link_metrics
from pres.sampling import NegativeSampler
from tests.models.conftest import KINDS, make, random_events, stream_of


class Noted:
    """Scores an event by its source, a negative by its node, and notes what it is asked to do."""

    def __init__(self) -> None:
        self.notes: list[tuple[str, int, int]] = []

    def score(self, batch: EventStream, negatives: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.notes.append(("score", batch.offset, len(batch)))
        return batch.src.double(), negatives.double()

    def update_state(self, batch: EventStream) -> None:
        self.notes.append(("update_state", batch.offset, len(batch)))


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_equals_scoring_and_absorbing_one_batch_after_the_other(kind: str) -> None:
    stream = stream_of(random_events(seed=1, n=120), nodes=40)
    sampler = NegativeSampler(stream, pool="nodes")
    fast, slow = make(kind, stream), make(kind, stream)
    for model in (fast, slow):
        for start in range(0, 60, 20):
            model.update_state(stream[start : start + 20])
    found = evaluate(fast, stream[60:], sampler, batch_size=13, negatives=2, seed=5)
    positive, negative = [], []
    for start in range(60, 120, 13):
        batch = stream[start : min(start + 13, 120)]
        drawn = sampler.sample(batch, 2, EVALUATION_SEED + 5).nodes
        for i in range(len(batch)):  # one query at a time
            own = slow.sample(batch, drawn)
            p, q = slow.score(own, slow.updated_memory(own.nodes))
            positive.append(p[i].item())
            negative.append(q[i, 0].item())  # the first negative of each event
        slow.update_state(batch)
    truth = [1] * len(positive) + [0] * len(negative)
    assert found.ap == pytest.approx(average_precision_score(truth, positive + negative), abs=1e-9)
    assert found.auc == pytest.approx(roc_auc_score(truth, positive + negative), abs=1e-9)
    np.testing.assert_allclose(fast.memory.memory.numpy(), slow.memory.memory.numpy(), atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_many_negatives_are_scored_a_few_at_a_time_with_the_same_result(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = stream_of(random_events(seed=3, n=60), nodes=40)
    sampler = NegativeSampler(stream, pool="nodes")
    whole, in_parts = make(kind, stream), make(kind, stream)
    (expected,) = link_scores(whole, stream, [sampler], batch_size=10, negatives=7)
    monkeypatch.setattr(evaluation, "PAIRS_AT_ONCE", 25)  # two columns of negatives at a time
    widths, look = [], in_parts.sample

    def noted(batch: EventStream, negatives: torch.Tensor, **options: Any) -> Any:
        widths.append(negatives.shape[1])
        return look(batch, negatives, **options)

    monkeypatch.setattr(in_parts, "sample", noted)
    (found,) = link_scores(in_parts, stream, [sampler], batch_size=10, negatives=7)
    assert widths[:4] == [2, 2, 2, 1]
    torch.testing.assert_close(found.positive, expected.positive)
    torch.testing.assert_close(found.negative, expected.negative)
    torch.testing.assert_close(in_parts.memory.memory, whole.memory.memory)


def test_evaluation_leaves_weights_and_mode_as_they_were() -> None:
    stream = stream_of(random_events(seed=2), nodes=40)
    model = make("tgn", stream).train()
    before = {name: value.clone() for name, value in model.named_parameters()}
    evaluate(model, stream, NegativeSampler(stream, pool="nodes"))
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())
    assert all(value.grad is None for value in model.parameters())


def test_a_batch_is_scored_before_it_is_absorbed_and_the_scores_are_kept_as_given() -> None:
    stream = stream_of(random_events(seed=4, n=50), nodes=40)
    sampler, scorer = NegativeSampler(stream, pool="nodes"), Noted()
    heard: list[EventStream] = []
    (found,) = link_scores(
        scorer, stream[20:], [sampler], batch_size=12, negatives=3, seed=1, on_batch=heard.append
    )
    sizes = [(20, 12), (32, 12), (44, 6)]
    assert scorer.notes == [(what, *size) for size in sizes for what in ("score", "update_state")]
    assert [(batch.offset, len(batch)) for batch in heard] == sizes
    assert found.batches == (12, 12, 6)
    drawn = [sampler.sample(stream[a : a + b], 3, EVALUATION_SEED + 1).nodes for a, b in sizes]
    assert found.positive.tolist() == stream.src[20:].tolist()
    assert found.negative.tolist() == torch.cat(drawn).tolist()
    assert found.positive.dtype == found.negative.dtype == torch.float32
    assert found.metrics == evaluate(Noted(), stream[20:], sampler, batch_size=12, negatives=3, seed=1)


@pytest.mark.parametrize("strategy", ["historical", "inductive"])
def test_the_share_of_fallbacks_is_what_the_sampler_says(strategy: Any) -> None:
    stream = stream_of(random_events(seed=5, n=80, nodes=30), nodes=40)
    sampler = NegativeSampler(stream, strategy, pool="nodes", train_end=30)
    (found,) = link_scores(Noted(), stream[40:], [sampler], batch_size=10, negatives=2)
    fell = [
        flag
        for start in range(40, 80, 10)
        for row in sampler.sample(stream[start : start + 10], 2, EVALUATION_SEED).fallback.tolist()
        for flag in row
    ]
    assert 0 < sum(fell) < len(fell)
    assert found.fallback_share == pytest.approx(sum(fell) / len(fell))
    assert found.fallback.flatten().tolist() == fell


def test_groups_are_the_events_whose_endpoints_were_all_in_training_and_the_others() -> None:
    stream = stream_of(random_events(seed=6, n=60, nodes=30), nodes=40)
    train, part = stream[:20], stream[30:]
    (scores,) = link_scores(Noted(), part, [NegativeSampler(stream, pool="nodes")], batch_size=7, negatives=2)
    known = {node for event in train for node in (event.src, event.dst)}
    rows: dict[str, list[int]] = {"all": list(range(30)), "seen": [], "unseen": []}
    for i, event in enumerate(part):
        rows["seen" if event.src in known and event.dst in known else "unseen"].append(i)
    assert rows["seen"] and rows["unseen"]
    found = scores.by_group(seen_in(train, part))
    assert list(found) == list(rows)
    for group, own in found.items():
        batches = [len([i for i in rows[group] if i // 7 == number]) for number in range(5)]
        assert own is not None
        assert own.metrics == link_metrics(
            scores.positive[rows[group]], scores.negative[rows[group]], [size for size in batches if size]
        )
        assert own.metrics.events == len(rows[group])


def test_a_group_without_events_is_none() -> None:
    scores = LinkScores(torch.rand(4), torch.rand(4, 1), torch.zeros(4, 1, dtype=torch.bool), (3, 1))
    found = scores.by_group(torch.ones(4, dtype=torch.bool))
    assert found["unseen"] is None
    assert found["seen"] is not None and found["seen"].metrics == scores.metrics


def test_scores_that_are_not_finite_numbers_are_an_error_that_names_the_batch() -> None:
    stream = stream_of(random_events(seed=7, n=50), nodes=40)
    model = make("jodie", stream)
    with torch.no_grad():
        model.link.out.bias.fill_(float("nan"))
    with pytest.raises(DivergedError, match="not finite numbers in the batch of events 0 to 19"):
        evaluate(model, stream, NegativeSampler(stream, pool="nodes"), batch_size=20)


def test_what_cannot_be_evaluated_is_one_clear_line() -> None:
    stream = stream_of(random_events(seed=8), nodes=40)
    sampler = NegativeSampler(stream, pool="nodes")
    with pytest.raises(OptionError, match="no events to evaluate"):
        evaluate(Noted(), stream[:0], sampler)
    with pytest.raises(OptionError, match="negatives=0"):
        evaluate(Noted(), stream, sampler, negatives=0)

    class Flat(Noted):
        def score(self, batch: EventStream, negatives: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return batch.src.double(), negatives.double().flatten()

    with pytest.raises(OptionError, match=r"\[60\] and \[120\], expected \[60\] .* \[60, 2\]"):
        evaluate(Flat(), stream, sampler, negatives=2)
