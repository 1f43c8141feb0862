import dataclasses
import json

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from pres.evaluation.metrics import LinkMetrics, link_metrics


def test_metrics_of_scores_worked_out_by_hand() -> None:
    positive = torch.tensor([3.0, 1.0, 2.0])
    negative = torch.tensor([[0.0, 4.0], [1.0, 0.0], [0.0, 1.0]])
    found = link_metrics(positive, negative, [2, 1])
    # ranks among own negatives: below 4; tied with 1; above all
    assert found.mrr == pytest.approx((1 / 2 + 1 / 1.5 + 1) / 3)
    assert found.hits_1 == pytest.approx(1 / 3)
    assert (found.hits_3, found.hits_10) == (1, 1)
    # against the first negatives 0, 1 and 0 the events win: 3.0 three, 1.0 two and a half, 2.0 three
    assert found.auc == pytest.approx((3 + 2.5 + 3) / 9)
    assert (found.events, found.negatives) == (3, 2)
    first = roc_auc_score([1, 1, 0, 0], [3, 1, 0, 1])
    assert found.auc_batches == pytest.approx((first + 1) / 2)
    scores, truth = [3, 2, 1, 1, 0, 0], [1, 1, 1, 0, 0, 0]
    assert found.ap == pytest.approx(average_precision_score(truth, scores))


# Few distinct scores, so that most of them are tied.
SCORES = st.integers(1, 12).flatmap(
    lambda count: st.lists(
        st.tuples(st.integers(0, 3), st.lists(st.integers(0, 3), min_size=count, max_size=count)),
        min_size=1,
        max_size=12,
    )
)


@given(SCORES)
def test_ranks_and_areas_equal_a_loop_over_pairs(rows: list[tuple[int, list[int]]]) -> None:
    positive = torch.tensor([p for p, _ in rows], dtype=torch.float32)
    negative = torch.tensor([q for _, q in rows], dtype=torch.float32)
    found = link_metrics(positive, negative, [len(rows)])
    reciprocal, hits, won = [], {1: 0, 3: 0, 10: 0}, 0.0
    for p, own in rows:
        best = 1 + len([q for q in own if q > p])
        worst = 1 + len([q for q in own if q >= p])
        rank = (best + worst) / 2
        reciprocal.append(1 / rank)
        for k in hits:
            hits[k] += rank <= k
        won += sum(1 if p > q else 0.5 if p == q else 0 for _, other in rows for q in other[:1])
    assert found.mrr == pytest.approx(sum(reciprocal) / len(rows))
    assert found.hits_1 == pytest.approx(hits[1] / len(rows))
    assert found.hits_3 == pytest.approx(hits[3] / len(rows))
    assert found.hits_10 == pytest.approx(hits[10] / len(rows))
    assert found.auc == pytest.approx(won / len(rows) ** 2)
    assert (found.ap_batches, found.auc_batches) == (found.ap, found.auc)


@given(SCORES)
def test_average_precision_equals_a_loop_over_thresholds(rows: list[tuple[int, list[int]]]) -> None:
    positive, negative = [p for p, _ in rows], [own[0] for _, own in rows]
    expected, recall_so_far = 0.0, 0.0
    for threshold in sorted(set(positive + negative), reverse=True):
        caught = len([p for p in positive if p >= threshold])
        wrong = len([q for q in negative if q >= threshold])
        recall = caught / len(positive)
        expected += (recall - recall_so_far) * caught / (caught + wrong)
        recall_so_far = recall
    found = link_metrics(torch.tensor(positive), torch.tensor([own for _, own in rows]), [len(rows)])
    assert found.ap == pytest.approx(expected)


def test_a_scorer_that_cannot_tell_nodes_apart_gets_no_credit_for_ties() -> None:
    found = link_metrics(torch.zeros(5), torch.zeros(5, 20), [5])
    assert found.mrr == pytest.approx(1 / 11)
    assert (found.hits_1, found.hits_3, found.hits_10) == (0, 0, 0)
    assert found.auc == 0.5


def test_scores_that_differ_in_the_last_bit_are_not_tied() -> None:
    one = torch.tensor([1.0])
    above = torch.nextafter(one, torch.tensor(2.0))
    assert link_metrics(above, one.unsqueeze(1), [1]).hits_1 == 1
    assert link_metrics(one, above.unsqueeze(1), [1]).hits_1 == 0


def test_metrics_go_through_json_and_back() -> None:
    found = link_metrics(torch.rand(6), torch.rand(6, 3), [4, 2])
    assert LinkMetrics(**json.loads(json.dumps(dataclasses.asdict(found)))) == found
