"""The pages on large batches say what the kept runs of the study say."""

from __future__ import annotations

import polars as pl
import pytest

from benchmarks.large_batches import Job, study
from benchmarks.large_batches_report import (
    BLOCK,
    COMPARED,
    KEPT,
    PAGES,
    against,
    interval,
    kept,
    page_of,
    shared,
    short,
    standard_error,
    summary,
    whole_table,
)


def run(
    way: str, b: int, ap: float, seed: int = 0, dataset: str = "uci", model: str = "jodie"
) -> dict[str, object]:
    row = {"dataset": dataset, "model": model, "way": way, "b": b, "seed": seed}
    return row | {"val_ap": ap, "test_ap": ap, "test_ap_fresh": ap + 0.01}


def whole(seed: int = 0, model: str = "jodie", **change: float) -> list[dict[str, object]]:
    """One run of everything that the summary compares, and the standard."""
    aps = {("standard", 200): 0.9} | {(way, b): 0.9 + 0.01 * i for i, (way, b) in enumerate(COMPARED, 1)}
    return [run(way, b, ap + change.get(way, 0.0), seed, model=model) for (way, b), ap in aps.items()]


def test_the_pages_are_made_from_the_kept_runs() -> None:
    table = pl.read_parquet(KEPT)
    for page in PAGES:
        text = page.read_text()
        assert BLOCK.search(text) is not None
        assert page_of(text, table) == text
        assert page_of(text, table.with_columns(pl.col("test_ap") * 0.5)) != text


def test_differences_are_paired_by_seed() -> None:
    table = pl.DataFrame(
        [
            run("standard", 200, 0.90),
            run("standard", 200, 0.80, 1),
            run("scan", 800, 0.91),
            run("scan", 800, 0.83, 1),
            run("scan", 800, 0.99, 2),  # a seed without a standard counts nowhere
        ]
    )
    found = against(table, "standard", 200).filter(pl.col("b") == 800)["difference"].to_list()
    assert found == pytest.approx([1.0, 3.0])
    assert standard_error(found) == pytest.approx(1.0)
    assert interval(found) == pytest.approx((2 - 12.7062, 2 + 12.7062), abs=1e-3)  # t of one degree
    assert "| uci | jodie | scan | 800 | 87.00 ± 4.00 | 87.00 ± 4.00 | +2.00 ± 1.00 | 88.00 ± 4.00 | 2 |" in (
        whole_table(table)
    )


def test_every_row_of_the_summary_is_over_the_same_pairs_and_seeds() -> None:
    partly = [row for row in whole(model="tgn", scan=0.05) if (row["way"], row["b"]) != ("scan", 3200)]
    table = pl.DataFrame(whole() + whole(seed=1) + partly)
    some = shared(table, COMPARED)
    assert set(some["model"].to_list()) == {"jodie"} and len(some) == 12
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in summary(table).splitlines()[2:]]
    assert [row[:2] + row[-2:] for row in rows] == [[way, f"{b:,}", "1", "2"] for way, b in COMPARED]
    assert rows[-1][2:5] == ["+5.00", "+4.00", "+2.00"] and rows[2][4] == "–"
    assert rows[-1][5].startswith("+5.00 (jodie, uci) [+5.00, +5.00]")


def test_short_streams_stand_apart() -> None:
    own = [run(way, b, ap, dataset="enron") for way, b, ap in (("standard", 200, 0.9), ("scan", 2900, 0.92))]
    table = pl.DataFrame(whole() + own)
    assert "enron" not in summary(table)
    assert "| enron | jodie | 90.00 | – | 92.00 | 2,900 | +2.00 | – | 1 |" in short(table)
    assert "uci" not in short(table)


def test_a_study_has_whole_pairs_seed_after_seed() -> None:
    jobs = list(study(2, ["uci", "enron"], ["jodie"], ["standard", "muon", "scan"]))
    first = [job for job in jobs if job.seed == 0]
    assert jobs[: len(first)] == first and len({job.path for job in jobs}) == len(jobs)
    assert Job(1, "enron", "jodie", None, "scan") in jobs and Job(0, "uci", "jodie", 12800, "scan") in jobs
    assert Job(1, "uci", "jodie", 12800, "scan") not in jobs  # with the first seed alone


def test_runs_of_another_study_are_kept_beside_the_old_ones() -> None:
    def runs(*rows: tuple[int, str, float]) -> pl.DataFrame:
        return pl.DataFrame([run(way, 800, ap, seed) for seed, way, ap in rows])

    found = kept(runs((0, "scan", 0.5), (1, "scan", 0.6)), runs((1, "scan", 0.7), (1, "muon", 0.4)))
    assert found.rows() == runs((0, "scan", 0.5), (1, "muon", 0.4), (1, "scan", 0.7)).rows()
