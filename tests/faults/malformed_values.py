"""Tables with a value that no stream can hold."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl

from tests.faults.kinds import (
    NAMED,
    diagnose,
    kind,
    parquet,
    table,
    text,
    with_cell,
    with_values,
)


@kind
def time_that_is_none(rng: random.Random, folder: Path) -> list[str]:
    cells = [
        "soon",
        "",
        "nan",
        "-inf",
        "1e400",
        "0x10",
        "1_000",
        "2024-13-01",
        "12:30",
        "1,5",
        "٣",
        "--5",
        "5 s",
    ]
    columns = table(rng)
    columns["t"][rng.randrange(len(columns["t"]))] = rng.choice([cell for cell in cells if "," not in cell])
    return diagnose(folder, "a.csv", text(columns))


@kind
def date_that_is_none(rng: random.Random, folder: Path) -> list[str]:
    columns = table(rng)
    columns["t"] = [f"2024-05-{1 + k % 28:02}T08:{k % 60:02}:00" for k in range(len(columns["t"]))]
    bad = [
        "2024-02-30",
        "2024-05-17T25:00",
        "2024-05-17T08:61:00",
        "17.05.2024",
        "2024-05-17T08:30:60",
        "0000-00-00",
    ]
    bad += ["2024-05-17T08:30:00+99:99", "20240517", "10000-01-01", "2016-12-31T23:59:60Z", "May 17, 2024"]
    columns["t"][rng.randrange(len(columns["t"]))] = rng.choice([cell for cell in bad if "," not in cell])
    return diagnose(folder, "a.csv", text(columns))


@kind
def time_that_loses_digits(rng: random.Random, folder: Path) -> list[str]:
    cells = [f"{2**53 + 1}.0", f"{2**62 + rng.randrange(99)}.5", f"-{2**53 + 3}.0"]
    return diagnose(folder, "a.csv", with_cell(rng, "t", cells))


@kind
def span_that_does_not_fit(rng: random.Random, folder: Path) -> list[str]:
    ends = rng.choice([(-(2**62) * 1.9, 2**62 * 1.9), (0.0, 1e300), (0.0, 1e-300), (-1e-310, 1e-310)])
    step = (ends[1] - ends[0]) / 9
    t = pl.Series([ends[0] + step * k for k in range(10)])
    frame = pl.DataFrame({"src": [1, 2] * 5, "dst": [3, 4] * 5, "t": t})
    return diagnose(folder, "a.parquet", parquet(frame))


@kind
def date_beyond_the_calendar(rng: random.Random, folder: Path) -> list[str]:
    unit = rng.choice(["us", "ms"])
    sign = rng.choice([1, -1])
    far = pl.Series([sign * (2**63 - 1 - rng.randrange(9))]).cast(pl.Datetime(unit))  # type: ignore[arg-type]
    role = rng.choice(["src", "dst", "c", "w"])
    options = {"c": ["--category", "c"], "w": ["--x", "w"]}.get(role, [])
    return diagnose(folder, "a.parquet", with_values(rng, role, [far]), *NAMED, *options)


@kind
def id_that_is_none(rng: random.Random, folder: Path) -> list[str]:
    values = [
        pl.Series([0.5]),
        pl.Series([float("nan")]),
        pl.Series([float("inf")]),
        pl.Series([1e19]),
        pl.Series([2.0**53]),
        pl.Series([2**64 - 1], dtype=pl.UInt64),
        pl.Series([None], dtype=pl.String),
        pl.Series([[1, 2]]),
        pl.Series([{"a": 1}]),
        pl.Series([b"\xff"]),
        pl.Series([True]),
        pl.Series([10**30], dtype=pl.Int128),
        pl.Series([""]),
        pl.Series([None], dtype=pl.Null),
    ]
    return diagnose(folder, "a.parquet", with_values(rng, rng.choice(["src", "dst"]), values))


@kind
def empty_id(rng: random.Random, folder: Path) -> list[str]:
    return diagnose(folder, "a.csv", with_cell(rng, rng.choice(["src", "dst"]), ["", "  ", "\t"]))


@kind
def time_of_a_strange_type(rng: random.Random, folder: Path) -> list[str]:
    values = [
        pl.Series([[1]]),
        pl.Series([{"a": 1}]),
        pl.Series([b"1"]),
        pl.Series([None], dtype=pl.Int64),
        pl.Series([True]),
        pl.Series([float("nan")]),
        pl.Series([float("inf")]),
        pl.Series([10**30], dtype=pl.Int128),
        pl.Series(["later"], dtype=pl.Categorical),
    ]
    return diagnose(folder, "a.parquet", with_values(rng, "t", values))


@kind
def feature_that_is_none(rng: random.Random, folder: Path) -> list[str]:
    cells = ["red", "nan", "inf", "1e39", "1e38", "-3e20", "", "1.2.3", "½", "1e999"]
    return diagnose(folder, "a.csv", with_cell(rng, "w", cells), *NAMED, "--x", "w")


@kind
def feature_of_a_strange_type(rng: random.Random, folder: Path) -> list[str]:
    values = [
        pl.Series([[1.0]]),
        pl.Series([{"a": 1}]),
        pl.Series([b"1"]),
        pl.Series(["red"]),
        pl.Series([1e300]),
        pl.Series([1e16]),
        pl.Series([0]).cast(pl.Date),
        pl.Series([None], dtype=pl.Float64),
    ]
    return diagnose(folder, "a.parquet", with_values(rng, "w", values), *NAMED, "--x", "w")


@kind
def label_that_is_none(rng: random.Random, folder: Path) -> list[str]:
    cells = ["0.5", "spam", "", "1e30", "nan", f"{2**53 + 1}", "yes"]
    return diagnose(folder, "a.csv", with_cell(rng, "y", cells), *NAMED, "--label", "y")


@kind
def category_that_is_none(rng: random.Random, folder: Path) -> list[str]:
    values = [pl.Series([None], dtype=pl.String), pl.Series([[1]]), pl.Series([{"a": 1}])]
    return diagnose(folder, "a.parquet", with_values(rng, "c", values), *NAMED, "--category", "c")
