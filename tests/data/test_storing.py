"""A file written into a store in parts is what `pres.read` makes of it at once."""

import datetime
import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import pres
from pres.data.tabular import rows
from pres.errors import Notice, OptionError, ValueInRowError
from tests.data.same import assert_same
from tests.data.tabular.malformed import NAMED as ALL_NAMED
from tests.data.tabular.malformed import cases, valid

ROWS = 40
NAMED: dict[str, Any] = {"src": "a", "dst": "b", "t": "t", "bipartite": False}


def column(make: Any) -> list[Any]:
    return [make(k) for k in range(ROWS)]


def table(**columns: list[Any]) -> dict[str, list[Any]]:
    plain = {
        "a": column(lambda k: k * 7 % 11),
        "b": column(lambda k: k * 5 % 13),
        "t": column(lambda k: k // 2),
    }
    return plain | columns


START = datetime.datetime(2024, 5, 17, 8, 30)
TABLES: dict[str, tuple[dict[str, list[Any]], dict[str, Any]]] = {
    "integers": (table(), NAMED),
    "text": (table(a=column(lambda k: f"u{k % 6}"), b=column(lambda k: f"i{k % 4}")), NAMED),
    "numbers and one word": (table(a=column(lambda k: "ann" if k == 33 else str(k % 5))), NAMED),
    "leading zeros": (table(a=column(lambda k: f"{k % 9:03}")), NAMED),
    "guessed": (
        {
            "user": column(lambda k: k % 5),
            "item": column(lambda k: k % 3),
            "ts": column(float),
            "f0": column(lambda k: k / 3),
            "label": column(lambda k: k % 2),
            "note": column(str),
        },
        {},
    ),
    "a label that is none": (table(label=column(lambda k: "spam" if k == 25 else "1")), NAMED),
    "disjoint ids": (table(b=column(lambda k: 100 + k % 4)), {"src": "a", "dst": "b", "t": "t"}),
    "overlapping ids": (table(), {"src": "a", "dst": "b", "t": "t"}),
    "unsorted": (table(t=column(lambda k: k * 17 % 10)), NAMED),
    "unsorted with all there is": (
        table(
            t=column(lambda k: -k),
            w=column(lambda k: k / 8),
            kind=column(lambda k: "xyz"[k % 3]),
            y=column(lambda k: k % 3),
        ),
        NAMED | {"x": "w", "categories": "kind", "label": "y", "directed": True, "name": "all"},
    ),
    "floats": (table(t=column(lambda k: k / 4)), NAMED | {"time_unit": "h"}),
    "whole numbers, then floats": (table(t=column(lambda k: str(k) if k < 25 else f"{k}.5")), NAMED),
    "dates": (table(t=column(lambda k: (START + datetime.timedelta(days=k)).date().isoformat())), NAMED),
    "datetimes": (table(t=column(lambda k: (START + datetime.timedelta(seconds=k)).isoformat())), NAMED),
    "microseconds at the end": (
        table(t=column(lambda k: f"2024-05-17T08:30:{k:02}{'.25' if k > 30 else ''}")),
        NAMED,
    ),
    "nanoseconds in the middle": (
        table(t=column(lambda k: f"2024-05-17T08:30:{k:02}{'.000000001' if k == 20 else ''}")),
        NAMED,
    ),
    "zones": (table(t=column(lambda k: f"2024-05-17T{k // 2:02}:00:00+02:00")), NAMED),
    "typed datetimes": (table(t=column(lambda k: START + datetime.timedelta(milliseconds=500 * k))), NAMED),
    "categories of numbers and text": (
        table(p=column(lambda k: k % 7), q=column(lambda k: "n/a" if k == 39 else str(k % 4))),
        NAMED | {"categories": ["p", "q"]},
    ),
    "a category that is not a number": (
        table(p=column(lambda k: math.nan if k % 4 == 1 else k % 3 / 2), q=[*column(float)[1:], math.nan]),
        NAMED | {"categories": ["p", "q"]},
    ),
    "dense": (table(), NAMED | {"ids": "dense"}),
    "dense and guessed": (
        table(a=column(lambda k: (0, 5, 7)[k % 3]), b=column(lambda k: (3, 5, 9)[k % 3])),
        {"src": "a", "dst": "b", "t": "t", "ids": "dense"},
    ),
    "dense of two kinds": (table(), NAMED | {"ids": "dense", "bipartite": True}),
    "dense in one count": (
        table(b=column(lambda k: 11 + k % 3)),
        NAMED | {"ids": "dense", "bipartite": True},
    ),
    "features apart": (
        table(w=column(float)),
        NAMED | {"x": "w", "features": np.arange(2.0 * ROWS).reshape(-1, 2)},
    ),
    "node features": (table(), NAMED | {"node_features": np.arange(26.0).reshape(13, 2)}),
}


def read(source: Any, **options: Any) -> tuple[pres.EventStream, list[str]]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", Notice)
        events = pres.read(source, **options)
    return events, [str(warning.message) for warning in said]


def stored(source: Any, folder: Path, **options: Any) -> tuple[pres.EventStream, list[str]]:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", Notice)
        pres.write_store(source, folder, **options)
    return pres.open_store(folder), [str(warning.message) for warning in said]


@pytest.mark.parametrize("rows", [3, 1000])
@pytest.mark.parametrize("what", TABLES)
def test_a_store_holds_what_read_gives(tmp_path: Path, what: str, rows: int) -> None:
    columns, options = TABLES[what]
    frame = pl.DataFrame(columns, strict=False)
    frame.write_csv(tmp_path / "a.csv")
    frame.write_parquet(tmp_path / "a.parquet")
    for place, source in enumerate((tmp_path / "a.csv", tmp_path / "a.parquet", frame.lazy())):
        wanted, heard = read(source, **options)
        found, said = stored(source, tmp_path / f"s{place}", rows=rows, at_once=5, **options)
        assert_same(found, wanted)
        assert said == heard


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".csv.gz", ".csv.zst", ".parquet", ".npz", ".npy"])
def test_every_format_can_be_stored(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"events{ending}"
    path.write_bytes(valid()[ending])
    pres.write_store(path, tmp_path / "s", rows=7, **ALL_NAMED)
    assert_same(pres.open_store(tmp_path / "s"), pres.read(path, **ALL_NAMED))


def test_text_with_blank_lines_spaces_and_no_header(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("5 6 10\n6 7 11\n7 5 11\n" + "\n" * 9)
    columns: dict[str, Any] = {
        "src": "column_1",
        "dst": "column_2",
        "t": "column_3",
        "header": False,
        "bipartite": False,
    }
    pres.write_store(path, tmp_path / "s", rows=2, **columns)
    assert_same(pres.open_store(tmp_path / "s"), pres.read(path, **columns))


def test_a_malformed_file_is_refused_as_read_refuses_it(tmp_path: Path) -> None:
    for number, case in enumerate(list(cases(0))[::7]):
        path = tmp_path / f"{number}{case.ending}"
        path.write_bytes(case.content)
        before = sorted(tmp_path.iterdir())
        try:
            wanted, _ = read(path, **case.options)
        except pres.PresError as error:
            with pytest.raises(pres.PresError) as caught:
                stored(path, tmp_path / "s", rows=7, **case.options)
            ours, theirs = str(caught.value).replace("at least ", ""), str(error)
            # Columns are looked for before any row is read, so that what is wrong with them is said first.
            assert ours == theirs or "there is no column" in ours, case.what
            assert sorted(tmp_path.iterdir()) == before
        else:
            folder = tmp_path / f"s{number}"
            assert_same(stored(path, folder, rows=7, **case.options)[0], wanted)


def test_a_bad_value_is_found_by_its_row_in_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = [f"{k},{k + 1},{'soon' if k == 17 else k}" for k in range(30)]
    path.write_text("\n".join(["a,b,t", *lines]))
    with pytest.raises(ValueInRowError, match=r"row 18, column 't' is 'soon': not a time"):
        pres.write_store(path, tmp_path / "s", rows=4, **NAMED)


@pytest.mark.parametrize("words", [True, False])
def test_an_empty_category_is_refused_as_read_refuses_it(tmp_path: Path, words: bool) -> None:
    values = column(lambda k: None if k == 21 else "xyz"[k % 3] if words else k % 3 / 2)
    path, options = tmp_path / "a.parquet", NAMED | {"categories": "p"}
    pl.DataFrame(table(p=values)).write_parquet(path)
    with pytest.raises(ValueInRowError, match=r"row 22, column 'p' is empty: fill it first") as wanted:
        pres.read(path, **options)
    with pytest.raises(ValueInRowError) as found:
        pres.write_store(path, tmp_path / "s", rows=4, **options)
    assert str(found.value) == str(wanted.value)


def test_numbers_and_dates_in_one_column_are_told(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    lines = [f"{k},{k + 1},{'2024-05-17' if k > 7 else k}" for k in range(12)]
    path.write_text("\n".join(["a,b,t", *lines]))
    with pytest.raises(ValueInRowError, match="row 9, column 't' is '2024-05-17': not a time like those"):
        pres.write_store(path, tmp_path / "s", rows=4, **NAMED)


def test_a_time_that_would_be_rounded_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("\n".join(["a,b,t", "1,2,9007199254740995", "1,2,9007199254740997", "1,2,0.5"]))
    with pytest.raises(ValueInRowError, match="row 1, column 't' is '9007199254740995': a time this large"):
        pres.write_store(path, tmp_path / "s", rows=1, **NAMED)


def test_a_source_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read, parts = 0, rows.Rows.parts

    def counted(self: rows.Rows, *given: Any) -> Iterator[rows.Table]:
        nonlocal read
        for part in parts(self, *given):
            read += part.frame.height
            yield part

    monkeypatch.setattr(rows.Rows, "parts", counted)
    pl.DataFrame(table(w=column(float))).write_csv(tmp_path / "a.csv")
    pres.write_store(tmp_path / "a.csv", tmp_path / "s", rows=7, x="w", **NAMED)
    assert read == ROWS
    assert not [path for path in (tmp_path / "s").iterdir() if path.is_dir()]


# The synthetic stream


@pytest.mark.parametrize(
    ("options", "at_once"),
    [
        ({"num_events": 2}, 1),
        ({"num_events": 40, "num_users": 3}, 7),
        ({"num_events": 1_500}, 100),
        ({"num_events": 1_501, "features": 3, "seed": 5}, 64),
        ({"num_events": 3_000, "features": 1, "num_topics": 5, "num_items": 9}, 1_000),
        ({"num_events": 2_000, "features": 0, "labels": False}, 333),
        ({"num_events": 2_000}, 1 << 20),
    ],
)
def test_the_stream_made_in_parts_is_that_made_at_once(
    tmp_path: Path, options: dict[str, Any], at_once: int
) -> None:
    pres.write_store("synthetic", tmp_path / "s", at_once=at_once, **options)
    assert_same(pres.open_store(tmp_path / "s"), pres.load("synthetic", **options))


def test_options_of_the_stream_are_checked(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no option 'num_event'"):
        pres.write_store("synthetic", tmp_path / "s", num_event=10)
    with pytest.raises(OptionError, match="num_topics=2"):
        pres.write_store("synthetic", tmp_path / "s", num_topics=2)
    assert not list(tmp_path.iterdir())
