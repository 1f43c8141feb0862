"""Tables of pairs in the terms of a stream: columns, ids of every type, and times."""

from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

import pres
from pres.data.stream import EventStream
from pres.data.tabular.columns import PairColumns
from pres.data.tabular.pairs import Pairs, just_after, pair_columns, read_pairs
from pres.data.tabular.rows import open_table
from pres.errors import ColumnError, Notice, OptionError, UnknownIdError, ValueInRowError


def stream(src: list[Any], dst: list[Any], t: list[Any], **options: Any) -> EventStream:
    options = {"bipartite": False} | options
    return pres.read({"src": src, "dst": dst, "t": t}, src="src", dst="dst", t="t", **options)


USERS = stream(["ada", "bob", "ada", "cy"], [7, 7, 52, 52], [10, 20, 20, 30], bipartite=True)
NUMBERS = stream([3, 7, 12], [7, 12, 3], [1.5, 2.5, 3.5])


def pairs_of(
    events: EventStream, tmp_path: Path | None = None, *, t: str | None = None, **columns: Any
) -> Pairs:
    """Pairs from a file of text if there is a folder for one, otherwise from a frame."""
    frame, source = pl.DataFrame(columns, strict=False), None
    if tmp_path is not None:
        source = tmp_path / "pairs.csv"
        frame.write_csv(source)
    return read_pairs(
        open_table(frame if source is None else source), PairColumns("src", "dst", t), events, unknown="new"
    )


def test_ids_become_nodes_and_those_never_seen_the_node_after_the_last(tmp_path: Path) -> None:
    for folder in (None, tmp_path):
        found = pairs_of(USERS, folder, src=["bob", "zed", "cy", "7"], dst=[52, 7, 8, 8])
        assert found.src.tolist() == [1, 5, 2, 5]
        assert found.dst.tolist() == [4, 3, 5, 5]
        assert found.new.tolist() == [False, True, True, True]
        assert found.new_nodes == 3  # zed and 7 among the sources, 8 among the destinations
        assert found.t.tolist() == [31] * 4 and len(found) == 4


def test_text_is_a_number_only_if_it_is_written_as_one(tmp_path: Path) -> None:
    found = pairs_of(NUMBERS, tmp_path, src=["7", "007", "zed", "12"], dst=["3", "3", "3", "zed"])
    assert found.src.tolist() == [1, 3, 3, 2]
    assert found.dst.tolist() == [0, 0, 0, 3]
    assert found.new_nodes == 2  # zed is one node, whichever side it is on
    padded = stream(["007", "12"], ["x", "y"], [1, 2], bipartite=True)
    assert pairs_of(padded, tmp_path, src=["007", "7", "12"], dst=["x", "x", "y"]).src.tolist() == [0, 4, 1]
    assert pairs_of(padded, src=[12, 7], dst=["x", "y"]).src.tolist() == [1, 4]


def test_an_unknown_id_is_an_error_with_its_row_unless_it_may_be_new(tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text("who,what\nada,7\nada,9\nbob,52\nbob,8\n")
    with pytest.raises(UnknownIdError) as error:
        read_pairs(open_table(path), PairColumns("who", "what", None), USERS)
    assert str(error.value).startswith(
        f"{path}, row 2, column 'what': 9 never occurs in the stream, nor do 8. "
    )
    path.write_text("who,what\nada,7\n,52\n")
    with pytest.raises(ValueInRowError, match="row 2, column 'who' is empty"):
        read_pairs(open_table(path), PairColumns("who", "what", None), USERS, unknown="new")


def test_without_times_pairs_are_just_after_the_last_event() -> None:
    assert just_after(USERS).item() == 31
    after = just_after(NUMBERS)
    assert after.dtype == torch.float64 and 3.5 < after.item() < 3.5 + 1e-12


def test_numbers_keep_their_type_and_bad_ones_are_named_by_row(tmp_path: Path) -> None:
    assert pairs_of(USERS, src=["ada"], dst=[7], when=[25], t="when").t.dtype == torch.int64
    assert pairs_of(USERS, tmp_path, src=["ada"], dst=[7], when=[25.5], t="when").t.tolist() == [25.5]
    with pytest.raises(ValueInRowError, match="row 2, column 'when' is 'soon': not a time"):
        pairs_of(USERS, tmp_path, src=["ada"] * 2, dst=[7] * 2, when=["25", "soon"], t="when")
    with pytest.raises(OptionError, match="does not fit 64 bits"):
        pairs_of(stream([1, 2], [2, 1], [-9, 9]), src=[1], dst=[2], when=[2**63 - 1], t="when")


@pytest.mark.parametrize(
    ("fraction", "unit", "asked", "expected"),
    [
        ("", "s", "2024-05-17T08:30:00", 1_715_934_600),
        ("", "s", "2024-05-17T10:30:00.25+02:00", 1_715_934_600.25),
        (".5", "us", "2024-05-17T08:30:00", 1_715_934_600_000_000),
        (".123456789", "ns", "2024-05-17T08:30:00", 1_715_934_600_000_000_000),
        (".5", "us", "2024-05-17", 1_715_904_000_000_000),
    ],
)
def test_dates_are_counted_in_the_unit_of_the_stream(
    tmp_path: Path, fraction: str, unit: str, asked: str, expected: float
) -> None:
    events = stream([1, 2, 1], [2, 1, 2], ["2024-05-16", f"2024-05-17T00:00:01{fraction}", "2024-05-18"])
    assert (events.info.time_unit, events.info.dates) == (unit, True)
    found = pairs_of(events, tmp_path, src=[1], dst=[2], when=[asked], t="when")
    assert found.t.tolist() == [expected]


def test_dates_and_numbers_do_not_mix(tmp_path: Path) -> None:
    dated = stream([1, 2], [2, 1], ["2024-05-16", "2024-05-18"])
    with pytest.raises(
        OptionError, match=r"'when' holds dates, but the stream's times are numbers, from 10 to"
    ):
        pairs_of(USERS, tmp_path, src=["ada"], dst=[7], when=["2024-05-17"], t="when")
    with pytest.raises(
        OptionError, match="'when' holds numbers, but the stream's times were read from dates"
    ):
        pairs_of(dated, tmp_path, src=[1], dst=[2], when=[1_715_934_600], t="when")
    frame = open_table({"src": [1], "dst": [2], "t": [1_715_934_600]})
    fits = read_pairs(frame, PairColumns("src", "dst", "t"), dated, numbers_fit=True)
    assert fits.t.tolist() == [1_715_934_600]
    fine = stream([1, 2], [2, 1], ["2024-05-16T00:00:00.123456789", "2024-05-18"])
    with pytest.raises(OptionError, match="a date that does not fit 64 bits in ns"):
        pairs_of(fine, tmp_path, src=[1], dst=[2], when=["3024-05-17"], t="when")


@pytest.mark.parametrize(
    ("t", "said"),
    [
        (9, "lie before the stream's first event: it goes from 10 to 30, and nothing is known earlier."),
        (25_000, "lie far outside the stream, which goes from 10 to 30. Are they in the same unit?"),
        (-25_000, "lie far outside the stream, which goes from 10 to 30. Are they in the same unit?"),
    ],
)
def test_times_outside_the_stream_are_said(t: int, said: str) -> None:
    with pytest.warns(Notice) as heard:
        pairs_of(USERS, src=["ada"] * 2, dst=[7] * 2, when=[10, t], t="when")
    assert [str(one.message) for one in heard] == [f"the polars frame: 1 of 2 times in 'when' {said}"]


@pytest.mark.filterwarnings("error::pres.errors.Notice")
def test_times_that_are_merely_later_are_not_remarked_on() -> None:
    assert pairs_of(USERS, src=["ada"], dst=[7], when=[30 + 20 * 19], t="when").t.tolist() == [410]


def test_a_stream_in_milliseconds_since_1970_can_be_asked_by_dates(tmp_path: Path) -> None:
    with pytest.warns(Notice, match="look like ms since 1970"):
        events = stream([1, 2], [2, 1], [1_715_904_000_000, 1_715_990_400_000])
    for when in ("2024-05-17T12:00:00", "1715947200000"):
        found = pairs_of(events, tmp_path, src=[1], dst=[2], when=[when], t="when")
        assert found.t.tolist() == [1_715_947_200_000]


def test_columns_are_named_or_guessed_and_a_time_may_be_missing() -> None:
    table = open_table({"user": ["ada"], "item": [7], "note": ["x"]})
    with pytest.warns(Notice) as said:
        found = pair_columns(table, USERS, src=None, dst=None, t=None)
    assert found == PairColumns("user", "item", None, ("src='user'", "dst='item'"))
    assert [str(one.message) for one in said] == [
        "the dict: guessed src='user', dst='item'. Name them to decide yourself.",
        "the dict: there is no column of times, so the pairs are asked about just after the last event.",
    ]
    with pytest.raises(ColumnError, match="no column looks like dst; there are 'user', 'note'"):
        pair_columns(open_table({"user": ["ada"], "note": ["x"]}), USERS, src=None, dst=None, t=None)
    with pytest.raises(ColumnError, match="there is no column 'usr' for src"):
        pair_columns(table, USERS, src="usr", dst=None, t=None)


def test_columns_named_for_the_events_are_known_for_their_pairs(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = tmp_path / "log.csv"
    path.write_text("who,what,at\nada,7,1\nbob,8,2\n")
    events = pres.read(path, src="who", dst="what", t="at", bipartite=True)
    table = open_table({"what": [7], "who": ["ada"], "at": [3], "user": ["x"]})
    assert pair_columns(table, events, src=None, dst=None, t=None) == PairColumns("who", "what", "at")
    assert pair_columns(table, events, src="user", dst=None, t=None) == PairColumns("user", "what", "at")
    assert not recwarn.list
