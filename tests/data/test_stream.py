import copy
import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from pres.data.ids import IdMap
from pres.data.info import StreamInfo
from pres.data.stream import Event, EventStream
from pres.errors import DegenerateStreamError, OptionError
from tests.streams import as_stream, small_streams


def ten_events() -> EventStream:
    """Ten events among five nodes, two at time 3, with every kind of feature."""
    return EventStream(
        src=torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3, 4]),
        dst=torch.tensor([1, 2, 3, 4, 0, 0, 2, 3, 4, 0]),
        t=torch.tensor([0, 1, 2, 3, 3, 5, 6, 7, 8, 9]),
        x=torch.arange(20).reshape(10, 2),
        categories=torch.arange(10)[:, None] % 3,
        label=torch.arange(10) % 2,
        node_x=torch.ones(5, 4),
    )


def test_a_stream_knows_its_events_nodes_and_types() -> None:
    events = ten_events()
    assert len(events) == 10 and events.num_nodes == 5 and not events.bipartite and events.offset == 0
    assert events.src.dtype == events.dst.dtype == events.t.dtype == torch.int64
    assert events.x is not None and events.x.dtype == torch.float32
    assert events.categories is not None and events.categories.dtype == torch.int64
    assert events[3] == Event(3, 4, 3) and events[-1] == Event(4, 0, 9)
    assert [event.t for event in events][:3] == [0, 1, 2]
    assert events.num_categories == (3,) and events.info.category_names == ("category 0",)


def test_times_keep_their_64_bits() -> None:
    exact = 1_700_000_000_123_456_789
    events = EventStream(torch.tensor([0, 0]), torch.tensor([1, 1]), torch.tensor([exact, exact + 1]))
    assert events.t.dtype == torch.int64 and events.t.tolist() == [exact, exact + 1]
    halves = EventStream([0, 0], [1, 1], np.array([1.7e9, 1.7e9 + 0.25]))  # type: ignore[arg-type]
    assert halves.t.dtype == torch.float64 and halves.t.tolist() == [1.7e9, 1.7e9 + 0.25]


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(EventStream)])
def test_nothing_can_be_reassigned(name: str) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(ten_events(), name, None)


@pytest.mark.parametrize("kind", [torch.from_numpy, lambda array: array], ids=["tensors", "arrays"])
def test_the_stream_keeps_a_copy_of_what_it_was_given(kind: Any) -> None:
    given = {
        "src": np.array([0, 1, 2]),
        "dst": np.array([1, 2, 0]),
        "t": np.array([1.0, 2.0, 3.0]),
        "x": np.zeros((3, 1), np.float32),
        "categories": np.array([[0], [1], [0]]),
        "label": np.array([0, 0, 1]),
        "node_x": np.ones((3, 2), np.float32),
    }
    before = {name: array.tolist() for name, array in given.items()}
    events = EventStream(**{name: kind(array) for name, array in given.items()})
    for array in given.values():
        array[:] = 9
    assert {name: getattr(events, name).tolist() for name in given} == before


def test_read_only_and_reversed_arrays_are_welcome() -> None:
    fixed = np.arange(3)
    fixed.flags.writeable = False
    events = EventStream(fixed, np.arange(3)[::-1], [1, 2, 3])  # type: ignore[arg-type]
    assert events.src.tolist() == [0, 1, 2] and events.dst.tolist() == [2, 1, 0]


def test_slices_are_views_that_know_where_they_start() -> None:
    events = ten_events()
    part = events[3:8]
    assert len(part) == 5 and part.offset == 3 and part.num_nodes == 5
    for name in ("src", "dst", "t", "x", "categories", "label"):
        whole, subgraph = getattr(events, name), getattr(part, name)
        assert subgraph.data_ptr() == whole[3:].data_ptr(), name
        assert torch.equal(subgraph, whole[3:8]), name
    assert part.node_x is events.node_x and part.ids is events.ids and part.info is events.info
    assert part[1:3].offset == 4 and part[1:3].t.tolist() == [3, 5]
    assert len(events[8:3]) == 0 and len(events[-3:]) == 3 and events[-3:].offset == 7


def test_a_slice_takes_no_steps_and_an_index_has_bounds() -> None:
    with pytest.raises(OptionError, match="steps of 1"):
        ten_events()[::2]
    with pytest.raises(IndexError, match="event 10 of a stream of 10"):
        ten_events()[10]


def test_the_default_split_is_70_15_15() -> None:
    t = torch.arange(200)
    train, val, test = EventStream(t % 7, t % 5, t).split()
    assert [len(part) for part in (train, val, test)] == [140, 30, 30]
    assert [part.offset for part in (train, val, test)] == [0, 140, 170]


@given(small_streams(), st.floats(0.01, 0.97), st.floats(0.01, 0.97))
def test_a_split_keeps_every_event_and_tears_no_time_apart(
    events: list[tuple[int, int, float]], train: float, val: float
) -> None:
    stream = as_stream(events)
    if train + val >= 1:
        with pytest.raises(OptionError):
            stream.split(train, val)
        return
    if len({t for _, _, t in events}) < 3:
        with pytest.raises(DegenerateStreamError, match="without tearing events of equal time apart"):
            stream.split(train, val)
        return
    parts = stream.split(train, val)
    assert all(len(part) > 0 for part in parts)
    for name in ("src", "dst", "t"):
        assert torch.equal(torch.cat([getattr(part, name) for part in parts]), getattr(stream, name))
    assert parts.train.t[-1] < parts.val.t[0] and parts.val.t[-1] < parts.test.t[0]


@given(small_streams(), st.floats(0.01, 0.98), st.floats(0.01, 0.98))
def test_a_split_cuts_where_time_next_moves_on(
    events: list[tuple[int, int, float]], train: float, val: float
) -> None:
    times = [t for _, _, t in events]
    steps = [k for k in range(1, len(times)) if times[k] != times[k - 1]]
    assume(train + val < 1 and len(steps) >= 2)
    first = min([k for k in steps if k >= round(len(times) * train)], default=steps[-1])
    first = min(first, steps[-2])
    second = min([k for k in steps if k >= round(len(times) * (train + val))], default=steps[-1])
    second = max(second, min(k for k in steps if k > first))
    parts = as_stream(events).split(train, val)
    assert [len(part) for part in parts] == [first, second - first, len(times) - second]


def test_ties_at_a_boundary_belong_to_the_earlier_part() -> None:
    t = torch.tensor(
        [0, 1, 2, 3, 4, 5, 6, 6, 8, 9]
    )  # the boundary after seven events falls between the sixes
    zeros = torch.zeros(10, dtype=torch.int64)
    assert [part.t.tolist() for part in EventStream(zeros, zeros, t).split(0.7, 0.1)] == [
        [0, 1, 2, 3, 4, 5, 6, 6], [8], [9]
    ]  # fmt: skip


def test_a_long_tie_still_leaves_something_for_each_part() -> None:
    t = torch.tensor([0, 1, 1, 1, 1, 1, 1, 1, 1, 2])
    zeros = torch.zeros(10, dtype=torch.int64)
    assert [len(part) for part in EventStream(zeros, zeros, t).split()] == [1, 8, 1]


@pytest.mark.parametrize(("train", "val"), [(0, 0.5), (0.5, 0), (0.8, 0.2), (-1, 0.5), (float("nan"), 0.1)])
def test_fractions_that_make_no_sense(train: float, val: float) -> None:
    with pytest.raises(OptionError, match="both must be positive and leave a test part"):
        ten_events().split(train, val)


def test_the_span_is_known_where_the_unit_is() -> None:
    two = torch.tensor([0, 1])
    assert (
        EventStream(two, two, torch.tensor([0, 48]), info=StreamInfo(time_unit="h")).span_seconds == 172_800
    )
    assert EventStream(two, two, torch.tensor([0, 48])).span_seconds is None


def test_a_bipartite_stream_keeps_its_two_kinds_apart() -> None:
    events = EventStream(torch.tensor([0, 1]), torch.tensor([2, 4]), torch.tensor([1, 2]), num_src=2)
    assert events.bipartite and events.num_nodes == 5
    assert events.ids.decode(events.dst).to_list() == [2, 4]


def test_a_stream_survives_pickling_and_copying_and_moving() -> None:
    for twin in (
        pickle.loads(pickle.dumps(ten_events())),
        copy.deepcopy(ten_events()),
        ten_events().to("cpu"),
    ):
        assert torch.equal(twin.t, ten_events().t) and twin.num_nodes == 5
        assert twin.ids.decode(twin.src).to_list() == ten_events().src.tolist()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"src": [0.0, 1.0]}, "src must hold integers, not torch.float64"),
    ({"src": ["a", "b"]}, "src must hold numbers: can't convert"),
    ({"src": [[0], [1, 2]]}, "src must hold numbers"),
    ({"src": [-1, 1]}, "node ids must not be negative, found -1"),
    ({"src": [0, 1, 2]}, "dst has shape [2], expected [3] for 3 events"),
    ({"src": [[0, 1]]}, "src has shape [1, 2], expected [2]"),
    ({"t": [2, 1]}, "t decreases at event 1 (2 to 1): sort the events by time first"),
    ({"t": [1.0, float("nan")]}, "t of event 1 is not a finite number"),
    ({"t": [1j, 2j]}, "t cannot hold torch.complex128"),
    ({"t": np.array([1, 2**63], dtype=np.uint64)}, "t cannot hold torch.uint64"),
    ({"x": [[1.0], [float("inf")]]}, "x holds a value in row 1 that is not a finite float32"),
    ({"x": [[1.0], [1e39]]}, "x holds a value in row 1"),
    ({"x": [1.0, 2.0]}, "x has shape [2], expected [2, d]"),
    ({"x": [[1.0]]}, "x has shape [1, 1], expected [2, d]"),
    ({"categories": [[0], [-1]]}, "categories are indices from 0, found -1"),
    ({"categories": [[0], [5]], "info": StreamInfo(category_levels=(("a",),))}, "do not fit 1 categorical"),
    ({"label": [0.5, 1.0]}, "label must hold integers, not torch.float64"),
    ({"node_x": [[1.0]]}, "node_x has 1 rows for 3 nodes"),
    ({"node_x": [1.0, 2.0, 3.0]}, "node_x has shape [3], expected [num_nodes, d]"),
    ({"num_nodes": 2}, "node id 2 does not fit num_nodes=2"),
    ({"num_nodes": -1}, "num_nodes=-1"),
    ({"num_src": 2}, "sources must lie below it, destinations not"),
    ({"num_src": 9, "num_nodes": 3}, "num_nodes=3 and num_src=9 do not fit"),
    ({"ids": IdMap.dense(7)}, "ids name 7 nodes, but the stream has 3"),
]


@pytest.mark.parametrize(("change", "said"), BAD, ids=[said for _, said in BAD])
def test_what_does_not_fit_is_refused_in_one_line(change: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError) as caught:
        EventStream(**{"src": [0, 1], "dst": [1, 2], "t": [1, 2]} | change)
    assert said in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_features_that_would_overflow_in_training_are_named() -> None:
    def made(value: float) -> EventStream:
        return EventStream(
            torch.tensor([0, 1]), torch.tensor([1, 0]), torch.tensor([1, 2]), x=torch.tensor([[0.0], [value]])
        )

    assert made(1e15).x is not None and made(-1e15).x is not None
    with pytest.raises(OptionError, match=r"x holds a value in row 1 that is beyond ±1e\+15: scale it\."):
        made(-3e38)
