"""The study of large batches as a table and a figure, in docs/large-batches.md.

    python -m benchmarks.large_batches_report runs/large/large_batches.parquet

keeps the runs in docs/results, beside those of other studies, and makes table, summary and figure anew.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from benchmarks.jobs import spread

STANDARD = 200
COMPARED, SIZES = ("standard", "pres", "preset"), (800, 3200)  # of the summary in README
CHOSEN_ON = 0  # the seed of the trials that made the preset; others were run once it was fixed
DOCS = Path(__file__).parent.parent / "docs"
KEPT = DOCS / "results" / "large_batches.parquet"
PAGES = (DOCS / "large-batches.md", DOCS.parent / "README.md")
FIGURE = DOCS / "images" / "large-batches.png"
BLOCK = re.compile(
    r"(<!-- made by benchmarks.large_batches_report(: summary)? -->\n).*?(\n<!-- end -->)", flags=re.DOTALL
)
COLOURS = {"standard": "#9aa3ad", "pres": "#d9822b", "preset": "#1f5fa8", "exact": "#2f8f5b"}


def against_standard(table: pl.DataFrame) -> pl.DataFrame:
    """Return the table with the difference in test AP to standard b = 200 of the same seed, in points."""
    base = table.filter((pl.col("b") == STANDARD) & (pl.col("way") == "standard"))
    keys = ["dataset", "model", "seed"]
    joined = table.join(base.select([*keys, pl.col("test_ap").alias("base_ap")]), on=keys)
    return joined.with_columns((100 * (pl.col("test_ap") - pl.col("base_ap"))).alias("difference"))


def groups(table: pl.DataFrame) -> Iterator[tuple[tuple[str, str, int, str], pl.DataFrame]]:
    """Yield the runs of each dataset, model, batch size and way."""
    keys = ["dataset", "model", "b", "way"]
    order = list(dict.fromkeys(table["way"].to_list()))
    found = against_standard(table).partition_by(keys, as_dict=True)
    for dataset, model, b, way in sorted(found, key=lambda key: (*key[:3], order.index(key[3]))):
        yield (dataset, model, b, way), found[dataset, model, b, way]


def standard_error(values: list[float]) -> float:
    """Return the standard error of their mean; 0 of a single one."""
    n, mean = len(values), sum(values) / len(values)
    return (sum((value - mean) ** 2 for value in values) / (n - 1) / n) ** 0.5 if n > 1 else 0.0


def markdown(table: pl.DataFrame) -> str:
    """Return mean ± deviation, and the paired difference to standard b = 200 ± its standard error."""
    lines = [
        "| stream | model | b | way | validation AP | test AP | difference on test | seeds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for (dataset, model, b, way), rows in groups(table):
        values = rows["difference"].to_list()
        difference = f"{sum(values) / len(values):+.2f} ± {standard_error(values):.2f}"
        shown = "–" if (b, way) == (STANDARD, "standard") else difference
        scores = " | ".join(spread(rows[part].to_list()) for part in ("val_ap", "test_ap"))
        lines.append(f"| {dataset} | {model} | {b:,} | {way} | {scores} | {shown} | {len(values)} |")
    fresh = table.filter(pl.col("seed") != CHOSEN_ON)
    lines += ["", *summary(table)]
    if len(fresh):
        heading = f"The same without seed {CHOSEN_ON}, on which the preset was chosen:"
        lines += ["", heading, "", *summary(fresh)]
    return "\n".join(lines)


def summary(table: pl.DataFrame) -> list[str]:
    """Return the mean difference of each way and size over models and streams, and the worst single one."""
    means: dict[tuple[int, str], list[tuple[float, str]]] = {}
    for (dataset, model, b, way), rows in groups(table):
        if (b, way) != (STANDARD, "standard"):
            values = rows["difference"].to_list()
            means.setdefault((b, way), []).append((sum(values) / len(values), f"{model}, {dataset}"))
    lines = ["| b | way | mean difference | lowest | streams x models |", "|---|---|---|---|---|"]
    for (b, way), found in sorted(means.items()):
        mean, (lowest, where) = sum(value for value, _ in found) / len(found), min(found)
        lines.append(f"| {b:,} | {way} | {mean:+.2f} | {lowest:+.2f} ({where}) | {len(found)} |")
    return lines


def compared(table: pl.DataFrame) -> pl.DataFrame:
    """Return the runs of the streams, models and seeds that every compared way has at every compared size."""
    some = table.filter(pl.col("way").is_in(COMPARED) & pl.col("b").is_in(SIZES))
    whole, keys = len(COMPARED) * len(SIZES), ["dataset", "model", "seed"]
    found = some.group_by(keys).agg(pl.struct("b", "way").n_unique().alias("rows"))
    shared = found.filter(pl.col("rows") == whole).select(keys)
    base = table.filter((pl.col("b") == STANDARD) & (pl.col("way") == "standard"))
    return pl.concat([base, some]).join(shared, on=keys)


def kept(old: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
    """Return all runs; of two that are the same job the newer."""
    job = ["seed", "dataset", "model", "b", "way"]
    return pl.concat([old, new]).unique(job, keep="last").sort(job)


def page_of(text: str, table: pl.DataFrame) -> str:
    """Return a page with its table, or only the summary of it, made anew."""
    if BLOCK.search(text) is None:
        raise SystemExit(f"the page has no place for the table: {BLOCK.pattern}")

    def block(found: re.Match[str]) -> str:
        return found[1] + ("\n".join(summary(compared(table))) if found[2] else markdown(table)) + found[3]

    return BLOCK.sub(block, text)


def draw(table: pl.DataFrame, png: Path) -> None:
    """Draw test AP against the batch size, a panel for each stream and model."""
    from matplotlib.artist import Artist
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    datasets, models = (sorted(set(table[name].to_list())) for name in ("dataset", "model"))
    figure = Figure(figsize=(3.6 * len(models), 2.7 * len(datasets)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(datasets), len(models), squeeze=False)
    for (dataset, model, b, way), rows in groups(table):
        if way not in COLOURS:
            continue
        panel = panels[datasets.index(dataset)][models.index(model)]
        values = [100 * value for value in rows["test_ap"].to_list()]
        mean, error = sum(values) / len(values), standard_error(values)
        if b == STANDARD:
            panel.axhspan(mean - error, mean + error, color="black", alpha=0.08)
            panel.axhline(mean, color="black", linewidth=1, label="standard, b = 200")
        else:
            shift = 0.94 + 0.04 * list(COLOURS).index(way)
            panel.errorbar(b * shift, mean, yerr=error, fmt="o", color=COLOURS[way], label=way, capsize=2)
        panel.set_title(f"{model}, {dataset}", fontsize=10)
    for row in panels:
        for panel in row:
            panel.set_xscale("log")
            sizes = sorted(set(table["b"].to_list()) - {STANDARD})
            panel.set_xticks(sizes, [str(size) for size in sizes])
            panel.set_xlim(sizes[0] / 1.25, sizes[-1] * 1.25)
            panel.minorticks_off()
            panel.grid(alpha=0.25)
            panel.spines[["top", "right"]].set_visible(False)
        row[0].set_ylabel("test AP")
    for panel in panels[-1]:
        panel.set_xlabel("events per batch")
    handles: dict[str, Artist] = {}
    for panel in panels.flat:
        handles |= {label: handle for handle, label in zip(*panel.get_legend_handles_labels(), strict=True)}
    figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(png, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("parquet", type=Path, nargs="?", help="of a study; without it those that are kept")
    given = parser.parse_args()
    if given.parquet is not None:
        kept(pl.read_parquet(KEPT), pl.read_parquet(given.parquet)).write_parquet(KEPT)
    table = pl.read_parquet(KEPT)
    for page in PAGES:
        page.write_text(page_of(page.read_text(), table))
    draw(table, FIGURE)


if __name__ == "__main__":
    main()
