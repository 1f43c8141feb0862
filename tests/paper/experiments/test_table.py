"""Tables: what a cell shows, and what survives a file."""

import json

from pres.paper.experiments.table import Heading, Spread, Table, signed

TABLE = Table(
    (
        Heading("model", "model"),
        Heading("ap", "AP", digits=2),
        Heading("less", "ours − paper", signed=True),
        Heading("seconds", "s", repeatable=False),
    ),
    (
        ("TGN", Spread(97.126, 0.314, 3), -0.25, 1.5),
        ("JODIE", Spread(95.0, None, 1), None, 12_345),
        ("APAN", None, 3, True),
    ),
)


def test_cells_are_shown_with_their_spread_and_sign() -> None:
    assert TABLE.shown() == [
        ["TGN", "97.13 ± 0.18", "−0.2", "1.5"],
        ["JODIE", "95.00", "–", "12,345"],
        ["APAN", "–", "+3", "yes"],
    ]


def test_the_spread_is_the_standard_error_and_that_of_the_paper_as_it_prints_it() -> None:
    heading = Heading("ap", "AP", digits=2)
    assert heading.shown(Spread(97.126, 0.4, 4)) == "97.13 ± 0.20"
    assert heading.shown(Spread(97.126, 0.4, 4, printed=True)) == "97.13 ± 0.40"


def test_a_difference_of_nothing_has_no_sign() -> None:
    assert [signed(value) for value in (0.04, -0.04, 0, 1.25, -1234.5)] == [
        *("0.0", "0.0", "0.0", "+1.2", "−1,234.5")
    ]
    assert Heading("less", "less", signed=True).shown(0) == "0"


def test_markdown_has_numbers_on_the_right() -> None:
    lines = TABLE.markdown().splitlines()
    assert lines[0] == "| model | AP | ours − paper | s |"
    assert lines[1] == "|---|---:|---:|---|"
    assert lines[2] == "| TGN | 97.13 ± 0.18 | −0.2 | 1.5 |"
    assert Table(TABLE.headings, ()).markdown().count("\n") == 1


def test_a_table_goes_through_json_and_back() -> None:
    assert Table.of(json.loads(json.dumps(TABLE.to_dict()))) == TABLE


def test_times_can_be_left_out() -> None:
    assert [heading.name for heading in TABLE.repeatable().headings] == ["model", "ap", "less"]
    assert TABLE.repeatable().rows[1] == ("JODIE", Spread(95.0, None, 1), None)


def test_a_spread_is_mean_and_deviation_of_what_is_known() -> None:
    found = Spread.of([1.0, None, 3.0])
    assert found == Spread(2.0, 2**0.5, 2)
    assert Spread.of([None]) is None and Spread.of([]) is None
    assert Spread.of([5.0]) == Spread(5.0, None, 1)


def test_sorting_is_by_mean_and_unknown_cells_are_empty() -> None:
    assert TABLE.sort_keys() == [
        ["TGN", 97.126, -0.25, 1.5],
        ["JODIE", 95.0, "", 12_345],
        ["APAN", "", 3, True],
    ]
