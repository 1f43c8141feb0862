import datetime
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
import torch

from pres.data.ids import positions
from pres.data.tabular.rows import Table
from pres.data.tabular.times import read_times
from pres.data.tabular.values import read_categories, read_ids, read_labels, read_numbers
from pres.errors import ValueInRowError


def column(values: Any, dtype: Any = None) -> Table:
    return Table(pl.DataFrame({"c": pl.Series(values, dtype=dtype)}), "a.parquet")


def text(*values: str | None) -> Table:
    return Table(pl.DataFrame({"c": pl.Series(values, dtype=pl.String)}), "a.csv", is_text=True)


def refused(read: Any, table: Table, name: Any = "c") -> str:
    with pytest.raises(ValueInRowError) as caught:
        read(table, name)
    assert len(str(caught.value).splitlines()) == 1 and len(str(caught.value)) < 300
    return str(caught.value)


# Ids


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (text("3", "-5", "9223372036854775807"), [3, -5, 2**63 - 1]),
        (text(" 3", "5 "), [3, 5]),
        (text("007", "7"), ["007", "7"]),
        (text("+7", "7"), ["+7", "7"]),
        (text("1.0", "2"), ["1.0", "2"]),
        (text("9223372036854775808", "1"), ["9223372036854775808", "1"]),
        (text(" ann", "bob "), ["ann", "bob"]),
        (column(["1", "2"]), ["1", "2"]),  # a frame says what it means: text stays text
        (column([" ann", "ann"]), [" ann", "ann"]),
        (column(["b", "a"], pl.Categorical), ["b", "a"]),
        (column([1.0, -2.0]), [1, -2]),
        (column([7, 8], pl.UInt8), [7, 8]),
        (column([Decimal(5), Decimal(6)]), [5, 6]),
        (column([2**62 + 1, 2], pl.UInt64), [2**62 + 1, 2]),
    ],
)
def test_ids_become_integers_only_where_nothing_is_lost(table: Table, expected: list[Any]) -> None:
    ids = read_ids(table, "c")
    assert ids.to_list() == expected and ids.dtype == (
        pl.Int64 if isinstance(expected[0], int) else pl.String
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (text("1", None), "a.csv, row 2, column 'c' is empty: every event needs its ids; 1 row lacks one"),
        (text("1", "  "), "a.csv, row 2, column 'c' is empty: every event needs its ids; 1 row lacks one"),
        (
            column(["a", ""]),
            "a.parquet, row 2, column 'c' is empty: every event needs its ids; 1 row lacks one",
        ),
        (
            column([1.0, 2.5]),
            "row 2, column 'c' is 2.5: a node id must be text or a whole number of at most 64",
        ),
        (column([1.0, float("nan")]), "row 2, column 'c' is nan: a node id must be text or a whole number"),
        (column([1.0, 1e300]), "row 2, column 'c' is 1e+300: a node id must be"),
        (column([1, 2**64 - 1], pl.UInt64), "row 2, column 'c' is 18446744073709551615: a node id must be"),
        (
            column([True, False]),
            "row 1, column 'c' is True: a node id must be text or a whole number, not Boolean.",
        ),
        (
            column([[1], [2]]),
            "row 1, column 'c' is [1]: a node id must be text or a whole number, not List(Int64).",
        ),
        (
            column([1, "a"], pl.Object),
            "is 1: a node id must be text or a whole number, not of mixed or unknown type.",
        ),
    ],
)
def test_ids_that_cannot_be_used(table: Table, said: str) -> None:
    assert said in refused(read_ids, table)


# Times

NOON = 1_715_947_200  # 2024-05-17T12:00:00Z
EXACT = 1_700_000_000_123_456_789


@pytest.mark.parametrize(
    ("table", "expected", "unit"),
    [
        (text(str(EXACT), str(EXACT + 1)), [EXACT, EXACT + 1], None),
        (text("-5", "+7", " 8 "), [-5, 7, 8], None),
        (text("1700000000.25", "1700000001"), [1700000000.25, 1700000001.0], None),
        (text("1e3", "2"), [1000.0, 2.0], None),
        (text("2024-05-17T12:00:00", "2024-05-17 12:00:01"), [NOON, NOON + 1], "s"),
        (text("2024-05-17", "2024-05-17T12:00"), [NOON - 43200, NOON], "s"),
        (text("2024-05-17T12:00:00Z", "2024-05-17T14:00:00+02:00", "2024-05-17T12:00:00"), [NOON] * 3, "s"),
        (text("2024-05-17T06:30:00-0530", "2024-05-17T14:00+02", "2024-05-17 12:00:00 UTC"), [NOON] * 3, "s"),
        (text("2024-05-17T12:00:00.5", "2024-05-17T12:00:01"),
         [NOON * 10**6 + 500_000, (NOON + 1) * 10**6], "us"),
        (text("2024-05-17T12:00:00.123456789Z", "2024-05-17T12:00:01Z"),
         [NOON * 10**9 + 123_456_789, (NOON + 1) * 10**9], "ns"),
        (text("1066-10-14", "1969-12-31T23:59:59"), [-28_502_755_200, -1], "s"),
        (column([EXACT, EXACT + 1]), [EXACT, EXACT + 1], None),
        (column([EXACT, 5], pl.UInt64), [EXACT, 5], None),
        (column([0.5, 1.5], pl.Float32), [0.5, 1.5], None),
        (column([Decimal(EXACT), Decimal(EXACT + 1)]), [EXACT, EXACT + 1], None),
        (column([Decimal("0.5"), Decimal("1.25")]), [0.5, 1.25], None),
        (column(["7", "8"]), [7, 8], None),
        (column([datetime.date(2024, 5, 17)]), [NOON - 43200], "s"),
        (column([datetime.datetime(2024, 5, 17, 12)]), [NOON], "s"),
        (column([datetime.datetime(2024, 5, 17, 12, 0, 0, 5)]), [NOON * 10**6 + 5], "us"),
        (column([datetime.timedelta(hours=1)]), [3600], "s"),
        (column([EXACT], pl.Datetime("ns")), [EXACT], "ns"),
        (column([NOON * 1000], pl.Datetime("ms", "Asia/Tokyo")), [NOON], "s"),
    ],
)  # fmt: skip
def test_times_of_every_kind_keep_every_digit(table: Table, expected: list[Any], unit: str | None) -> None:
    times, found = read_times(table, "c")
    assert times.tolist() == expected and found == unit
    assert times.dtype == (torch.int64 if isinstance(expected[0], int) else torch.float64)


ADVICE = "not a time. Use numbers, or ISO dates like 2024-05-17T08:30:00."


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (text("1", "soon", "3"), f"a.csv, row 2, column 'c' is 'soon': {ADVICE}"),
        (text("2024-05-17", "2024-05-18", "yesterday"), f"row 3, column 'c' is 'yesterday': {ADVICE}"),
        (text("2024-05-17", "2024-02-30"), f"row 2, column 'c' is '2024-02-30': {ADVICE}"),
        (text("17/05/2024", "18/05/2024"), f"row 1, column 'c' is '17/05/2024': {ADVICE}"),
        (text("1,5", "2,5"), f"row 1, column 'c' is '1,5': {ADVICE}"),
        (text("1600-01-01T00:00:00.123456789", "2024-01-01"), f"'1600-01-01T00:00:00.123456789': {ADVICE}"),
        (text("1", None), "row 2, column 'c' is empty: every event needs a time; 1 row lacks one"),
        (text("1", " "), "row 2, column 'c' is empty: every event needs a time; 1 row lacks one"),
        (text("1", "nan"), "row 2, column 'c' is 'nan': a time must be a finite 64-bit number."),
        (text("1", "-inf"), "row 2, column 'c' is '-inf': a time must be a finite 64-bit number."),
        (text("1", "9223372036854775808"), "row 2, column 'c' is '9223372036854775808': a time this large"),
        (text(str(EXACT), "1.5"), f"row 1, column 'c' is '{EXACT}': a time this large keeps its digits"),
        (text("x" * 5000), "row 1, column 'c' is 'xxxxxxxxxx"),
        (column([1.0, float("nan")]), "a.parquet, row 2, column 'c' is nan: a time must be a finite 64-bit"),
        (column([1, 2**63], pl.UInt64), "row 2, column 'c' is 9223372036854775808: a time must be a finite"),
        (column([1, None]), "row 2, column 'c' is empty: every event needs a time; 1 row lacks one"),
        (column([None, None]), "row 1, column 'c' is empty: every event needs a time; 2 rows lack one"),
        (column([datetime.date(2024, 1, 1), None]), "row 2, column 'c' is empty: every event needs a time"),
        (column([True]), "is True: a time is a number, a date or ISO text, not Boolean."),
        (column([datetime.time(1)]), "a time is a number, a date or ISO text, not Time."),
        (column([[1]]), "row 1, column 'c' is [1]: a time is a number, a date or ISO text, not List(Int64)."),
    ],
)  # fmt: skip
def test_times_that_cannot_be_used(table: Table, said: str) -> None:
    assert said in refused(read_times, table)


# Features, categories, labels


def test_numeric_features_are_float32_side_by_side() -> None:
    frame = pl.DataFrame(
        {"a": ["0.5", " 1e3"], "b": [1, 2], "c": [True, False], "d": [Decimal("0.25"), None]}
    )
    values = read_numbers(Table(frame, "a.csv"), ("a", "b", "c"))
    assert values.dtype == torch.float32 and values.tolist() == [[0.5, 1, 1], [1000, 2, 0]]
    assert "row 2, column 'd' is empty: a feature must be a finite float32." in refused(
        read_numbers, Table(frame, "a.csv"), ("a", "d")
    )


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (
            text("1", "red"),
            "a.csv, row 2, column 'c' is 'red': a feature must be a finite float32. Text goes in",
        ),
        (text("1", "nan"), "row 2, column 'c' is 'nan': a feature must be a finite float32."),
        (text("1", None), "row 2, column 'c' is empty: a feature must be a finite float32."),
        (text("1", "1e39"), "row 2, column 'c' is '1e39': a feature must be a finite float32."),
        (column([1.0, float("inf")]), "row 2, column 'c' is inf: a feature must be a finite float32."),
        (
            column([datetime.date(2024, 1, 1)]),
            "a numeric feature cannot be Date; pass it in categories=… instead.",
        ),
        (
            column([1j], pl.Object),
            "a numeric feature cannot be of mixed or unknown type; pass it in categories",
        ),
    ],
)
def test_features_that_cannot_be_used(table: Table, said: str) -> None:
    message = refused(read_numbers, table, ("c",))
    assert said in message and ("Text goes" in message) == ("'red'" in message)


@pytest.mark.parametrize(
    ("table", "index", "levels"),
    [
        (text("10", "9", "10"), [1, 0, 1], (9, 10)),
        (text(" b", "a", "b "), [1, 0, 1], ("a", "b")),
        (column(["b", "a", "b"], pl.Categorical), [1, 0, 1], ("a", "b")),
        (column(["z", "a"], pl.Enum(["z", "a"])), [1, 0], ("a", "z")),
        (column([300, 7, 300], pl.Int16), [1, 0, 1], (7, 300)),
        (column([True, False]), [1, 0], (False, True)),
        (column([0.5, -1.5]), [1, 0], (-1.5, 0.5)),
    ],
)
def test_categories_become_indices_into_their_levels(
    table: Table, index: list[int], levels: tuple[Any, ...]
) -> None:
    values = read_categories(table, "c")
    known = values.unique().sort()
    found = positions(values, known)
    assert found.tolist() == index and found.dtype == torch.int64 and tuple(known.to_list()) == levels


def test_categories_that_cannot_be_used() -> None:
    assert refused(read_categories, text("a", None)) == (
        "a.csv, row 2, column 'c' is empty: fill it first, for instance with a category of its own."
    )
    assert "a category cannot be List(Int64)" in refused(read_categories, column([[1]]))
    assert "a category cannot be of mixed or unknown type" in refused(
        read_categories, column([1j], pl.Object)
    )


@pytest.mark.parametrize(
    "table",
    [text("0", "1", " 3"), text("0.0", "1", "3.0"), column([0, 1, 3], pl.Int8), column([0.0, 1.0, 3.0])],
)
def test_labels_are_integers(table: Table) -> None:
    assert read_labels(table, "c").tolist() == [0, 1, 3]
    assert read_labels(text("True", "false"), "c").tolist() == [1, 0]
    assert read_labels(column([True, False]), "c").tolist() == [1, 0]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (text("0", "0.5"), "a.csv, row 2, column 'c' is '0.5': a label must be a whole number."),
        (text("0", "spam"), "row 2, column 'c' is 'spam': a label must be a whole number."),
        (text("0", None), "row 2, column 'c' is empty: a label must be a whole number."),
        (text("0", "1e300"), "row 2, column 'c' is '1e300': a label must be a whole number."),
        (column([0.0, float("nan")]), "row 2, column 'c' is nan: a label must be a whole number."),
        (column([[1]]), "row 1, column 'c' is [1]: a label must be a whole number, not List(Int64)."),
    ],
)
def test_labels_that_cannot_be_used(table: Table, said: str) -> None:
    assert said in refused(read_labels, table)
