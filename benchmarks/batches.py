"""Training speed and memory against the temporal batch: standard batches, and the scan of ``preset="large"``.

    python -m benchmarks batches

Every figure is of training alone. All trainers take turns in one process; speed is the median of rounds.
A batch is one optimiser step. The memory that a trainer takes is measured in a process of its own (Linux).
"""

from __future__ import annotations

import multiprocessing
from functools import partial
from typing import Any

import torch

import pres
from benchmarks.in_turn import in_turn
from benchmarks.timing import median_seconds
from pres.data.stream import EventStream
from pres.errors import PresError
from pres.models.registry import build_model
from pres.paper.experiments.peak import peak_memory
from pres.training.config import FitConfig
from pres.training.trainer import Trainer

STREAMS = ("wikipedia", "mooc")
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "jodie": ("jodie", {}),
    "apan": ("apan", {}),
    "tgn per node": ("tgn", {"embed": "node"}),
    "tgn per event": ("tgn", {}),
}
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[int, ...]]] = {
    "standard": ({}, {}, (200, 800, 3200)),
    "scan": ({"cell": "scan"}, {"preset": "large"}, (200, 800, 3200, 12800)),
}
EVENTS_PER_ROUND = 12_800
ROUNDS = 7
MEASURED = 25_600  # events that a trainer's memory is measured over, in batches of 3,200


def run() -> None:
    """Print events per second and MiB, and ratios to standard batches of 200 and of the same size."""
    streams = [name for name in STREAMS if _there(name)] or ["synthetic"]
    for stream in streams:
        events = pres.load(stream)
        print(
            f"\ntraining on {stream}: events/s (times standard b = 200), MiB (times standard of the same b)"
        )
        for name in MODELS:
            trainers = {
                (way, b): trainer_of(name, way, b, events)
                for way, (_, _, sizes) in WAYS.items()
                for b in sizes
            }
            work = {f"{way} {b}": partial(train, trainer) for (way, b), trainer in trainers.items()}
            times = median_seconds(work, ROUNDS)
            del trainers, work
            held = {way: _in_a_process(stream, name, way, 3200) for way in WAYS}
            for key, spent in times.items():
                told = f"{EVENTS_PER_ROUND / spent:>9,.0f} ({times['standard 200'] / spent:.2f})"
                way, b = key.split()
                memory, standard = held[way], held["standard"]
                if b == "3200" and memory is not None and standard is not None:
                    told += f"{memory / 2**20:>9,.0f} ({memory / standard:.2f})"
                print(f"{name:<14} {way:<9} {int(b):>6,} {told}", flush=True)


def trainer_of(name: str, way: str, b: int, events: EventStream) -> Trainer:
    """Return a trainer of a model that moves its memory in one of the ways."""
    (model, options), (cell, settings, _) = MODELS[name], WAYS[way]
    made = build_model(model, events, options | cell)
    return in_turn(Trainer(made, events, FitConfig.of(settings | {"batch_size": b})))


def train(trainer: Trainer, events: int = EVENTS_PER_ROUND) -> None:
    """Train on the next events of the stream; from its beginning again when it ends."""
    batches = events // trainer.config.batch_size
    if trainer.batch + batches > len(trainer.batches):
        trainer.batch = 0
    for _ in range(batches):
        trainer.train_next_batch()


def _there(stream: str) -> bool:
    try:
        pres.load(stream)
    except PresError:
        return False
    return True


def _in_a_process(stream: str, name: str, way: str, b: int) -> int | None:
    """Return the bytes that training takes at most beyond stream and model; None where nothing tells."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_of, (stream, name, way, b, torch.get_num_threads()))


def _peak_of(stream: str, name: str, way: str, b: int, threads: int) -> int | None:
    torch.set_num_threads(threads)
    trainer = trainer_of(name, way, b, pres.load(stream))
    with peak_memory() as peak:
        train(trainer, MEASURED)
    return peak()
