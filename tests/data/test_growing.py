"""A stream that grows, against its log as plain tuples: every event, id and number is where it belongs."""

from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pres
from pres.data.growing import GrowingStream
from pres.data.room import Room
from pres.data.stream import EventStream
from pres.errors import OptionError, PresError, ValueInRowError
from tests.data.same import assert_same

Row = tuple[Any, Any, int]


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Row], list[int], bool]:
    """A log of text ids, where to cut it, and whether its sides are two kinds of nodes."""
    n = draw(st.integers(2, 30))
    users, items = (draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)) for _ in range(2))
    t = np.cumsum(draw(st.lists(st.sampled_from([0, 0, 1, 4]), min_size=n, max_size=n))) + 5
    t[0] = 0  # two times at least, for pres.read to have a stream
    t[1] = 5
    cuts = draw(st.lists(st.integers(2, n), max_size=6))
    rows = [(f"n{user}", f"n{item}", int(at)) for user, item, at in zip(users, items, sorted(t), strict=True)]
    return rows, [2, *sorted(set(cuts) - {2}), n], draw(st.booleans())


def table(rows: list[Row]) -> dict[str, list[Any]]:
    return {name: [row[place] for row in rows] for place, name in enumerate(("user", "item", "ts"))}


def numbers(rows: list[Row], begun: int, bipartite: bool) -> dict[tuple[str, Any], int]:
    """The node of each side and id, found by a loop: sorted at first, then in the order of occurrence."""
    first = rows[:begun]
    if bipartite:
        names = [("src", i) for i in sorted({row[0] for row in first})]
        names += [("dst", i) for i in sorted({row[1] for row in first})]
    else:
        names = [("any", i) for i in sorted({i for row in first for i in row[:2]})]
    for src, dst, _ in rows[begun:]:
        for name in (("src", src), ("dst", dst)) if bipartite else (("any", src), ("any", dst)):
            if name not in names:
                names.append(name)
    return {name: node for node, name in enumerate(names)}


@given(log=logs())
def test_every_id_keeps_its_number_and_new_ones_follow(log: tuple[list[Row], list[int], bool]) -> None:
    rows, cuts, bipartite = log
    begun = pres.read(table(rows[:2]), src="user", dst="item", t="ts", bipartite=bipartite, time_unit="s")
    growing, views = GrowingStream(begun), [begun]
    for start, stop in pairwise(cuts):
        if start < stop:
            views.append(growing.append(table(rows[start:stop])))
    node_of, sides = numbers(rows, 2, bipartite), ("src", "dst") if bipartite else ("any", "any")
    for events in [*views, growing.events]:
        known = rows[: len(events)]
        assert events.src.tolist() == [node_of[sides[0], row[0]] for row in known]
        assert events.dst.tolist() == [node_of[sides[1], row[1]] for row in known]
        assert events.t.tolist() == [row[2] for row in known]
        assert events.num_nodes == events.ids.num_nodes == len(numbers(known, 2, bipartite))
        assert events.bipartite == bipartite and events.info == begun.info
        assert events.ids.decode(events.src).to_list() == [row[0] for row in known]
        assert events.ids.decode(events.dst).to_list() == [row[1] for row in known]
        assert torch.equal(events.ids.encode_src([row[0] for row in known]), events.src)
        assert torch.equal(events.ids.encode_dst([row[1] for row in known]), events.dst)
    asked = pl.Series([f"n{i}" for i in range(10)])
    assert torch.equal(growing.find_src(asked), growing.events.ids.find_src(asked))
    assert torch.equal(growing.find_dst(asked), growing.events.ids.find_dst(asked))


def featured(rows: slice) -> tuple[dict[str, Any], EventStream]:
    """Some rows of a log with features, categories and integer ids, and all of it as a stream."""
    whole: dict[str, list[Any]] = {
        "src": [1, 5, 1, 7, 9, 5],
        "dst": [100, 200, 100, 300, 100, 400],
        "t": [0, 1, 1, 2, 5, 9],
        "f0": [0.5, 1, 2, 3, 4, 5],
        "f1": [1, 0, 1, 0, 1, 0],
        "kind": ["a", "b", "b", "a", "b", "a"],
        "label": [0, 0, 1, 0, 0, 1],
    }
    how: dict[str, Any] = {"categories": ["kind"], "bipartite": True, "time_unit": "s"}
    return {name: values[rows] for name, values in whole.items()}, pres.read(whole, **how)


@pytest.mark.filterwarnings("ignore::pres.errors.Notice")
def test_features_and_categories_are_those_of_one_reading(tmp_path: Any) -> None:
    first, whole = featured(slice(0, 3))
    how: dict[str, Any] = {"categories": ["kind"], "bipartite": True, "time_unit": "s"}
    begun = pres.read(first, **how)
    growing = GrowingStream(begun)
    growing.append(featured(slice(3, 5))[0])
    last = featured(slice(5, 6))[0]
    by_place = {name: values for name, values in last.items() if name not in ("f0", "f1")}
    events = growing.append(by_place, features=np.array([[5.0, 0.0]]))
    for name in ("t", "x", "categories"):
        assert torch.equal(getattr(events, name), getattr(whole, name)), name
    assert events.label is None and begun.label is not None
    assert events.ids.src_values.to_list() == [1, 5, 7, 9] and events.ids.num_src == 4
    assert events.ids.dst_values is not None and events.ids.dst_values.to_list() == [100, 200, 300, 400]
    assert (events.src.tolist(), events.dst.tolist()) == ([0, 1, 0, 4, 6, 1], [2, 3, 2, 5, 2, 7])
    assert not events.ids.sources_first and begun.ids.sources_first
    pres.write_store(events, tmp_path / "store")
    again = pres.open_store(tmp_path / "store")
    assert_same(events.with_info(again.info), again)
    assert torch.equal(again.ids.encode_dst([400, 100]), torch.tensor([7, 2]))
    with pytest.raises(OptionError, match="both sides"):
        events.ids.decode([4, 5])


@pytest.mark.filterwarnings("ignore::pres.errors.Notice")
def test_what_does_not_fit_is_one_line_and_changes_nothing() -> None:
    first, _ = featured(slice(0, 3))
    growing = GrowingStream(
        pres.read(first, categories=["kind"], bipartite=True, time_unit="s", label="label")
    )
    more, before = featured(slice(3, 5))[0], growing.events
    wrong: list[tuple[dict[str, Any], type[PresError], str]] = [
        ({"t": [1, 0]}, OptionError, "event 2 of 2 is at 0, and that before it at 1"),
        ({"t": [0, 4]}, OptionError, "event 1 of 2 is at 0, and that before it at 1"),
        ({"t": [2.5, 3]}, ValueInRowError, "row 1, column 't' is 2.5: the stream's times are whole numbers"),
        (
            {"kind": ["a", "z"]},
            ValueInRowError,
            "row 2, column 'kind' is 'z': the stream has no such category",
        ),
        ({"src": ["x", "y"]}, ValueInRowError, "column 'src' is 'x': the stream's ids are of type Int64"),
        ({"dst": [1, None]}, ValueInRowError, "column 'dst'"),
        ({"f1": [1.0, np.inf]}, ValueInRowError, "column 'f1'"),
    ]
    for change, kind, says in wrong:
        with pytest.raises(kind, match=says):
            growing.append(more | change)
        assert growing.events is before
    for column, says in ("f0", "lacks the stream's 2 numeric features"), ("kind", "lacks the column 'kind'"):
        with pytest.raises(OptionError, match=says):
            growing.append({name: values for name, values in more.items() if name != column})
    with pytest.raises(OptionError, match="features have 3 columns, but the stream's have 2"):
        growing.append(more, features=np.zeros((2, 3)))
    for values in np.array([[0, 1], [np.inf, 0]]), np.array([[0, 1], [1e300, 0]]), [["a", "b"], ["c", "d"]]:
        with pytest.raises(ValueInRowError, match="a feature must be a finite float32"):
            growing.append(more, features=values)
    with pytest.raises(ValueInRowError, match="a feature beyond"):
        growing.append(more, features=np.array([[0, 1], [1e20, 0]]))
    with pytest.raises(OptionError, match="not a slice"):
        GrowingStream(before[1:])
    assert growing.append(more).num_nodes == before.num_nodes + 3


@pytest.mark.filterwarnings("ignore::pres.errors.Notice")
def test_new_nodes_have_no_features_and_sorted_rows_go_on() -> None:
    begun = pres.read(
        {"src": [1, 2, 3], "dst": [2, 3, 1], "t": [3, 1, 2]},
        node_features=np.ones((3, 2)),
        bipartite=False,
        time_unit="s",
    )
    assert begun.row is not None and begun.node_x is not None
    events = GrowingStream(begun).append({"src": [9, 9], "dst": [1, 9], "t": [3, 4]})
    assert events.row is not None and events.row.tolist() == [*begun.row.tolist(), 3, 4]
    assert events.node_x is not None and events.node_x.tolist() == [[1, 1]] * 3 + [[0, 0]]
    assert events.dst.tolist()[-2:] == [0, 3]  # the new node's own event is a self-loop
    assert begun.num_nodes == 3 and len(begun.node_x) == 3


def test_appending_copies_each_row_a_bounded_number_of_times() -> None:
    room, copied, before = Room(torch.arange(1_000)), 0, -1
    views = []
    for value in range(1_000, 20_000):
        rows = room.append(torch.tensor([value]))
        if rows.data_ptr() != before:
            copied, before = copied + len(rows), rows.data_ptr()
        views.append(rows) if value % 1_000 == 0 else None
    assert copied < 3 * 20_000
    for view in views:
        assert torch.equal(view, torch.arange(len(view)))
