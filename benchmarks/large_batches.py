"""What large temporal batches cost, and what wins it back: by model, stream, batch size, way and seed.

Runs are kept, so that an interrupted study goes on; the table is written as Parquet:

    python -m benchmarks.large_batches --folder runs/large --datasets uci --models jodie --seeds 3 --jobs 2

Every run of a dataset has the same number of epochs, and so sees the same events. ``standard`` moves weights
with the memory; ``equal steps`` moves them every 200 events, as often as b = 200 does; ``pres`` is ours of
PRES; ``preset`` is ``preset="large"``; ``exact`` is the preset with exact memory; ``muon`` and
``horizon`` are standard training by the preset's optimiser and with its horizon, at b = 200 too.
Only ``equal time`` is standard training for as many epochs more as its batches are faster, so as long as
b = 200.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path
from typing import NamedTuple

import polars as pl

from benchmarks.jobs import do_all, train
from benchmarks.large_batches_report import STANDARD, markdown
from pres.training.config import PRESETS

WAYS: dict[str, list[object]] = {
    "standard": ["--lr-rule", "sqrt"],
    "equal steps": ["--step-size", STANDARD],
    "pres": ["--lr-rule", "sqrt", "--pres"],
    "muon": ["--lr-rule", "sqrt", "--optimiser", "muon"],
    "horizon": ["--lr-rule", "sqrt", "--horizon", PRESETS["large"]["horizon"]],
    "preset": ["--preset", "large"],
    "exact": ["--preset", "large", "--memory", "exact"],
    "equal time": ["--lr-rule", "sqrt"],
}
# How much faster standard batches are than those of 200, over all models; see `python -m benchmarks batches`.
FASTER = {400: 1.5, 800: 2.25, 1600: 3.25, 3200: 4.5, 6400: 5.0}
EPOCHS = {"uci": 6, "wikipedia": 4, "mooc": 5, "enron": 4, "synthetic": 10}
AT_STANDARD = ("muon", "horizon")  # a means of the preset by itself, at b = 200 too
WHOLE_BATCH = ("standard", "pres", "equal time", *AT_STANDARD)  # what negatives avoid, as the paper has it
MODELS: dict[str, list[object]] = {
    "tgn": ["--model", "tgn", "--option", "embed=node"],
    "tgn per event": ["--model", "tgn"],
    "jodie": ["--model", "jodie"],
    "apan": ["--model", "apan"],
}


class Job(NamedTuple):
    """One training run."""

    seed: int
    dataset: str
    model: str
    b: int
    way: str

    @property
    def path(self) -> Path:
        return Path(self.dataset) / f"{self.model}-{self.way}-{self.b}-{self.seed}".replace(" ", "_")


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--folder", type=Path, default=Path("runs/large"))
    parser.add_argument("--datasets", nargs="+", default=["uci", "wikipedia", "mooc"])
    parser.add_argument("--models", nargs="+", default=["jodie", "tgn", "apan"], choices=MODELS)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=[800, 3200])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=None, help="instead of each dataset's")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, one thread each")
    parser.add_argument("--report", action="store_true", help="only tables, of the runs that are done")
    given = parser.parse_args()
    if "equal time" in given.ways and (unknown := set(given.batch_sizes) - {STANDARD, *FASTER}):
        known = ", ".join(map(str, FASTER))
        parser.error(f"equal time is known of batches of {known}, not of {sorted(unknown)}: give --ways.")
    jobs = list(study(given.seeds, given.datasets, given.models, given.batch_sizes, given.ways))

    def do(job: Job) -> None:
        epochs = given.epochs or EPOCHS.get(job.dataset, 5)
        if job.way == "equal time":
            epochs = round(epochs * FASTER[job.b])
        length = ["--epochs", epochs, "--patience", epochs, "--seed", job.seed]
        flags = WAYS[job.way] if job.b != STANDARD or job.way in AT_STANDARD else []
        if job.way in WHOLE_BATCH:
            flags = [*flags, "--negative-window", job.b]
        train(
            given.folder / job.path, job.dataset, [*MODELS[job.model], "--batch-size", job.b, *length, *flags]
        )

    failed = [] if given.report else do_all(jobs, do, given.jobs)
    done = [job for job in jobs if (given.folder / job.path / "run.json").exists()]
    if not done:
        raise SystemExit("\n".join(failed) or f"{given.folder} holds no finished run of these.")
    table = pl.DataFrame([row(job, given.folder / job.path) for job in done])
    table.write_parquet(given.folder / "large_batches.parquet")
    print(markdown(table))
    if failed:
        raise SystemExit("\n".join(failed))


def study(seeds: int, datasets: list[str], models: list[str], sizes: list[int], ways: list[str]) -> list[Job]:
    """Return the jobs, seed after seed, so that a study that stops early has whole pairs."""
    batches = [(STANDARD, "standard"), *((STANDARD, way) for way in ways if way in AT_STANDARD)]
    batches += [(b, way) for b in sizes if b != STANDARD for way in ways]
    return [
        Job(seed, dataset, model, b, way)
        for seed, dataset, model, (b, way) in itertools.product(range(seeds), datasets, models, batches)
    ]


def row(job: Job, folder: Path) -> dict[str, object]:
    """Return one run as a row."""
    run = json.loads((folder / "run.json").read_text())
    history = run["history"]
    return job._asdict() | {
        "val_ap": run["val"]["ap"],
        "test_ap": run["test"]["ap"],
        "epochs": len(history),
        "seconds": [epoch["seconds"] for epoch in history],
        "val_aps": [epoch["val"]["ap"] for epoch in history],
        "events_per_second": run["events_per_second"],
    }


if __name__ == "__main__":
    main()
