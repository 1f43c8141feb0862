"""How fast evaluation is beside training: events per second against 1, 20 and 100 negatives each."""

from __future__ import annotations

from functools import partial

from torch import Tensor

import pres
from benchmarks.timing import median_seconds
from pres.data.stream import EventStream
from pres.errors import PresError
from pres.evaluation.link import evaluate
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.sampling import NegativeSampler
from pres.training.config import FitConfig
from pres.training.trainer import Trainer

BATCH = 200
NEGATIVES = (1, 20, 100)


def run(batches: int = 10) -> None:
    """Print the speed of training and of evaluation on the same events."""
    try:
        events = pres.load("wikipedia")
    except PresError:
        events = pres.load("synthetic")
    print(f"\nevents per second, {events.info.title}, batches of {BATCH}")
    print(f"{'model':<16} {'training':>9} " + " ".join(f"{n:>4} negatives" for n in NEGATIVES))
    sampler = NegativeSampler(events)
    for name, kind, options in (
        ("TGN per event", "tgn", {}),
        ("TGN per node", "tgn", {"embed": "node"}),
        ("JODIE", "jodie", {}),
        ("APAN", "apan", {}),
    ):
        model = build_model(kind, events, options)
        trainer = Trainer(model, events, FitConfig.of({"batch_size": BATCH}))
        for _ in range(40):
            trainer.train_next_batch()
        part = events[40 * BATCH : (40 + batches) * BATCH]
        state = model.memory.snapshot()
        contestants = {"training": partial(train, trainer, state, batches)} | {
            str(count): partial(score, model, part, sampler, state, count) for count in NEGATIVES
        }
        times = median_seconds(contestants)
        print(f"{name:<16} {len(part) / times['training']:>9,.0f} ", end="")
        print(" ".join(f"{len(part) / times[str(count)]:>14,.0f}" for count in NEGATIVES))


def train(trainer: Trainer, state: dict[str, Tensor], batches: int) -> None:
    trainer.model.memory.restore(state)
    trainer.batch = 40
    for _ in range(batches):
        trainer.train_next_batch()


def score(
    model: MDGNN, part: EventStream, sampler: NegativeSampler, state: dict[str, Tensor], count: int
) -> None:
    model.memory.restore(state)
    evaluate(model, part, sampler, batch_size=BATCH, negatives=count)
