"""The metrics of link prediction, by events and their negatives, and those of labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor


@dataclass(frozen=True)
class LinkMetrics:
    """Quality of link prediction over one part of a stream, or over a group of its events.

    AP and AUC hold each event against one negative, the first of its own, however many there are: that is
    the field's protocol, and figures at other ratios are not comparable. Ranks go by all negatives.

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
    hits_1: float  # share of events of rank 1
    hits_3: float  # share of rank 3 or better; always 1 with fewer than 3 negatives
    hits_10: float


def link_metrics(positive: Tensor, negative: Tensor, batches: Sequence[int]) -> LinkMetrics:
    """Return the metrics of scores `[n]` of events and `[n, count]` of their negatives, in such batches."""
    p, q = positive.cpu().numpy(), negative.cpu().numpy()
    first = q[:, 0]
    edges = np.cumsum(batches)[:-1]
    per_batch = [_ap_and_auc(a, b) for a, b in zip(np.split(p, edges), np.split(first, edges), strict=True)]
    ap, auc = _ap_and_auc(p, first)
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
    scores = np.concatenate([positive, negative])
    truth = np.zeros(len(scores), dtype=np.uint8)
    truth[: len(positive)] = 1
    return float(average_precision_score(truth, scores)), float(roc_auc_score(truth, scores))


@dataclass(frozen=True)
class LabelMetrics:
    """How well the labels of one part of a stream are told; macro means where there are more than two."""

    events: int
    counts: tuple[int, ...]  # events of each class
    positives: int | None  # events of the positive class; None for more than two classes
    auc: float  # area under the ROC curve
    ap: float  # average precision


def label_metrics(logits: Tensor, target: Tensor) -> LabelMetrics:
    """Return the metrics of logits `[n, classes]` against the classes `[n]` that are true."""
    classes = logits.shape[1]
    counts = torch.bincount(target, minlength=classes).tolist()
    told = [1] if classes == 2 else [c for c in range(classes) if counts[c]]
    figures = []
    for c in told:
        truth, score = (target == c).numpy(), _log_odds(logits.double(), c).numpy()
        figures.append((roc_auc_score(truth, score), average_precision_score(truth, score)))
    auc, ap = np.mean(figures, axis=0).tolist()
    return LabelMetrics(
        events=len(target),
        counts=tuple(counts),
        positives=counts[1] if classes == 2 else None,
        auc=auc,
        ap=ap,
    )


def _log_odds(logits: Tensor, c: int) -> Tensor:
    """Return the log-odds `[n]` of one class against all others."""
    others = torch.cat([logits[:, :c], logits[:, c + 1 :]], dim=1)
    return logits[:, c] - others.logsumexp(dim=1)
