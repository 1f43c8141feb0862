"""How good the three models are: several seeds each, link prediction and node classification, by one command.

Every run is kept in a folder of its own, so that an interrupted study goes on where it stopped:

    python -m benchmarks.accuracy --folder runs/accuracy --datasets wikipedia mooc uci --epochs 10 --jobs 2
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import pres
from benchmarks.jobs import command, do_all, spread, train

MODELS = ("jodie", "apan", "tgn")


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--folder", type=Path, default=Path("runs/accuracy"))
    parser.add_argument("--datasets", nargs="+", default=["wikipedia", "mooc", "uci"])
    parser.add_argument("--models", nargs="+", default=list(MODELS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, one thread each")
    given = parser.parse_args()
    jobs = [
        (dataset, model, seed)
        for dataset in given.datasets
        for model in given.models
        for seed in range(given.seeds)
    ]
    failed = do_all(jobs, lambda job: finish(given.folder, job[0], job[1], job[2], given.epochs), given.jobs)
    if failed:
        raise SystemExit("\n".join(failed))
    print_table(given.folder, jobs)


def finish(root: Path, dataset: str, model: str, seed: int, epochs: int) -> None:
    """Train, classify and (the first seed) compare what is not done yet, each in a process of its own."""
    folder = root / f"{dataset}-{model}-{seed}"
    train(folder, dataset, ["--model", model, "--seed", seed, "--epochs", epochs, "--patience", epochs])
    for name in ("evaluate", "classify") if seed == 0 else ("classify",):
        target = folder / f"{name}.json"
        if not target.exists() and (name == "evaluate" or pres.load(dataset).label is not None):
            text = json.dumps(command(name, folder))
            target.write_text(text)


def print_table(root: Path, jobs: list[tuple[str, str, int]]) -> None:
    """Print mean and standard deviation over the seeds, in points."""
    print("dataset     model   val AP          test AP         test AUC        classification AUC (test)")
    for dataset, model in dict.fromkeys(job[:2] for job in jobs):
        folders = [root / f"{d}-{m}-{s}" for d, m, s in jobs if (d, m) == (dataset, model)]
        runs = [json.loads((folder / "run.json").read_text()) for folder in folders]
        labels = [folder / "classify.json" for folder in folders]
        columns = [
            spread([run["val"]["ap"] for run in runs]),
            spread([run["test"]["ap"] for run in runs]),
            spread([run["test"]["auc"] for run in runs]),
            spread([json.loads(path.read_text())["test"]["auc"] for path in labels if path.exists()]),
        ]
        print(f"{dataset:<11} {model:<7} " + " ".join(f"{column:<15}" for column in columns))


if __name__ == "__main__":
    main()
