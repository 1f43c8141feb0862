from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pres
from pres.errors import (
    ColumnError,
    DegenerateStreamError,
    Notice,
    OptionError,
    PresError,
    RowCountError,
    SourceNotFoundError,
    UnreadableSourceError,
    ValueInRowError,
)

NAMED: dict[str, Any] = {"src": "a", "dst": "b", "t": "t", "bipartite": False}
COLUMNS: dict[str, list[Any]] = {"a": ["ann", "bob", "ann"], "b": ["bob", "cy", "cy"], "t": [1, 2, 5]}


def write(folder: Path, *lines: str, name: str = "clicks.csv") -> Path:
    path = folder / name
    path.write_text("\n".join(lines) + "\n")
    return path


def refused(kind: type[PresError], source: Any, **options: Any) -> str:
    with pytest.raises(kind) as caught:
        pres.read(source, **options)
    assert type(caught.value) is kind and len(str(caught.value).splitlines()) == 1
    return str(caught.value)


# What comes in


@pytest.mark.filterwarnings("error::pres.errors.Notice")
def test_every_source_gives_the_same_stream(tmp_path: Path) -> None:
    frame = pl.DataFrame(COLUMNS)
    frame.write_csv(tmp_path / "a.csv")
    frame.write_csv(tmp_path / "a.tsv", separator="\t")
    frame.write_parquet(tmp_path / "a.parquet")
    np.savez(tmp_path / "a.npz", **{name: np.array(values) for name, values in COLUMNS.items()})  # type: ignore[arg-type]
    files = [tmp_path / name for name in ("a.csv", "a.tsv", "a.parquet", "a.npz")]
    for source in [*files, str(files[0]), frame, frame.lazy(), pd.DataFrame(COLUMNS), COLUMNS]:
        events = pres.read(source, **NAMED)
        assert events.src.tolist() == [0, 1, 0] and events.dst.tolist() == [1, 2, 2]
        assert events.t.tolist() == [1, 2, 5] and events.t.dtype == torch.int64
        assert events.num_nodes == 3 and not events.bipartite and not events.directed
        assert events.ids.src_values.to_list() == ["ann", "bob", "cy"]
        assert events.x is None and events.categories is None and events.label is None
        assert events.info.name == ("a" if isinstance(source, (str, Path)) else "events")


def test_features_categories_and_labels() -> None:
    events = pres.read(
        COLUMNS | {"w": [0.5, 1, 2], "rel": ["sell", "buy", "sell"], "y": [0, 1, 0]},
        **NAMED, x=["w"], categories=["rel"], label="y", directed=True, name="trades", time_unit="h",
    )  # fmt: skip
    assert events.x is not None and events.x.tolist() == [[0.5], [1.0], [2.0]]
    assert events.categories is not None and events.categories.tolist() == [[1], [0], [1]]
    assert events.label is not None and events.label.tolist() == [0, 1, 0]
    assert events.info.feature_names == ("w",) and events.info.category_names == ("rel",)
    assert events.info.category_levels == (("buy", "sell"),) and events.num_categories == (2,)
    assert events.directed and events.info.name == "trades" and events.info.time_unit == "h"


@pytest.mark.parametrize("columns", [1, 2, 5])
def test_features_kept_apart(tmp_path: Path, columns: int) -> None:
    apart = np.arange(3.0 * columns).reshape(3, columns)
    np.save(tmp_path / "f.npy", apart)
    pl.DataFrame(apart, schema=[f"g{k}" for k in range(columns)]).write_parquet(tmp_path / "f.parquet")
    for source in (
        apart,
        torch.from_numpy(apart),
        apart.tolist(),
        tmp_path / "f.npy",
        tmp_path / "f.parquet",
    ):
        events = pres.read(COLUMNS | {"w": [7, 8, 9]}, **NAMED, x="w", features=source)
        assert events.x is not None
        assert events.x.tolist() == np.column_stack([[7, 8, 9], apart]).tolist()
        assert len(events.info.feature_names) == columns + 1 and events.info.feature_names[0] == "w"


def test_node_features_follow_the_dense_ids() -> None:
    events = pres.read(COLUMNS, **NAMED, node_features=np.eye(3))
    assert events.node_x is not None and events.node_x.tolist() == np.eye(3).tolist()


def test_headerless_files_are_read_by_position(tmp_path: Path) -> None:
    path = write(tmp_path, "5 6 10 0", "6 7 11 0", name="CollegeMsg.txt")
    events = pres.read(path, header=False, src="column_1", dst="column_2", t="column_3", bipartite=False)
    assert events.ids.decode(events.dst).to_list() == [6, 7] and events.t.tolist() == [10, 11]
    said = refused(ColumnError, path, header=False)
    assert said.endswith("Name them (src=…, dst=…, t=…).")


def test_three_columns_without_a_header_are_src_dst_and_t(tmp_path: Path) -> None:
    path = write(tmp_path, "5 6 10", "6 7 11", name="CollegeMsg.txt")
    assert "Pass header=False; three columns are then src, dst, t." in refused(UnreadableSourceError, path)
    with pytest.warns(Notice) as said:
        events = pres.read(path, header=False)
    assert str(said[0].message) == (
        f"{path}: guessed src='column_1', dst='column_2', t='column_3', bipartite=False. "
        "What you give is not guessed."
    )
    assert events.ids.decode(events.src).to_list() == [5, 6] and events.t.tolist() == [10, 11]
    swapped = pres.read(path, header=False, src="column_2", dst="column_1", t="column_3", bipartite=False)
    assert swapped.ids.decode(swapped.src).to_list() == [6, 7]


# What is decided, and said


def test_guessed_columns_are_said() -> None:
    with pytest.warns(Notice) as said:
        events = pres.read(
            {"user": [1, 2, 1], "item": [1, 1, 2], "ts": [1, 2, 3], "f0": [0, 0, 1], "note": list("abc")}
        )
    assert [str(warning.message) for warning in said] == [
        "the dict: guessed src='user', dst='item', t='ts', x='f0', bipartite=True. Not used: 'note'; "
        "name features with x=… or categories=…. What you give is not guessed."
    ]
    assert said[0].filename == __file__
    assert events.num_src == 2 and events.num_nodes == 4
    assert events.ids.decode(events.src).to_list() == [1, 2, 1]
    assert events.ids.decode(events.dst).to_list() == [1, 1, 2]


def test_a_guessed_label_that_is_none_is_let_go() -> None:
    source = COLUMNS | {"label": ["spam", "ham", "spam"]}
    with pytest.warns(Notice, match="guessed t='t'. Not used: 'label'."):
        events = pres.read(source, src="a", dst="b", bipartite=False)
    assert events.label is None
    assert "row 1, column 'label' is 'spam': a label must be" in refused(
        ValueInRowError, source, **NAMED, label="label"
    )


@pytest.mark.parametrize(
    ("src", "dst", "bipartite"),
    [
        ([1, 2], [2, 3], False),
        ([1, 2], [3, 4], True),
        (["a", "b"], ["b", "c"], False),
        ([1, 2], ["2", "bob"], False),  # 2 occurs on both sides, once as a number
        ([1, 2], ["x", "y"], True),
    ],
)
def test_two_kinds_of_nodes_are_guessed_from_the_ids(src: list[Any], dst: list[Any], bipartite: bool) -> None:
    with pytest.warns(Notice, match=f"guessed bipartite={bipartite}"):
        events = pres.read({"a": src, "b": dst, "t": [1, 2]}, src="a", dst="b", t="t")
    assert events.bipartite is bipartite


def test_one_id_space_may_hold_text_and_numbers() -> None:
    events = pres.read({"a": [1, 2], "b": ["2", "bob"], "t": [1, 2]}, **NAMED)
    assert events.ids.src_values.to_list() == ["1", "2", "bob"] and events.dst.tolist() == [1, 2]


@given(st.lists(st.integers(-4, 4), min_size=2, max_size=30).filter(lambda t: len(set(t)) > 1))
def test_unsorted_events_are_sorted_stably(times: list[int]) -> None:
    n = len(times)
    source = {"a": list(range(n)), "b": list(range(n)), "t": times, "w": list(range(n)), "k": list(range(n))}
    options = NAMED | {"x": ["w"], "categories": ["k"], "label": None}
    if times == sorted(times):
        events = pres.read(source, **options)
    else:
        with pytest.warns(Notice, match="the events were sorted by time"):
            events = pres.read(source, **options)
    order = sorted(range(n), key=lambda k: times[k])  # Python's sort is stable
    assert events.t.tolist() == [times[k] for k in order]
    assert events.src.tolist() == events.dst.tolist() == order
    assert events.x is not None and events.x[:, 0].tolist() == order
    assert events.categories is not None and events.categories[:, 0].tolist() == order


def test_the_notice_of_a_sort_names_the_first_row() -> None:
    with pytest.warns(Notice) as said:
        events = pres.read(COLUMNS | {"t": [1, 5, 2]}, **NAMED)
    assert str(said[0].message) == (
        "the dict: times in 't' go back 1 times, first at row 3; the events were sorted by time "
        "(ties keep their order). events.row tells which row each was."
    )
    assert events.row is not None and events.row.tolist() == [0, 2, 1]
    rest = events[1:].row
    assert rest is not None and rest.tolist() == [2, 1]


# Dense ids


def test_dense_ids_are_taken_as_they_are() -> None:
    source = {"a": [0, 4], "b": [2, 0], "t": [1, 2]}
    shared = pres.read(source, **NAMED, ids="dense")
    assert shared.src.tolist() == [0, 4] and shared.num_nodes == 5
    assert shared.ids.decode(shared.src).to_list() == [0, 4]
    apart = pres.read(source, **NAMED | {"bipartite": True}, ids="dense")
    assert (apart.num_src, apart.num_nodes, apart.dst.tolist()) == (5, 8, [7, 5])
    assert apart.ids.decode(apart.dst).to_list() == [2, 0]


def test_dense_ids_of_two_kinds_in_one_count() -> None:
    events = pres.read(
        {"a": [0, 1], "b": [2, 4], "t": [1, 2]}, src="a", dst="b", t="t", bipartite=True, ids="dense"
    )
    assert (events.num_src, events.num_nodes, events.dst.tolist()) == (2, 5, [2, 4])
    assert events.ids.decode(events.dst).to_list() == [2, 4]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (
            [0, -2],
            "the dict, row 2, column 'a' is -2: dense ids count from 0; use ids='map' for any others.",
        ),
        (
            [0, 2**40],
            "row 2, column 'a' is 1099511627776: too sparse for the dense ids of 2 events; use ids='map'.",
        ),
        (["0", "x"], "row 2, column 'a' is 'x': ids='dense' promises integers; use ids='map'."),
    ],
)
def test_ids_that_are_not_dense(ids: list[Any], said: str) -> None:
    assert said in refused(ValueInRowError, {"a": ids, "b": [0, 1], "t": [1, 2]}, **NAMED, ids="dense")


# What is refused


def test_a_missing_file_and_missing_columns(tmp_path: Path) -> None:
    path = write(tmp_path, "user,item,stamp", "1,2,3", "2,3,4")
    assert refused(SourceNotFoundError, tmp_path / "clacks.csv") == (
        f"{tmp_path}/clacks.csv: no such file. Did you mean 'clicks.csv'?"
    )
    assert refused(ColumnError, path, src="usr") == (
        f"{path}: there is no column 'usr' for src; there are 'user', 'item', 'stamp'. Did you mean 'user'?"
    )
    assert refused(ColumnError, path) == (
        f"{path}: no column looks like t; there are 'user', 'item', 'stamp'. Name it (t=…); if the "
        "first line is data already, say so (header=False)."
    )


def test_a_bad_value_is_found_by_its_row(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,t,w", "1,2,3,0", "1,2,soon,0")
    assert refused(ValueInRowError, path, **NAMED) == (
        f"{path}, row 2, column 't' is 'soon': "
        "not a time. Use numbers, or ISO dates like 2024-05-17T08:30:00."
    )
    path = write(tmp_path, "a,b,t,w", "1,2,3,0", "1,2,4,nan")
    assert refused(ValueInRowError, path, **NAMED, x=["w"]) == (
        f"{path}, row 2, column 'w' is 'nan': a feature must be a finite float32."
    )


def test_streams_without_an_order_in_time(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b,t", "1,2,3")
    assert refused(DegenerateStreamError, path, **NAMED) == (
        f"{path} has a single event; a stream needs at least two."
    )
    path = write(tmp_path, "a,b,t", "1,2,3", "2,3,3")
    assert refused(DegenerateStreamError, path, **NAMED) == (
        f"{path}: all 2 events have the same time (3), so there is no order to learn from. "
        "Is this the right time column?"
    )
    said = refused(DegenerateStreamError, COLUMNS | {"t": [-(2**63), 0, 2**63 - 1]}, **NAMED)
    assert "the time from -9223372036854775808 to 9223372036854775807 does not fit 64 bits." in said


@pytest.mark.parametrize(
    ("features", "kind", "said"),
    [
        (
            np.zeros((4, 2)),
            RowCountError,
            "features have 4 rows, but there are 3 events in the dict; row k of one",
        ),
        (np.zeros(3), OptionError, "features has shape (3,): give a structured array, or a 2-D one."),
        ([[1, 2], [3], [4]], OptionError, "features must be 2-D, but the rows differ in length."),
        (
            np.array([[0], [np.nan], [0]]),
            ValueInRowError,
            "features, row 2, column 'f0' is nan: a feature must be",
        ),
        (np.zeros((3, 1), complex), ValueInRowError, "features, row 1, column 'f0' is"),
        ("nowhere.npy", SourceNotFoundError, "nowhere.npy: no such file."),
    ],
)
def test_features_that_do_not_fit(features: Any, kind: type[PresError], said: str) -> None:
    assert said in refused(kind, COLUMNS, **NAMED, features=features)


def test_node_features_that_do_not_fit() -> None:
    assert refused(RowCountError, COLUMNS, **NAMED, node_features=np.zeros((2, 1))) == (
        "node_features have 2 rows, but there are 3 nodes; give one row each."
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"ids": "dens"}, "ids='dens' is not one of 'map', 'dense'. Did you mean 'dense'?"),
        ({"time_unit": "parsec"}, "time_unit='parsec' is not one of 'ns', 'us', 'ms', 's', 'h', 'd'."),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], said: str) -> None:
    assert refused(OptionError, COLUMNS, **NAMED, **options) == said


def test_a_strange_column_is_no_matter_until_it_is_used() -> None:
    frame = pd.DataFrame(COLUMNS | {"odd": [1, "x", object()]})
    assert len(pres.read(frame, **NAMED)) == 3
    assert "of mixed or unknown type" in refused(ValueInRowError, frame, **NAMED, categories=["odd"])
