from typing import Any

import numpy as np
import polars as pl
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pres
from pres.data.ids import IdMap, positions
from pres.errors import OptionError, UnknownIdError

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)
INTEGERS = st.integers(-(2**63), 2**63 - 1)


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[str | int], list[str | int]]:
    """Two columns of ids of one type, drawn from few values so that they meet again."""
    known: list[Any] = draw(
        st.one_of(st.lists(TEXT, min_size=2, max_size=6), st.lists(INTEGERS, min_size=2, max_size=6))
    )
    n = draw(st.integers(2, 12))
    column = st.lists(st.sampled_from(known), min_size=n, max_size=n)
    return draw(column), draw(column)


@given(pairs(), st.booleans())
def test_ids_of_any_type_come_back_as_they_went_in(
    columns: tuple[list[str | int], list[str | int]], bipartite: bool
) -> None:
    src, dst = columns
    frame = pl.DataFrame({"a": src, "b": dst, "t": range(len(src))})
    events = pres.read(frame, src="a", dst="b", t="t", bipartite=bipartite)
    assert events.ids.decode(events.src).to_list() == src
    assert events.ids.decode(events.dst).to_list() == dst
    assert torch.equal(events.ids.encode_src(src), events.src)
    assert torch.equal(events.ids.encode_dst(dst), events.dst)
    distinct = len(set(src)) + len(set(dst)) if bipartite else len({*src, *dst})
    assert events.num_nodes == events.ids.num_nodes == distinct
    assert set(events.src.tolist()) | set(events.dst.tolist()) == set(range(distinct))


def test_dense_ids_follow_the_order_of_the_values() -> None:
    ids = IdMap.of(pl.Series(["b", "a"]), pl.Series(["c", "a"]), bipartite=False)
    assert ids.src_values.to_list() == ["a", "b", "c"] and ids.num_src is None
    two = IdMap.of(pl.Series([30, 10]), pl.Series([10, 7]), bipartite=True)
    assert two.encode_src([10, 30]).tolist() == [0, 1] and two.encode_dst([7, 10]).tolist() == [2, 3]
    assert (two.num_nodes, two.num_src) == (4, 2)


def test_dense_maps_return_the_nodes_themselves() -> None:
    shared, apart, twice = IdMap.dense(5), IdMap.dense(5, 3), IdMap.two_counts(3, 2)
    assert shared.decode(torch.tensor([4, 0])).to_list() == [4, 0]
    assert apart.decode(torch.tensor([4, 3])).to_list() == [4, 3] and apart.encode_dst([3]).tolist() == [3]
    assert twice.decode(torch.tensor([4, 3])).to_list() == [1, 0] and twice.encode_dst([0]).tolist() == [3]
    assert apart.num_nodes == twice.num_nodes == 5 and apart.num_src == twice.num_src == 3


def test_ids_may_be_asked_for_in_any_form() -> None:
    integers, text = IdMap.dense(9), IdMap(pl.Series(["7", "bob"]))
    for wanted in (
        [7],
        (7,),
        np.array([7]),
        torch.tensor([7]),
        pl.Series([7]),
        7,
        pl.Series([7], dtype=pl.UInt8),
    ):
        assert integers.encode_src(wanted).tolist() == [7]
    for words in (["bob"], "bob", np.array(["bob"]), pl.Series(["bob"], dtype=pl.Categorical)):
        assert text.encode_src(words).tolist() == [1]
    assert text.encode_src([7]).tolist() == [0]  # an integer is the text that it is written as
    assert integers.encode_src([]).tolist() == text.encode_dst([]).tolist() == []


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ([1, 99, 98, 97, 96], "source id 99, 98, 97 and 1 more never occurs in the stream."),
        ([2**64 - 1], "source id 18446744073709551615 never occurs"),
        (["a"], "source ids are Int64, but 'a' (String) was asked for. Give ids of the type"),
        ([1.5], "source ids are Int64, but 1.5 (Float64) was asked for."),
        ([True], "source ids are Int64, but True (Boolean) was asked for."),
        ([1, "a"], "source ids must be one list of text or of integers."),
        ([None, 1], "source id None never occurs"),
    ],
)
def test_ids_that_never_occur_are_named(wanted: list[object], said: str) -> None:
    with pytest.raises(UnknownIdError) as caught:
        IdMap.dense(5).encode_src(wanted)
    assert said in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_a_destination_that_never_occurs_is_called_one() -> None:
    ids = IdMap.of(pl.Series(["a"]), pl.Series(["b"]), bipartite=True)
    with pytest.raises(UnknownIdError, match="destination id 'a' never occurs in the stream"):
        ids.encode_dst(["a"])


def test_only_nodes_of_one_side_are_decoded_at_once() -> None:
    with pytest.raises(OptionError, match="both sides of a bipartite stream"):
        IdMap.dense(4, 2).decode(torch.tensor([1, 2]))
    for node in (-1, 4):
        with pytest.raises(UnknownIdError, match=f"node {node} is none of the stream's 4 nodes"):
            IdMap.dense(4).decode(torch.tensor([node]))
    assert IdMap.dense(4, 2).decode(torch.tensor([], dtype=torch.int64)).to_list() == []


def test_decode_takes_lists_arrays_and_single_nodes() -> None:
    ids = IdMap(pl.Series("id", ["a", "b", "c"]))
    for nodes in ([2, 0], np.array([2, 0]), torch.tensor([2, 0])):
        assert ids.decode(nodes).to_list() == ["c", "a"]
    assert ids.decode(1).to_list() == ["b"]
    for nonsense in ("b", 1.5, [None]):
        with pytest.raises(OptionError, match="decode takes"):
            ids.decode(nonsense)


def test_text_is_found_among_numbers_only_if_it_is_written_as_one() -> None:
    known = pl.Series([3, 7, 12])
    assert positions(pl.Series(["7", "007", "zed", "12"]), known).tolist() == [1, -1, -1, 2]
    assert positions(pl.Series([12, 7, 8]), pl.Series(["007", "12"])).tolist() == [1, -1, -1]
    assert positions(pl.Series([], dtype=pl.Int64), known).tolist() == []
