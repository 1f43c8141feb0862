"""Whether what was learned lasts when a stream slows down, without a look at its test days.

Of each stream the first 85 % are kept, which end before the usual test part, and split 70 / 15 / 15 in their
turn. Whatever comes after training then takes five times as long: every gap is one that training hardly saw.

    python -m benchmarks.slowed --datasets uci --seeds 2

The last settings of the preset were chosen by this and by validation as usual (docs/lab-notes.md).
"""

from __future__ import annotations

import argparse
import dataclasses
from typing import Any

import torch

import pres
from benchmarks.jobs import spread
from benchmarks.large_batches import EPOCHS
from benchmarks.large_batches_report import STANDARD
from pres.data.stream import EventStream
from pres.models.registry import build_model
from pres.training.config import PRESETS

SLOWER = 5
MAX_TIME_DELTA = PRESETS["large"]["max_time_delta"]
WAYS: dict[str, dict[str, Any]] = {
    "standard": {},
    "standard, time limit": {"max_time_delta": MAX_TIME_DELTA},
    "muon": {"optimiser": "muon"},
    "scan": {"preset": "large", "batch_size": 3200},
    "scan, b = 800": {"preset": "large", "batch_size": 800},
    "scan, no time limit": {"preset": "large", "batch_size": 3200, "max_time_delta": None},
}
MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "jodie": ("jodie", {}),
    "tgn": ("tgn", {"embed": "node"}),
    "apan": ("apan", {}),
}


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--datasets", nargs="+", default=["uci"])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--slower", type=float, default=SLOWER, help="1 leaves the stream's pace as it is")
    given = parser.parse_args()
    print(f"| stream | model | way | validation AP | AP after it | against standard b = {STANDARD} |")
    print("|---|---|---|---|---|---|")
    for dataset in given.datasets:
        events = pres.load(dataset)
        events = slowed(events[: int(0.85 * len(events))], given.slower)
        for model in given.models:
            base: list[float] = []
            for way in dict.fromkeys(["standard", *given.ways]):
                runs = [trained(model, events, dataset, WAYS[way], seed) for seed in range(given.seeds)]
                found = [run.test.ap for run in runs]
                base = base or found
                against = 100 * sum(a - b for a, b in zip(found, base, strict=True)) / len(found)
                val = spread([run.val.ap for run in runs])
                print(
                    f"| {dataset} | {model} | {way} | {val} | {spread(found)} | {against:+.2f} |", flush=True
                )


def slowed(events: EventStream, times: float) -> EventStream:
    """Return the stream with what comes after its training part that many times slower."""
    t, end = events.t.clone().double(), len(events.split().train)
    t[end:] = t[end] + times * (t[end:] - t[end])
    return dataclasses.replace(events, t=t)


def trained(model: str, events: EventStream, dataset: str, way: dict[str, Any], seed: int) -> pres.Run:
    """Return a run as those of the study of large batches are."""
    kind, options = MODELS[model]
    torch.manual_seed(seed)
    epochs = EPOCHS.get(dataset, 5)
    options = options | ({"cell": "scan"} if "preset" in way else {})
    return pres.fit(
        build_model(kind, events, options), events, epochs=epochs, patience=epochs, seed=seed, **way
    )


if __name__ == "__main__":
    main()
