"""Training speed against the temporal batch: events per second, and where a speed-up comes from.

    python -m benchmarks batches

A larger step shares work: a node that many of its events see is measured and embedded once. What that saves
is counted, as matrix products per event. The rest of a speed-up is fixed cost per step, spread over more
events.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from torch.utils.flop_counter import FlopCounterMode

import pres
from benchmarks.in_turn import in_turn
from benchmarks.timing import median_seconds
from pres.errors import PresError
from pres.events import EventStream
from pres.models.build import build_model
from pres.training import FitConfig
from pres.training.trainer import Trainer

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "jodie": ("jodie", {}),
    "apan": ("apan", {}),
    "tgn": ("tgn", {"embed": "node"}),
    "tgn per event": ("tgn", {}),
}
MODES: dict[str, dict[str, Any]] = {
    "standard": {},
    "steps of 200": {"step_size": 200},
    "preset": {"preset": "large"},
    "preset, Adam": {"preset": "large", "optimiser": "adam"},
    "preset, exact": {"preset": "large", "memory": "exact"},
}
SIZES = (200, 800, 3200)
EVENTS_PER_ROUND = 12_800
ROUNDS = 9


def run() -> None:
    try:
        events = pres.load("wikipedia")
    except PresError:
        events = pres.load("synthetic")
    print(f"\ntraining on {events.info.name}, events/s (ratio to standard b = 200 = sharing x fixed cost)")
    for name, (model, options) in MODELS.items():
        trainers, products = {}, {}
        for mode, settings in MODES.items():
            for b in SIZES:
                if b > SIZES[0] or mode == "standard":
                    trainer = trainer_of(model, options, events, settings | {"batch_size": b})
                    products[mode, b] = products_per_event(trainer)
                    trainers[f"{mode} {b}"] = partial(train, trainer)
        times = median_seconds(trainers, ROUNDS)
        base, base_products = times["standard 200"], products["standard", 200]
        for mode, b in products:
            spent = times[f"{mode} {b}"]
            sharing = base_products / products[mode, b]
            ratio = base / spent
            print(
                f"{name:<14} {mode:<20} {b:>5} {EVENTS_PER_ROUND / spent:>8,.0f}"
                f"   {ratio:.2f} = {sharing:.2f} x {ratio / sharing:.2f}",
                flush=True,
            )


def trainer_of(model: str, options: dict[str, Any], events: EventStream, settings: dict[str, Any]) -> Trainer:
    return in_turn(Trainer(build_model(model, events, options), events, FitConfig.of(settings)))


def train(trainer: Trainer) -> None:
    """Train on the next events of the stream; from its beginning again when it ends."""
    batches = EVENTS_PER_ROUND // trainer.config.batch_size
    if trainer.batch + batches > len(trainer.batches):
        trainer.batch = 0
    for _ in range(batches):
        trainer.train_next_batch()


def products_per_event(trainer: Trainer) -> float:
    """Return the operations of matrix products that an event takes, backward too."""
    train(trainer)  # memories are empty at first, and mail is missing
    with FlopCounterMode(display=False) as counter:
        train(trainer)
    return int(counter.get_total_flops()) / EVENTS_PER_ROUND
