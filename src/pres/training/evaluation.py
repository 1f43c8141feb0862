"""How well a model tells events from negatives, batch after batch along a stream."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.metrics import average_precision_score, roc_auc_score
from torch import Tensor

from pres.errors import DivergedError, OptionError
from pres.events import EventStream
from pres.models import MDGNN
from pres.sampling import NegativeSampler, TemporalBatches

EVALUATION_SEED = (
    2**32
)  # beyond any epoch's, so that no training negative is an evaluation negative by design


@dataclass(frozen=True)
class LinkMetrics:
    """Quality of link prediction over one part of a stream."""

    ap: float  # average precision over the whole part
    auc: float  # area under the ROC curve over the whole part
    ap_batches: float  # mean over batches, as the papers print it
    auc_batches: float
    mrr: float  # mean reciprocal rank of an event among its own negatives (ties count half)
    events: int
    negatives: int  # per event


def link_metrics(positive: Tensor, negative: Tensor, batches: list[int]) -> LinkMetrics:
    """Return the metrics of scores `[n]` of events and `[n, count]` of their negatives, in such batches."""
    p, q = positive.double().cpu().numpy(), negative.double().cpu().numpy()
    per_batch = [
        _ap_and_auc(a, b)
        for a, b in zip(*(np.split(side, np.cumsum(batches)[:-1]) for side in (p, q)), strict=True)
    ]
    above = (q > p[:, None]).sum(1) + 0.5 * (q == p[:, None]).sum(1)
    ap, auc = _ap_and_auc(p, q)
    means = np.mean(per_batch, axis=0)
    return LinkMetrics(
        ap=ap,
        auc=auc,
        ap_batches=float(means[0]),
        auc_batches=float(means[1]),
        mrr=float((1 / (1 + above)).mean()),
        events=len(p),
        negatives=q.shape[1],
    )


def _ap_and_auc(positive: np.ndarray, negative: np.ndarray) -> tuple[float, float]:
    scores = np.concatenate([positive, negative.ravel()])
    truth = np.concatenate([np.ones(len(positive)), np.zeros(negative.size)])
    return float(average_precision_score(truth, scores)), float(roc_auc_score(truth, scores))


def evaluate(
    model: MDGNN,
    part: EventStream,
    sampler: NegativeSampler,
    *,
    batch_size: int = 200,
    negatives: int = 1,
    seed: int = 0,
) -> LinkMetrics:
    """Return the metrics of ``model`` on a part of its stream, which its memory takes in on the way.

    The memory must be as it is just before the part. Each batch is scored before it is absorbed.

    Args:
        model: The model; it is put into evaluation mode for the while.
        part: Consecutive events of the model's stream.
        sampler: Where negatives come from; fixed by ``seed``.
        batch_size: Events per batch, whatever the training batch was.
        negatives: Negatives per event.
        seed: The same seed gives the same negatives.
    """
    if len(part) == 0:
        raise OptionError("there are no events to evaluate on.")
    positive, negative, sizes = [], [], []
    with _evaluating(model):
        for batch in TemporalBatches(part, batch_size):
            drawn = sampler.sample(batch, negatives, EVALUATION_SEED + seed).nodes
            view = model.look(batch, drawn)
            states = model.measure(view.nodes)
            scores = model.score(view, states)
            model.absorb(batch, states)
            positive.append(scores[0])
            negative.append(scores[1])
            sizes.append(len(batch))
    scored, against = torch.cat(positive), torch.cat(negative)
    if not bool(scored.isfinite().all() and against.isfinite().all()):
        raise DivergedError("the model's scores are not finite numbers. Train it with a smaller lr.")
    return link_metrics(scored, against, sizes)


@contextmanager
def _evaluating(model: MDGNN) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
