"""Values that would silently become others are refused, and those that break training later are named now."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import pres
from pres.errors import PresError

PLAIN: dict[str, list[Any]] = {"src": [1, 2, 3], "dst": [4, 5, 6], "t": [1, 2, 3]}
NAMED: dict[str, Any] = {"src": "src", "dst": "dst", "t": "t", "bipartite": False}


def said(source: Any, **options: Any) -> str:
    with pytest.raises(PresError) as caught:
        pres.read(source, **NAMED | options)
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def test_a_float_that_may_have_been_another_number_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("src,dst,t\n1,2,9007199254740993.0\n1,2,9007199254740999.0\n")
    assert "row 1, column 't' is '9007199254740993.0': a time this large" in said(tmp_path / "a.csv")
    decimals = PLAIN | {"t": [Decimal(f"{2**53 + k}.5") for k in range(3)]}
    assert "row 1, column 't'" in said(pl.DataFrame(decimals))
    for dtype, first in ((pl.Float64, 2**53), (pl.Float32, 2**24)):
        ids = pl.DataFrame(PLAIN | {"src": pl.Series([1, first, 2], dtype=dtype)})
        assert "row 2, column 'src' is" in said(ids) and "has lost digits" in said(ids)
        exact = ids.with_columns(src=pl.Series([1, first - 1, 2], dtype=dtype))
        assert first - 1 in pres.read(exact, **NAMED).ids.src_values


def test_a_leap_second_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("src,dst,t\n1,2,2016-12-31T23:59:59\n1,2,2016-12-31T23:59:60.5Z\n")
    assert "row 2, column 't' is '2016-12-31T23:59:60.5Z': a leap second" in said(tmp_path / "a.csv")


def test_dates_beyond_the_calendar_do_not_break_the_reader(capfd: pytest.CaptureFixture[str]) -> None:
    for unit in ("ns", "us", "ms"):
        far = pl.Series([2**63 - 1, 2**63 - 2, 2**63 - 3]).cast(pl.Datetime(unit))
        assert len(pres.read(pl.DataFrame(PLAIN | {"t": far.sort()}), **NAMED)) == 3
        assert "a node id must be text or a whole number" in said(pl.DataFrame(PLAIN | {"src": far}))
        if unit != "ns":  # whose range lies within the calendar
            asked = said(pl.DataFrame(PLAIN | {"c": far}), categories="c")
            assert "row 3, column 'c' is" in asked and "outside the years 1 to 9999" in asked
    day = pl.Series([2**31 - 1, 0, 1], dtype=pl.Int32).cast(pl.Date)
    assert "outside the years" in said(pl.DataFrame(PLAIN | {"c": day}), categories="c")
    assert "panicked" not in capfd.readouterr().err


def test_dates_that_do_not_fit_nanoseconds_are_said_where_one_of_another_part_needs_them(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text("src,dst,t\n1,2,2500-01-01\n1,2,2024-01-01T00:00:00.000000001\n")
    with pytest.raises(PresError, match=r"row 1, column 't' is .*2500.*not fit 64 bits in nanoseconds"):
        pres.write_store(tmp_path / "a.csv", tmp_path / "s", rows=1, **NAMED)


def test_what_would_overflow_or_vanish_in_training_is_named_at_reading() -> None:
    x = PLAIN | {"x": [0.0, 1e38, 1.0]}
    assert "row 2, column 'x' is 1e+38: a feature beyond ±1e+15 overflows in training" in said(x, x="x")
    assert "vanishes in 32 bits" in said(PLAIN | {"t": [0.0, 1e-300, 2e-300]})
    assert pres.read(PLAIN | {"t": [0.0, 1e-300, 1.0]}, **NAMED).t[1] == 1e-300


def test_a_node_id_of_a_hundred_bits_stays_itself(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"src,dst,t\n{10**30},2,1\n{10**30 + 1},2,2\n")
    ids = pres.read(tmp_path / "a.csv", **NAMED).ids
    assert ids.src_values.to_list() == [str(10**30), str(10**30 + 1), "2"]
    assert "at most 64 bits" in said(PLAIN | {"src": [10**30, 1, 2]})


def test_columns_are_taken_by_their_names_not_by_patterns() -> None:
    day = datetime.date(2024, 5, 17)
    odd = {"^.*$": [1, 2, 3], "*": [4, 5, 6], "t": [day, day.replace(day=18), day.replace(day=19)]}
    events = pres.read(pl.DataFrame(odd).lazy(), src="^.*$", dst="*", t="t", bipartite=False)
    assert events.src.tolist() == [0, 1, 2] and events.dst.tolist() == [3, 4, 5]
