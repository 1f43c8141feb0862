"""What PRES costs: training time beside the plain model, and the filter against nodes."""

from __future__ import annotations

import itertools
from functools import partial
from typing import Any

import torch

import pres
from benchmarks.timing import median_seconds
from pres.errors import PresError
from pres.models.registry import build_model
from pres.smoothing import PRES, PRESSmoothing, Update
from pres.training.config import FitConfig
from pres.training.trainer import Trainer

WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "PRES": {"smoothing": PRES()},
    "PRES-S": {"smoothing": PRES(filter=False)},
}
EVENTS_PER_ROUND = 7_200


def run() -> None:
    against_the_plain_model()
    against_nodes()


def against_the_plain_model() -> None:
    """Print the training time of each way over that of the plain model, for the same events."""
    try:
        events = pres.load("wikipedia")
    except PresError:
        events = pres.load("synthetic")
    print(f"\ntraining time over the plain model's, {events.info.name}, weights move with the memory")
    print(
        f"{'model':<7} {'b':>5} {'plain, events/s':>16}  " + "  ".join(f"{way:>13}" for way in list(WAYS)[1:])
    )
    for model in ("tgn", "apan", "jodie"):
        for b in (600, 2_400):
            trainers = {
                way: Trainer(build_model(model, events), events, FitConfig.of(options | {"batch_size": b}))
                for way, options in WAYS.items()
            }
            batches = EVENTS_PER_ROUND // b
            times = median_seconds({way: partial(train, t, batches) for way, t in trainers.items()}, rounds=7)
            ratios = "  ".join(f"{times[way] / times['plain']:>13.2f}" for way in list(WAYS)[1:])
            print(f"{model:<7} {b:>5} {EVENTS_PER_ROUND / times['plain']:>16,.0f}  {ratios}")


def train(trainer: Trainer, batches: int) -> None:
    for _ in range(batches):
        trainer.train_next_batch()


def against_nodes(touched: int = 2_000, dim: int = 100) -> None:
    """Print the time to correct and observe some nodes, and the storage, for few and for many nodes."""
    print(f"\nthe filter on {touched:,} nodes of a batch, memory {dim}")
    print(f"{'nodes':>10} {'anchors':>8} {'ms per batch':>13} {'storage, MB':>12}")
    made = {}
    for nodes, anchors in ((10_000, None), (1_000_000, None), (1_000_000, 10_000)):
        kept = None if anchors is None else torch.arange(anchors)
        made[nodes, anchors] = PRESSmoothing(PRES(), nodes, dim, anchors=kept)

    mails = itertools.count(1)

    def work(smoothing: PRESSmoothing, nodes: int) -> None:
        some, everyone = torch.randint(0, nodes, (touched,)), torch.arange(touched)
        previous, measured, elapsed = torch.ones(touched, dim), torch.zeros(touched, dim), torch.ones(touched)
        with torch.no_grad():
            corrected = smoothing.correct(some, previous, measured, elapsed)
        newest = torch.full_like(some, next(mails))
        smoothing.observe(Update(some, previous, measured, corrected, elapsed, newest), {"event": everyone})

    times = median_seconds({str(key): partial(work, f, key[0]) for key, f in made.items()}, rounds=21)
    for (nodes, anchors), smoothing in made.items():
        size = sum(buffer.numel() * buffer.element_size() for buffer in smoothing.buffers())
        spent = 1e3 * times[str((nodes, anchors))]
        print(f"{nodes:>10,} {anchors or '–':>8} {spent:>13.2f} {size / 1e6:>12,.1f}")
