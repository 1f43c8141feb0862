"""What large temporal batches cost, and what the scan makes of them: by model, stream, way, size and seed.

Runs are kept, so that an interrupted study goes on; the table is written as Parquet:

    python -m benchmarks.large_batches --folder runs/large --datasets uci --models jodie --seeds 3 --jobs 2

Every run of a stream has the same number of epochs, and so sees the same events. Ways:

- ``standard``: the model without a scan, by Adam.
- ``muon``: the same by optimiser, schedule and time limit of ``preset="large"``, at a quarter of its rate,
  which is the better one on validation.
- ``scan``: the scan, by that preset.
- ``scan, Adam``: the scan, by Adam.
- ``equal time``: standard training for as many epochs more as its batches are faster.

Every run is tested at staleness 200, the field's, and at staleness 0. A stream's name may end in a number:
``uci-35000`` is its first 35,000 events.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

import pres
from benchmarks.jobs import command, do_all, train
from benchmarks.large_batches_report import STANDARD, markdown
from pres.training.config import PRESETS

LARGE = PRESETS["large"]
USUAL = [
    "--optimiser",
    "muon",
    "--warmup",
    LARGE["warmup"],
    "--max-time-delta",
    LARGE["max_time_delta"],
]
WAYS: dict[str, list[object]] = {
    "standard": [],
    "muon": USUAL,
    "scan": ["--preset", "large"],
    "scan, Adam": ["--option", "cell=scan"],
    "equal time": [],
}
BY_ROOT = ("scan, Adam", "equal time")  # whose rate, by Adam, grows with the root of the batch
# Which sizes a way is studied at, with all seeds and with the first alone; None is as the preset chooses.
STUDIED: dict[str, tuple[tuple[int | None, ...], tuple[int | None, ...]]] = {
    "standard": ((200,), ()),
    "muon": ((200, 3200), ()),
    "scan": ((200, 800, 3200), (12800,)),
    "scan, Adam": ((), (800, 3200)),
    "equal time": ((), (3200,)),
}
SHORT: dict[str, tuple[tuple[int | None, ...], tuple[int | None, ...]]] = {
    "standard": ((200,), ()),
    "muon": ((200,), ()),
    "scan": ((None,), ()),
}
FASTER = 4.5  # times as fast as of 200 standard batches of 3,200 are: `python -m benchmarks batches`
EPOCHS = {"uci": 6, "wikipedia": 4, "mooc": 5, "enron": 4, "synthetic": 10}
MODELS: dict[str, list[object]] = {
    "tgn": ["--model", "tgn"],
    "tgn per node": ["--model", "tgn", "--option", "embed=node"],
    "jodie": ["--model", "jodie"],
    "apan": ["--model", "apan"],
}


class Job(NamedTuple):
    """One training run; ``b`` is None where the preset chooses it."""

    seed: int
    dataset: str
    model: str
    b: int | None
    way: str

    @property
    def path(self) -> Path:
        name = f"{self.model}-{self.way}-{self.b or 'auto'}-{self.seed}"
        return Path(self.dataset) / name.replace(" ", "_").replace(",", "")


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--folder", type=Path, default=Path("runs/large"))
    parser.add_argument("--datasets", nargs="+", default=["uci", "wikipedia", "mooc"])
    parser.add_argument("--models", nargs="+", default=["jodie", "apan", "tgn"], choices=MODELS)
    parser.add_argument("--ways", nargs="+", default=list(WAYS), choices=WAYS)
    parser.add_argument("--batch-sizes", nargs="+", type=int, default=None, help="only these of each way's")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, one thread each")
    parser.add_argument("--results", type=Path, help="a Parquet file of runs that are not done again")
    parser.add_argument("--report", action="store_true", help="only tables, of the runs that are done")
    given = parser.parse_args()
    kept = pl.read_parquet(given.results) if given.results is not None else None
    jobs = [
        job
        for job in study(given.seeds, given.datasets, given.models, given.ways)
        if given.batch_sizes is None or job.b in (STANDARD, *given.batch_sizes)
        if kept is None or not holds(kept, job)
    ]
    for dataset in given.datasets:
        source_of(dataset, given.folder)  # before several jobs would make it at once
    failed = [] if given.report else do_all(jobs, lambda job: do(job, given.folder), given.jobs)
    done = [job for job in jobs if (given.folder / job.path / "evaluated.json").exists()]
    if not done and kept is None:
        raise SystemExit("\n".join(failed) or f"{given.folder} holds no finished run of these.")
    table = pl.DataFrame([row(job, given.folder / job.path) for job in done], infer_schema_length=None)
    if kept is not None:
        table = pl.concat([kept, table], how="diagonal_relaxed")
    table.write_parquet(given.folder / "large_batches.parquet")
    print(markdown(table))
    if failed:
        raise SystemExit("\n".join(failed))


def study(seeds: int, datasets: list[str], models: list[str], ways: list[str]) -> Iterator[Job]:
    """Yield the jobs, seed after seed, so that a study that stops early has whole pairs."""
    for seed, dataset, model in itertools.product(range(seeds), datasets, models):
        studied = STUDIED if dataset in ("uci", "wikipedia", "mooc") else SHORT
        for way in (way for way in ways if way in studied):
            always, once = studied[way]
            for b in (*always, *(once if seed == 0 else ())):
                yield Job(seed, dataset, model, b, way)


def holds(kept: pl.DataFrame, job: Job) -> bool:
    """Return whether a table of runs has this one; a size that the preset chooses is whatever it chose."""
    wanted = {name: value for name, value in job._asdict().items() if value is not None}
    return not kept.filter(**wanted).is_empty()


def do(job: Job, root: Path) -> None:
    """Train a run and evaluate it at both values of staleness, as far as that is not done."""
    folder, name = root / job.path, job.dataset.split("-")[0]
    epochs = round(EPOCHS.get(name, 5) * (FASTER if job.way == "equal time" else 1))
    settings = [
        *MODELS[job.model],
        "--epochs",
        epochs,
        "--patience",
        epochs,
        "--seed",
        job.seed,
        *WAYS[job.way],
    ]
    if job.b is not None:
        settings += ["--batch-size", job.b]
        settings += ["--lr", 1e-3 * math.sqrt(job.b / STANDARD)] if job.way in BY_ROOT else []
    source, reading = source_of(job.dataset, root)
    train(folder, source, [*reading, *settings])
    if not (folder / "evaluated.json").exists():
        found = command("evaluate", folder, "--strategy", "random", "--no-baselines")
        partial = folder / "evaluated.json.part"
        partial.write_text(json.dumps(found))
        partial.replace(folder / "evaluated.json")


def source_of(dataset: str, root: Path) -> tuple[str, list[object]]:
    """Return what `pres train` is to read, and how; the beginning of a stream is written as a file first."""
    name, _, first = dataset.partition("-")
    if not first:
        return dataset, []
    path = root / f"{dataset}.parquet"
    whole = pres.load(name)
    x = [f"x{i}" for i in range(0 if whole.x is None else whole.x.shape[1])]
    if not path.exists():
        events = whole[: int(first)]
        columns = {"src": events.src, "dst": events.dst, "t": events.t}
        if events.x is not None:
            columns |= {column: events.x[:, i] for i, column in enumerate(x)}
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_suffix(f".{os.getpid()}")
        pl.DataFrame({column: values.numpy() for column, values in columns.items()}).write_parquet(partial)
        partial.replace(path)
    flags: list[object] = ["--src", "src", "--dst", "dst", "--time", "t"]
    if whole.bipartite:
        flags.append("--bipartite")
    for column in x:
        flags += ["--x", column]
    return str(path), flags


def row(job: Job, folder: Path) -> dict[str, object]:
    """Return one run as a row."""
    run, evaluated = (json.loads((folder / name).read_text()) for name in ("run.json", "evaluated.json"))
    history = run["history"]
    return job._asdict() | {
        "b": run["config"]["batch_size"],
        "val_ap": run["val"]["ap"],
        "test_ap": run["test"]["ap"],
        "test_ap_fresh": fresh_of(evaluated),
        "epochs": len(history),
        "seconds": [epoch["seconds"] for epoch in history],
        "val_aps": [epoch["val"]["ap"] for epoch in history],
        "events_per_second": run["events_per_second"],
    }


def fresh_of(evaluated: dict[str, Any]) -> float:
    """Return the AP at staleness 0."""
    (found,) = [
        row["metrics"]["ap"]
        for row in evaluated["rows"]
        if row["staleness"] == 0 and row["group"] == "all" and row["strategy"] == "random"
    ]
    return float(found)


if __name__ == "__main__":
    main()
