"""The page on large batches says what the kept runs of the study say."""

import polars as pl
import pytest

from benchmarks import large_batches
from benchmarks.large_batches_report import (
    COMPARED,
    KEPT,
    PAGES,
    SIZES,
    against_standard,
    compared,
    kept,
    markdown,
    page_of,
    standard_error,
    summary,
)


def test_the_page_is_made_from_the_kept_runs() -> None:
    table = pl.read_parquet(KEPT)
    for page, held in zip(PAGES, (markdown(table), "\n".join(summary(compared(table)))), strict=True):
        text = page.read_text()
        assert held in text
        assert page_of(text, table) == text
        assert page_of(text, table.filter(pl.col("seed") == 0)) != text


def test_every_row_of_the_readmes_summary_is_over_the_same_pairs() -> None:
    table = pl.read_parquet(KEPT)
    rows = summary(compared(table))[2:]
    assert len(rows) == 6 and {row.split("|")[-2].strip() for row in rows} == {"9"}
    runs = [
        {"dataset": d, "model": "m", "b": b, "way": way, "seed": 0, "val_ap": 0.5, "test_ap": 0.5}
        for d in ("whole", "partly")
        for b, way in ((200, "standard"), *((b, way) for b in SIZES for way in COMPARED))
        if (d, b, way) != ("partly", 3200, "pres")
    ]
    assert set(compared(pl.DataFrame(runs))["dataset"].to_list()) == {"whole"}


def test_differences_are_paired_by_seed() -> None:
    def row(seed: int, b: int, way: str, ap: float) -> dict[str, object]:
        return {"seed": seed, "dataset": "d", "model": "m", "b": b, "way": way, "val_ap": ap, "test_ap": ap}

    table = pl.DataFrame(
        [
            row(0, 200, "standard", 0.90),
            row(1, 200, "standard", 0.80),
            row(0, 800, "preset", 0.91),
            row(1, 800, "preset", 0.83),
        ]
    )
    found = against_standard(table).filter(pl.col("b") == 800)["difference"].to_list()
    assert found == pytest.approx([1.0, 3.0])
    assert standard_error(found) == pytest.approx(1.0)
    assert "| d | m | 800 | preset | 87.00 ± 5.66 | 87.00 ± 5.66 | +2.00 ± 1.00 | 2 |" in markdown(table)
    assert "| 800 | preset | +2.00 | +2.00 (m, d) | 1 |" in markdown(table)


def test_seeds_that_chose_nothing_are_told_apart_where_there_are_some() -> None:
    runs = [
        {"dataset": "d", "model": "m", "b": b, "way": "standard", "seed": seed, "val_ap": ap, "test_ap": ap}
        for b, seed, ap in ((200, 0, 0.8), (800, 0, 0.7), (200, 1, 0.8), (800, 1, 0.6))
    ]
    assert "without seed 0" not in markdown(pl.DataFrame(runs[:2]))
    apart = markdown(pl.DataFrame(runs)).partition("without seed 0")[2]
    assert "| 800 | standard | -20.00 |" in apart


def test_a_size_whose_speed_is_not_known_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["large_batches", "--batch-sizes", "800", "1000"])
    with pytest.raises(SystemExit):
        large_batches.main()
    said = capsys.readouterr().err.splitlines()[-1]
    assert "not of [1000]: give --ways." in said


def test_runs_of_another_study_are_kept_beside_the_old_ones() -> None:
    def runs(*rows: tuple[int, str, float]) -> pl.DataFrame:
        return pl.DataFrame(
            [
                {"seed": seed, "dataset": "d", "model": "m", "b": 800, "way": way, "test_ap": ap}
                for seed, way, ap in rows
            ]
        )

    found = kept(runs((0, "preset", 0.5), (1, "preset", 0.6)), runs((1, "preset", 0.7), (1, "pres", 0.4)))
    assert found.rows() == runs((0, "preset", 0.5), (1, "pres", 0.4), (1, "preset", 0.7)).rows()
