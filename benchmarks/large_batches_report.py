"""The study of large batches as tables and a figure, in README and docs/large-batches.md.

    python -m benchmarks.large_batches_report runs/large/large_batches.parquet

keeps the runs in docs/results, beside those of other studies, and makes tables and figure anew.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import polars as pl
from scipy.stats import t

STANDARD = 200
WHOLE = ("uci", "wikipedia", "mooc")  # the streams on which settings were chosen, by validation of seed 0
COMPARED = (("muon", 200), ("muon", 3200), ("scan", 200), ("scan", 800), ("scan", 3200))
SHORT = ("muon", "scan")  # on streams on which nothing was chosen, the scan as large as the preset has it
DOCS = Path(__file__).parent.parent / "docs"
KEPT = DOCS / "results" / "large_batches.parquet"
PAGES = (DOCS / "large-batches.md", DOCS.parent / "README.md")
FIGURE = DOCS / "images" / "large-batches.png"
BLOCK = re.compile(
    r"(<!-- made by benchmarks.large_batches_report: (\w+) -->\n).*?(<!-- end -->)", flags=re.DOTALL
)
PAIR = ["dataset", "model"]
COLOURS = {("muon", 3200): "#d9822b", ("scan", 800): "#7fa7d6", ("scan", 3200): "#1f5fa8"}


def against(table: pl.DataFrame, way: str, b: int, ap: str = "test_ap") -> pl.DataFrame:
    """Return the runs whose seed ran that way too, with the difference in AP to it, in points."""
    base = table.filter((pl.col("way") == way) & (pl.col("b") == b))
    joined = table.join(base.select([*PAIR, "seed", pl.col(ap).alias("base")]), on=[*PAIR, "seed"])
    return joined.with_columns((100 * (pl.col(ap) - pl.col("base"))).alias("difference"))


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % confidence interval of the mean of several values, by Student's t."""
    n, mean = len(values), sum(values) / len(values)
    half = float(t.ppf(0.975, n - 1)) * standard_error(values)
    return mean - half, mean + half


def standard_error(values: Sequence[float]) -> float:
    """Return the standard error of their mean; 0 of a single one."""
    n, mean = len(values), sum(values) / len(values)
    return float((sum((value - mean) ** 2 for value in values) / (n - 1) / n) ** 0.5) if n > 1 else 0.0


def mean_of(values: Sequence[float], sign: bool = False) -> str:
    """Return mean ± standard error, in the values' own unit."""
    mean = sum(values) / len(values)
    error = f" ± {standard_error(values):.2f}" if len(values) > 1 else ""
    return (f"{mean:+.2f}" if sign else f"{mean:.2f}") + error


def groups(table: pl.DataFrame) -> Iterator[tuple[tuple[str, str, str, int], pl.DataFrame]]:
    """Yield the runs of each stream, model, way and batch size."""
    found = table.partition_by([*PAIR, "way", "b"], as_dict=True)
    for dataset, model, way, b in sorted(
        found, key=lambda key: (key[0], key[1], key[2] != "standard", *key[2:])
    ):
        yield (dataset, model, way, b), found[dataset, model, way, b]


def whole_table(table: pl.DataFrame) -> str:
    """Return AP at both values of staleness, and the paired differences to standard b = 200, of every row."""
    lines = [
        "| stream | model | variant | b | validation | test | − standard 200 | test, staleness 0 | seeds |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (dataset, model, way, b), runs in groups(against(table, "standard", STANDARD)):
        shown = [mean_of([100 * ap for ap in runs[name].to_list()]) for name in ("val_ap", "test_ap")]
        difference = "–" if way == "standard" else mean_of(runs["difference"].to_list(), sign=True)
        fresh = mean_of([100 * ap for ap in runs["test_ap_fresh"].to_list()])
        cells = [dataset, model, way, f"{b:,}", *shown, difference, fresh, str(len(runs))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def shared(table: pl.DataFrame, wanted: Sequence[tuple[str, int]]) -> pl.DataFrame:
    """Return the runs of the pairs and seeds that have all that is wanted: every row is over the same."""
    every = {("standard", STANDARD), *wanted}
    some = table.filter(pl.struct("way", "b").is_in([{"way": way, "b": b} for way, b in every]))
    found = some.group_by([*PAIR, "seed"]).agg(pl.len().alias("rows"))
    return some.join(found.filter(pl.col("rows") == len(every)).select([*PAIR, "seed"]), on=[*PAIR, "seed"])


def summary(table: pl.DataFrame) -> str:
    """Return the mean differences of each way over the same pairs and seeds of the whole streams."""
    some = shared(table.filter(pl.col("dataset").is_in(WHOLE)), COMPARED)
    lines = [
        "| variant | b | − standard, 200 | − muon, 200 | − scan, 200 | lowest pair | pairs | runs |",
        "|---|---:|---:|---:|---:|---|---:|---:|",
    ]
    for way, b in COMPARED if len(some) else ():
        own = (pl.col("way") == way) & (pl.col("b") == b)
        means = []
        for base, at in (("standard", STANDARD), ("muon", STANDARD), ("scan", STANDARD)):
            by_pair = [
                sum(each) / len(each) for each in _by_pair(against(some, base, at).filter(own)).values()
            ]
            means.append("–" if (way, b) == (base, at) else f"{sum(by_pair) / len(by_pair):+.2f}")
        pairs = _by_pair(against(some, "standard", STANDARD).filter(own))
        worst = min(pairs, key=lambda pair: sum(pairs[pair]) / len(pairs[pair]))
        lowest = (
            f"{sum(pairs[worst]) / len(pairs[worst]):+.2f} ({worst[1]}, {worst[0]}){_bracket(pairs[worst])}"
        )
        runs = sum(len(each) for each in pairs.values())
        lines.append(f"| {way} | {b:,} | {' | '.join(means)} | {lowest} | {len(pairs)} | {runs} |")
    return "\n".join(lines)


def short(table: pl.DataFrame) -> str:
    """Return the differences on streams on which nothing was chosen."""
    some = against(table.filter(~pl.col("dataset").is_in(WHOLE)), "standard", STANDARD)
    lines = [
        "| stream | model | standard | muon | scan | scan's b | scan − standard | 95 % interval | seeds |",
        "|---|---|---:|---:|---:|---:|---:|---|---:|",
    ]
    for (dataset, model), runs in sorted(some.partition_by(PAIR, as_dict=True).items()):
        own = {way: runs.filter(pl.col("way") == way) for way in ("standard", *SHORT)}
        if not len(own["scan"]):
            continue
        aps = [
            mean_of([100 * ap for ap in each["test_ap"].to_list()]) if len(each) else "–"
            for each in own.values()
        ]
        values = own["scan"]["difference"].to_list()
        b = ", ".join(f"{size:,}" for size in sorted(set(own["scan"]["b"].to_list())))
        told = _bracket(values).strip() or "–"
        cells = [dataset, model, *aps, b, mean_of(values, sign=True), told, str(len(values))]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _by_pair(table: pl.DataFrame) -> dict[tuple[str, str], list[float]]:
    """Return the differences of each stream and model."""
    found = table.partition_by(PAIR, as_dict=True)
    return {(str(pair[0]), str(pair[1])): runs["difference"].to_list() for pair, runs in found.items()}


def _bracket(values: Sequence[float]) -> str:
    """Return the interval of the mean of several values; nothing of a single one."""
    return " [{:+.2f}, {:+.2f}]".format(*interval(values)) if len(values) > 1 else ""


TABLES: dict[str, Callable[[pl.DataFrame], str]] = {"table": whole_table, "summary": summary, "short": short}


def markdown(table: pl.DataFrame) -> str:
    """Return all tables."""
    return "\n\n".join(make(table) for make in TABLES.values())


def kept(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Return all runs; of two that are the same job the newer."""
    job = ["seed", *PAIR, "b", "way"]
    return pl.concat([old, new], how="vertical_relaxed").unique(job, keep="last").sort(job)


def page_of(text: str, table: pl.DataFrame) -> str:
    """Return a page with its tables made anew."""
    if BLOCK.search(text) is None:
        raise SystemExit(f"the page has no place for a table: {BLOCK.pattern}")
    return BLOCK.sub(lambda found: f"{found[1]}{TABLES[found[2]](table)}\n{found[3]}", text)


def draw(table: pl.DataFrame, png: Path) -> None:
    """Draw the difference to standard b = 200 of each stream and model, with its 95 % interval."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    some = against(table.filter(pl.col("dataset").is_in(WHOLE)), "standard", STANDARD)
    pairs = sorted({(dataset, model) for dataset, model in some.select(PAIR).iter_rows()})
    figure = Figure(figsize=(8, 0.5 * len(pairs) + 1.4), layout="constrained")
    FigureCanvasAgg(figure)
    panel = figure.subplots()
    panel.axvline(0, color="black", linewidth=1)
    for shift, ((way, b), colour) in zip((0.22, 0.0, -0.22), COLOURS.items(), strict=True):
        of_way = _by_pair(some.filter((pl.col("way") == way) & (pl.col("b") == b)))
        for place, pair in enumerate(pairs):
            if pair in of_way:
                values = of_way[pair]
                mean = sum(values) / len(values)
                half = interval(values)[1] - mean if len(values) > 1 else 0.0
                label = f"{way}, {b:,}" if place == 0 else None
                panel.errorbar(mean, place + shift, xerr=half, fmt="o", color=colour, capsize=2, label=label)
    panel.set_yticks(range(len(pairs)), [f"{model}, {dataset}" for dataset, model in pairs])
    panel.set_xlabel("points of test AP against standard training, b = 200 (95 % interval)")
    panel.grid(axis="x", alpha=0.25)
    panel.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=3, frameon=False)
    figure.savefig(png, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parquet", type=Path, nargs="?", help="of a study; without it those that are kept")
    given = parser.parse_args()
    if given.parquet is not None:
        new = pl.read_parquet(given.parquet)
        (kept(pl.read_parquet(KEPT), new) if KEPT.exists() else new).write_parquet(KEPT)
    table = pl.read_parquet(KEPT)
    for page in PAGES:
        page.write_text(page_of(page.read_text(), table))
    draw(table, FIGURE)


if __name__ == "__main__":
    main()
