"""What keeping a run costs: the time of an epoch, and of what is written after it.

``python -m benchmarks.checkpoints wikipedia --model tgn --batch-size 200``
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pres
from pres.models.registry import MODELS, build_model
from pres.training import FitConfig, Trainer
from pres.training.fit import describe
from pres.training.folder import RunFolder

TIMES = 5  # an epoch's files are written; the median counts


def main() -> None:
    """Print what an epoch and its files take."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("dataset")
    parser.add_argument("--model", default="tgn", choices=MODELS)
    parser.add_argument("--batch-size", type=int, default=200)
    given = parser.parse_args()
    events = pres.load(given.dataset)
    model = build_model(given.model, events, {})
    trainer = Trainer(model, events, FitConfig(batch_size=given.batch_size))
    with tempfile.TemporaryDirectory(dir=".") as place:
        folder = RunFolder(Path(place) / "run")
        folder.begin(describe(trainer, events), trainer.state())
        epoch = _taken(trainer.run_epoch)
        every = [_taken(lambda: folder.keep_epoch(trainer.state(), trainer.best)) for _ in range(TIMES)]
        kept = [statistics.median(one) for one in zip(*every, strict=True)]
        shown = _taken(lambda: folder.show(trainer.history, now=True))
        size = sum(path.stat().st_size for path in folder.path.glob("*t.safetensors"))
        folder.release()
    print(f"{model.title} on {events.info.title}, batches of {given.batch_size:,}: {size / 1e6:.1f} MB")
    for i, what in enumerate(("processor time", "elapsed time")):
        print(
            f"{what}: epoch with validation {epoch[i]:.2f} s, both states {kept[i]:.3f} s "
            f"({kept[i] / epoch[i]:.2%}), table and picture {shown[i]:.3f} s"
        )


def _taken(work: Callable[[], object]) -> tuple[float, float]:
    """Return the processor time and the elapsed time of some work."""
    start = time.process_time(), time.perf_counter()
    work()
    return time.process_time() - start[0], time.perf_counter() - start[1]


if __name__ == "__main__":
    main()
