"""What each part of PRES is worth: variants of it against training without, by paired seeds.

Every variant differs from the default in one point. Runs are kept, so that an interrupted study goes on:

    python -m benchmarks.ablation --folder runs/ablation --dataset wikipedia --models jodie --seeds 3 --jobs 2

The table and the figure show validation (where choices are made) and test.
"""

from __future__ import annotations

import argparse
import itertools
import json
from pathlib import Path

import numpy as np
import polars as pl

from benchmarks.jobs import do_all, spread, train

PARTS = {"off": None, "S": ["filter=false"], "V": ["beta=0"], "both": []}
POINTS = {  # each changes one point of "both"
    "delta rate": ["delta=rate"],
    "delta innovation": ["delta=innovation"],
    "delta residual": ["delta=residual"],
    "gain fixed": ["gain=fixed"],
    "one component": ["components=1"],
    "embed measured": ["embed=measured"],
    "coherence of the batch": ["coherence=batch"],
    "anchors 500": ["anchors=500"],
    "beta 0.02": ["beta=0.02"],
    "beta 0.5": ["beta=0.5"],
    "beta 1": ["beta=1.0"],
}
FACTORS = {  # of the whole product, --product
    "delta": ["rate", "step", "innovation", "residual"],
    "gain": ["learned", "fixed"],
    "beta": ["0.0", "0.1", "0.5"],
}


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--folder", type=Path, default=Path("runs/ablation"))
    parser.add_argument("--dataset", default="wikipedia")
    parser.add_argument("--models", nargs="+", default=["jodie"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=2400)
    parser.add_argument("--step-size", type=int, default=200)
    parser.add_argument(
        "--option", action="append", default=[], help="of the models, as cell=rnn; repeatable"
    )
    parser.add_argument("--variants", nargs="+", default=None, help="some of them; all by default")
    parser.add_argument("--product", action="store_true", help="every delta x gain x beta instead")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once, one thread each")
    given = parser.parse_args()
    variants = product() if given.product else one_at_a_time()
    unknown = sorted(set(given.variants or []) - set(variants))
    if unknown:
        raise SystemExit(f"no variant {', '.join(unknown)}; there are {', '.join(variants)}.")
    chosen = {
        name: flags for name, flags in variants.items() if given.variants is None or name in given.variants
    }
    sizes = ["--batch-size", given.batch_size, "--step-size", given.step_size]
    length = ["--epochs", given.epochs, "--patience", given.epochs]
    jobs = list(itertools.product(range(given.seeds), given.models, chosen))

    def folder_of(job: tuple[int, str, str]) -> Path:
        seed, model, variant = job
        sizes_and_length = f"{given.batch_size}-{given.step_size}-{given.epochs}"
        place = "-".join([given.dataset, model, *given.option, sizes_and_length])
        return Path(given.folder) / place / f"{variant.replace(' ', '-')}-{seed}"

    def do(job: tuple[int, str, str]) -> None:
        seed, model, variant = job
        options = itertools.chain.from_iterable(("--option", option) for option in given.option)
        settings = ["--model", model, *options, "--seed", seed, *sizes, *length, *chosen[variant]]
        train(folder_of(job), given.dataset, settings)

    failed = do_all(jobs, do, given.jobs)
    if len(failed) == len(jobs):
        raise SystemExit("\n".join(failed))
    table = pl.DataFrame([row(job, folder_of(job)) for job in jobs if (folder_of(job) / "run.json").exists()])
    table.write_parquet(given.folder / "ablation.parquet")
    report(table, given.folder / "ablation.png")
    if failed:
        raise SystemExit("\n".join(failed))


def one_at_a_time() -> dict[str, list[object]]:
    """Return the flags of the parts, and of each point changed alone."""
    return {name: flags_of(options) for name, options in (PARTS | POINTS).items()}


def product() -> dict[str, list[object]]:
    """Return the flags of every combination of the factors, and of none."""
    combinations = itertools.product(*FACTORS.values())
    named = [
        [f"{name}={value}" for name, value in zip(FACTORS, values, strict=True)] for values in combinations
    ]
    return {"off": [], "S": flags_of(PARTS["S"])} | {
        " ".join(options): flags_of(options) for options in named
    }


def flags_of(options: list[str] | None) -> list[object]:
    if options is None:
        return []
    return ["--pres", *itertools.chain.from_iterable(("--pres-option", option) for option in options)]


def row(job: tuple[int, str, str], folder: Path) -> dict[str, object]:
    seed, model, variant = job
    run = json.loads((folder / "run.json").read_text())
    of_best = run["history"][run["best_epoch"] - 1]["memory"]
    memory = {f"memory_{name}": of_best.get(name) for name in ("movement", "gain", "coherence")}
    scores = {"val_ap": run["val"]["ap"], "test_ap": run["test"]["ap"], "seconds": run["seconds_per_epoch"]}
    return {"model": model, "variant": variant, "seed": seed} | scores | memory


def report(table: pl.DataFrame, png: Path) -> None:
    """Print mean ± deviation and the paired difference to "off", and draw the differences."""
    titles = ("val AP", "test AP", "val - off", "test - off")
    print(f"{'model':<6} {'variant':<24} " + " ".join(f"{title:<15}" for title in titles) + " γ, movement")
    drawn: dict[str, list[tuple[str, list[float], list[float]]]] = {}
    for (model, variant), rows in table.group_by(["model", "variant"], maintain_order=True):
        off = table.filter((pl.col("model") == model) & (pl.col("variant") == "off"))
        paired = rows.join(off, on="seed", suffix="_off")
        val, test = ((paired[f"{part}_ap"] - paired[f"{part}_ap_off"]).to_list() for part in ("val", "test"))
        drawn.setdefault(str(model), []).append((str(variant), val, test))
        shown = [rows["val_ap"].to_list(), rows["test_ap"].to_list(), val, test]
        numbers = [f"{value:.2f}" for name in ("gain", "movement") for value in _mean(rows, f"memory_{name}")]
        columns = " ".join(f"{spread(values):<15}" for values in shown)
        print(f"{model:<6} {variant:<24} {columns} {', '.join(numbers)}")
    draw(drawn, png)


def _mean(rows: pl.DataFrame, name: str) -> list[float]:
    known = rows[name].drop_nulls().to_list()
    return [float(np.mean(known))] if known else []


def draw(drawn: dict[str, list[tuple[str, list[float], list[float]]]], png: Path) -> None:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    longest = max(len(rows) for rows in drawn.values())
    figure, axes = plt.subplots(
        1,
        len(drawn),
        figsize=(1 + 4.5 * len(drawn), 1.2 + 0.28 * longest),
        squeeze=False,
        layout="constrained",
    )
    for axis, (model, rows) in zip(axes[0], drawn.items(), strict=True):
        for part, color, shift in ((1, "#8a8a8a", -0.15), (2, "#1f6f8b", 0.15)):
            values = [np.array(row[part]) * 100 for row in rows]
            error = [v.std(ddof=1) / len(v) ** 0.5 if len(v) > 1 else 0 for v in values]
            places = np.arange(len(rows)) + shift
            label = "validation" if part == 1 else "test"
            axis.errorbar(
                [v.mean() for v in values], places, xerr=error, fmt="o", ms=4, color=color, label=label
            )
        axis.axvline(0, color="black", linewidth=0.8)
        axis.set_yticks(range(len(rows)), [row[0] for row in rows])
        axis.invert_yaxis()
        axis.set_xlabel("AP minus that without PRES, in points (± standard error)")
        axis.set_title(model)
        axis.legend(frameon=False)
    figure.savefig(png, dpi=150)
    plt.close(figure)
    print(f"figure: {png}")


if __name__ == "__main__":
    main()
