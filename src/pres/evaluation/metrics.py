"""The metrics of link prediction: how far the scores of events lie above those of their negatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor


@dataclass(frozen=True)
class LinkMetrics:
    """Quality of link prediction over one part of a stream, or over a group of its events.

    An event's *rank* among its own negatives is 1 + the negatives above it + half of those tied with it:
    the mean of the best and the worst place that its ties allow. Counting ties as won would give a scorer
    that cannot tell any two nodes apart a perfect rank.
    """

    ap: float  # average precision over the whole part
    auc: float  # area under the ROC curve over the whole part
    ap_batches: float  # mean over batches, as the papers print it
    auc_batches: float
    mrr: float  # mean reciprocal rank
    events: int
    negatives: int  # per event
    hits_1: float | None = None  # share of events of rank 1; None in a run saved before it was measured
    hits_3: float | None = None  # share of rank 3 or better; always 1 with fewer than 3 negatives
    hits_10: float | None = None


def link_metrics(positive: Tensor, negative: Tensor, batches: Sequence[int]) -> LinkMetrics:
    """Return the metrics of scores `[n]` of events and `[n, count]` of their negatives, in such batches."""
    p, q = positive.cpu().numpy(), negative.cpu().numpy()
    edges = np.cumsum(batches)[:-1]
    per_batch = [_ap_and_auc(a, b) for a, b in zip(np.split(p, edges), np.split(q, edges), strict=True)]
    ap, auc = _ap_and_auc(p, q)
    ap_batches, auc_batches = np.mean(per_batch, axis=0).tolist()
    rank = 1 + (q > p[:, None]).sum(1) + 0.5 * (q == p[:, None]).sum(1)
    return LinkMetrics(
        ap=ap,
        auc=auc,
        ap_batches=ap_batches,
        auc_batches=auc_batches,
        mrr=float((1 / rank).mean()),
        events=len(p),
        negatives=q.shape[1],
        hits_1=float((rank <= 1).mean()),
        hits_3=float((rank <= 3).mean()),
        hits_10=float((rank <= 10).mean()),
    )


def _ap_and_auc(positive: np.ndarray, negative: np.ndarray) -> tuple[float, float]:
    scores = np.concatenate([positive, negative.ravel()])
    truth = np.zeros(len(scores), dtype=np.uint8)
    truth[: len(positive)] = 1
    return float(average_precision_score(truth, scores)), float(roc_auc_score(truth, scores))
