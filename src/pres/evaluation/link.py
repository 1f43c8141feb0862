"""How well anything that scores links tells events from negatives, batch after batch along a stream."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from pres.data.incidence import occurring
from pres.data.stream import EventStream
from pres.errors import DivergedError, OptionError
from pres.evaluation.metrics import LinkMetrics, link_metrics
from pres.evaluation.scorer import ModelScorer, Scorer
from pres.models import MDGNN
from pres.sampling import NegativeSampler, TemporalBatches

EVALUATION_SEED = 2**32  # negatives of evaluation are drawn apart from those of any epoch

Group = Literal["all", "seen", "unseen"]


@dataclass(frozen=True, eq=False)
class LinkScores:
    """The scores of some events of a part and of their negatives, on the CPU."""

    positive: Tensor  # [n] float32
    negative: Tensor  # [n, count] float32
    fallback: Tensor  # [n, count] bool: drawn from the pool, for lack of a history to draw from
    batches: tuple[int, ...]  # events per batch, none empty

    @property
    def metrics(self) -> LinkMetrics:
        """The metrics of these events."""
        return link_metrics(self.positive, self.negative, self.batches)

    @property
    def fallback_share(self) -> float:
        """Share of the negatives that are not what their strategy asks for, but random ones."""
        return float(self.fallback.double().mean())

    def select(self, chosen: Tensor) -> LinkScores | None:
        """Return the scores of the events that a mask `[n]` chooses, each in its batch; None if none."""
        if not bool(chosen.any()):
            return None
        left = [int(part.sum()) for part in torch.split(chosen, list(self.batches))]
        return LinkScores(
            self.positive[chosen],
            self.negative[chosen],
            self.fallback[chosen],
            tuple(size for size in left if size),
        )

    def by_group(self, seen: Tensor) -> dict[Group, LinkScores | None]:
        """Return the scores of all events, of those that a mask `[n]` calls seen, and of the others."""
        return {"all": self, "seen": self.select(seen), "unseen": self.select(~seen)}


def seen_in(train: EventStream, part: EventStream) -> Tensor:
    """Return, for each event `[n]` of a part, whether both its endpoints occur in the training part."""
    known = occurring(part.num_nodes, train.src, train.dst)
    return (known[part.src] & known[part.dst]).cpu()


def link_scores(
    scorer: Scorer | MDGNN,
    part: EventStream,
    samplers: Sequence[NegativeSampler],
    *,
    batch_size: int = 200,
    negatives: int = 1,
    seed: int = 0,
    sequential: bool = False,
    staleness: Literal[0] | None = None,
    on_batch: Callable[[EventStream], None] | None = None,
) -> list[LinkScores]:
    """Return the scores of a part of a stream against the negatives of each sampler, in one pass over it.

    The scorer must have taken in what lies before the part, and takes in the part. A step needs memory for
    one batch; the scores of the part are kept in 4 bytes each.

    Args:
        scorer: A model, a baseline, or anything else with `Scorer`'s two methods.
        part: Consecutive events of the scorer's stream.
        samplers: Where negatives come from; what they draw is fixed by ``seed``.
        batch_size: Events per batch, whatever the training batch was.
        negatives: Negatives per event and sampler.
        seed: The same seed gives the same negatives.
        sequential: Whether a model's memory moves with every event, see `MDGNN.update_state`.
        staleness: 0 scores every event after all strictly earlier events, in order; None with the memory at
            the beginning of its batch. Negatives are the same. Scorers other than models are given
            batches of one event, or of all at one time.
        on_batch: Called after every batch, for instance to show progress.
    """
    if len(part) == 0:
        raise OptionError("there are no events to evaluate on.")
    check_negatives(negatives)
    if staleness not in (0, None):
        raise OptionError(f"staleness={staleness!r}: 0, or None for all of a batch.")
    batches = drawn_in = TemporalBatches(part, batch_size)
    if isinstance(scorer, MDGNN):
        _check_position(scorer, part)
        if staleness == 0 and scorer.smoothing is not None and not scorer.smoothing.written:
            # Algorithm 2 goes with standard memory alone, so its batches are single events.
            sequential, staleness, batches = False, None, TemporalBatches(part, 1, ties="whole")
        elif staleness == 0:
            batches = TemporalBatches(part, batch_size, ties="whole")
        scorer = ModelScorer(scorer, sequential, staleness)
    elif staleness == 0:
        batches = TemporalBatches(part, 1, ties="whole")
    samples = [[s.sample(batch, negatives, EVALUATION_SEED + seed) for batch in drawn_in] for s in samplers]
    drawn = torch.cat([torch.cat([each.nodes for each in every]) for every in samples], dim=1)
    positive, negative = torch.empty(len(part)), torch.empty(drawn.shape)
    for batch in batches:
        rows = slice(batch.offset - part.offset, batch.offset - part.offset + len(batch))
        scored, against = scorer.score(batch, drawn[rows])
        _check_scores(batch, scored, against, drawn.shape[1])
        scorer.update_state(batch)
        positive[rows], negative[rows] = scored, against
        if on_batch is not None:
            on_batch(batch)
    sizes = tuple(len(batch) for batch in drawn_in)
    fallbacks = [torch.cat([each.fallback for each in every]).cpu() for every in samples]
    return [
        LinkScores(positive, own, fallback, sizes)
        for own, fallback in zip(torch.split(negative, negatives, dim=1), fallbacks, strict=True)
    ]


def _check_position(model: MDGNN, part: EventStream) -> None:
    """Raise unless the memory has taken in exactly what lies before the part."""
    known = model.memory.position
    if known < part.offset:
        raise OptionError(
            f"the memory has taken in {known:,} events, but the part begins at event {part.offset:,}. "
            "Give it what lies between with update_state(), or restore the state of a run."
        )


def evaluate(
    model: MDGNN | Scorer, part: EventStream, sampler: NegativeSampler, **options: Any
) -> LinkMetrics:
    """Return the metrics of ``model`` on a part of its stream, which its memory takes in on the way.

    The memory must be as it is just before the part. Each batch is scored before it is taken in.
    `link_scores` also gives the scores themselves, and the metrics of a group of events.

    Args:
        model: The model, in evaluation mode for the while; or any other `Scorer`.
        part: Consecutive events of the model's stream.
        sampler: Where negatives come from; fixed by ``seed``.
        **options: As of `link_scores`: ``batch_size``, ``negatives``, ``seed``, ``sequential``,
            ``staleness`` and ``on_batch``.
    """
    return link_scores(model, part, [sampler], **options)[0].metrics


def check_negatives(count: int) -> None:
    """Raise unless events can be held against so many negatives."""
    if count < 1:
        raise OptionError(f"negatives={count}: an event is held against at least one.")


def _check_scores(batch: EventStream, positive: Tensor, negative: Tensor, count: int) -> None:
    b = len(batch)
    if positive.shape != (b,) or negative.shape != (b, count):
        raise OptionError(
            f"the scorer gave scores of shapes {list(positive.shape)} and {list(negative.shape)}, expected "
            f"[{b}] for the events and [{b}, {count}] for their negatives."
        )
    # float32 is what is kept: a larger number would be infinite there.
    if not bool(positive.float().isfinite().all() and negative.float().isfinite().all()):
        raise DivergedError(
            f"scores are not finite numbers in the batch of events {batch.offset:,} to "
            f"{batch.offset + b - 1:,}. Train the model with a smaller lr."
        )
