import numpy as np
import pytest
import torch
from sklearn.metrics import average_precision_score, roc_auc_score

from pres.sampling import NegativeSampler
from pres.training import evaluate
from pres.training.evaluation import EVALUATION_SEED, link_metrics
from tests.models.conftest import KINDS, make, random_events, stream_of


def test_metrics_of_scores_worked_out_by_hand() -> None:
    positive = torch.tensor([3.0, 1.0, 2.0])
    negative = torch.tensor([[0.0, 4.0], [1.0, 0.0], [0.0, 1.0]])
    found = link_metrics(positive, negative, [2, 1])
    # ranks among own negatives: below 4; tied with 1; above all
    assert found.mrr == pytest.approx((1 / 2 + 1 / 1.5 + 1) / 3)
    # of 3 x 6 pairs the events win: 3.0 five, 1.0 three and two halves, 2.0 five
    assert found.auc == pytest.approx((5 + 4 + 5) / 18)
    assert (found.events, found.negatives) == (3, 2)
    first = roc_auc_score([1, 1, 0, 0, 0, 0], [3, 1, 0, 4, 1, 0])
    assert found.auc_batches == pytest.approx((first + 1) / 2)
    scores = [3, 4, 2, 1, 1, 1, 0, 0, 0]
    truth = [1, 0, 1, 1, 0, 0, 0, 0, 0]
    assert found.ap == pytest.approx(average_precision_score(truth, scores))


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_equals_scoring_and_absorbing_one_batch_after_the_other(kind: str) -> None:
    stream = stream_of(random_events(seed=1, n=120), nodes=40)
    sampler = NegativeSampler(stream, pool="nodes")
    fast, slow = make(kind, stream), make(kind, stream)
    for model in (fast, slow):
        for start in range(0, 60, 20):
            model.absorb(stream[start : start + 20])
    found = evaluate(fast, stream[60:], sampler, batch_size=13, negatives=2, seed=5)
    positive, negative = [], []
    for start in range(60, 120, 13):
        batch = stream[start : min(start + 13, 120)]
        drawn = sampler.sample(batch, 2, EVALUATION_SEED + 5).nodes
        for i in range(len(batch)):  # one query at a time
            own = slow.look(batch, drawn)
            p, q = slow.score(own, slow.measure(own.nodes))
            positive.append(p[i].item())
            negative += q[i].tolist()
        slow.absorb(batch)
    truth = [1] * len(positive) + [0] * len(negative)
    assert found.ap == pytest.approx(average_precision_score(truth, positive + negative), abs=1e-9)
    assert found.auc == pytest.approx(roc_auc_score(truth, positive + negative), abs=1e-9)
    np.testing.assert_allclose(fast.memory.memory.numpy(), slow.memory.memory.numpy(), atol=1e-12)


def test_evaluation_leaves_weights_and_mode_as_they_were() -> None:
    stream = stream_of(random_events(seed=2), nodes=40)
    model = make("tgn", stream).train()
    before = {name: value.clone() for name, value in model.named_parameters()}
    evaluate(model, stream, NegativeSampler(stream, pool="nodes"))
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())
    assert all(value.grad is None for value in model.parameters())
