"""How long training takes to the accuracy of standard training at b = 200, by way.

    python -m benchmarks.time_to_ap --dataset wikipedia --models jodie tgn --epochs 4

The ways train in turns, a quarter of an epoch each, in one process. Validation time does not count. The goal
is the best validation AP of standard training at b = 200, less 0.3 points.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

import pres
from benchmarks.in_turn import in_turn
from benchmarks.large_batches import MODELS
from pres.cli.train import named_values
from pres.data.stream import EventStream
from pres.evaluation.link import evaluate
from pres.models.registry import build_model
from pres.sampling import TemporalBatches
from pres.training.config import PRESETS, FitConfig
from pres.training.trainer import Trainer

LARGE = PRESETS["large"]
SLACK = 0.003
MUON = {
    "optimiser": "muon",
    "warmup": LARGE["warmup"],
    "max_time_delta": LARGE["max_time_delta"],
}
WAYS: dict[str, dict[str, Any]] = {
    "standard 200": {"batch_size": 200},
    "muon 200": {"batch_size": 200} | MUON,
    "scan 800": {"preset": "large", "batch_size": 800},
    "scan 3200": {"preset": "large", "batch_size": 3200},
}


class Timed:
    """A training whose validation AP is known after every quarter of an epoch, with its seconds so far."""

    def __init__(self, model: str, events: EventStream, options: dict[str, Any]) -> None:
        flags = MODELS[model]
        given = named_values([str(flag) for flag in flags[3::2]], "option")
        given |= {"cell": "scan"} if "preset" in options else {}
        made = build_model(str(flags[1]), events, given, options.get("seed", 0))
        self.trainer = in_turn(Trainer(made, events, FitConfig.of(options)))
        self.seconds, self.curve = 0.0, list[tuple[float, float]]()

    def train_to(self, share: float) -> None:
        """Train until so much of the epoch is done, and validate there."""
        trainer = self.trainer
        before, goal = trainer.seconds, share * len(trainer.batches)
        while trainer.batch < min(goal, len(trainer.batches)):
            trainer.train_next_batch()
        self.seconds += trainer.seconds - before
        self.curve.append((self.seconds, self.validate()))
        if trainer.batch == len(trainer.batches):
            trainer.epoch, trainer.batch, trainer.seconds, trainer.sums = trainer.epoch + 1, 0, 0.0, {}

    def validate(self) -> float:
        """Return the validation AP of the weights as they are; memory first takes in the rest of training."""
        trainer, model = self.trainer, self.trainer.model
        known = model.memory.snapshot()
        model.eval()
        with torch.no_grad():
            for batch in TemporalBatches(trainer.split.train[model.memory.position :], 200):
                model.update_state(batch)
        found = evaluate(model, trainer.split.val, trainer.sampler, seed=trainer.config.seed).ap
        model.memory.restore(known)
        return found


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--dataset", default="wikipedia")
    parser.add_argument("--models", nargs="+", default=["jodie", "tgn"], choices=MODELS)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, default=None, help="also write the curves here")
    given = parser.parse_args()
    events = pres.load(given.dataset)
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for model in given.models:
        shared = {"epochs": given.epochs, "seed": given.seed}
        chosen = dict.fromkeys(["standard 200", *given.ways])
        ways = {way: Timed(model, events, WAYS[way] | shared) for way in chosen}
        for _ in range(given.epochs):
            for share in (0.25, 0.5, 0.75, 1.0):
                for way in ways.values():
                    way.train_to(share)
        curves[model] = {name: way.curve for name, way in ways.items()}
        report(given.dataset, model, curves[model])
        if given.json is not None:
            given.json.write_text(json.dumps(curves))


def report(dataset: str, model: str, curves: dict[str, list[tuple[float, float]]]) -> None:
    """Print when each way first reaches the goal, and the ratio to standard training."""
    goal = max(ap for _, ap in curves["standard 200"]) - SLACK
    print(f"\n{dataset}, {model}: seconds of training to a validation AP of {100 * goal:.2f}")
    standard = reached(curves["standard 200"], goal)
    for name, curve in curves.items():
        seconds, best = reached(curve, goal), 100 * max(ap for _, ap in curve)
        whole = f"{curve[-1][0]:6.1f} s in all, best {best:.2f}"
        if seconds is None or standard is None:
            print(f"  {name:<24} not reached   {whole}")
        else:
            print(f"  {name:<24} {seconds:6.1f} s, {standard / seconds:4.2f}x shorter   {whole}", flush=True)


def reached(curve: list[tuple[float, float]], goal: float) -> float | None:
    """Return the seconds after which a curve first is at the goal."""
    return next((seconds for seconds, ap in curve if ap >= goal), None)


if __name__ == "__main__":
    main()
