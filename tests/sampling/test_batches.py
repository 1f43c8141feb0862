import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.sampling import TemporalBatches, prefetch
from tests.oracles.sampling import Event, fixed_edges, whole_tie_edges, window_edges
from tests.streams import as_stream, small_streams
from tests.waiting import until


@given(events=small_streams(), size=st.integers(1, 45), ties=st.sampled_from(["cut", "whole"]))
def test_fixed_sizes_equal_the_loop(events: list[Event], size: int, ties: str) -> None:
    batches = TemporalBatches(as_stream(events), size, ties=ties)  # type: ignore[arg-type]
    times = [t for *_, t in events]
    expected = whole_tie_edges(times, size) if ties == "whole" else fixed_edges(len(events), size)
    assert batches.edges.tolist() == expected


@given(events=small_streams(), window=st.sampled_from([0.5, 1.0, 2.5, 4.0, 1000.0]))
def test_windows_equal_the_loop(events: list[Event], window: float) -> None:
    batches = TemporalBatches(as_stream(events), window=window)
    assert batches.edges.tolist() == window_edges([t for *_, t in events], window)


def test_windows_of_integer_times_are_exact() -> None:
    far = 2**25
    t = torch.tensor([0, far + 1, far + 2, far + 3])
    stream = EventStream(torch.zeros(4, dtype=torch.int64), torch.ones(4, dtype=torch.int64), t)
    for window in (1, 1.0):
        assert TemporalBatches(stream, window=window).edges.tolist() == [0, 1, 2, 3, 4]
    hour = 3_600_000_000_000
    t = torch.tensor([hour, 2 * hour - 1, 2 * hour, 3 * hour]) + 1_700_000_000_000_000_000
    stream = EventStream(torch.zeros(4, dtype=torch.int64), torch.ones(4, dtype=torch.int64), t)
    assert TemporalBatches(stream, window=3600e9).edges.tolist() == [0, 2, 3, 4]


def test_a_repr_says_how_many_batches_of_which_size() -> None:
    batches = TemporalBatches(as_stream([(0, 1, float(i)) for i in range(7)]), 3)
    assert repr(batches) == "TemporalBatches of 'events': 3 batches, 1 to 3 events each"


@given(events=small_streams(), size=st.integers(1, 9), start=st.integers(0, 10))
def test_batches_are_consecutive_slices_of_the_stream(events: list[Event], size: int, start: int) -> None:
    stream = as_stream(events)
    part = stream[start:]
    batches = TemporalBatches(part, size)
    assert len(list(batches)) == len(batches)
    position = part.offset
    for batch in batches:
        assert batch.offset == position
        assert torch.equal(batch.src, stream.src[position : position + len(batch)])
        assert batch.src.data_ptr() == stream.src[position:].data_ptr()
        position += len(batch)
    assert position == part.offset + len(part)


def test_batches_are_indexed_like_a_list() -> None:
    batches = TemporalBatches(as_stream([(0, 1, float(i)) for i in range(7)]), 3)
    assert [len(batch) for batch in batches[1:]] == [3, 1]
    assert batches[-1].offset == 6
    with pytest.raises(IndexError):
        batches[3]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "either size"),
        ({"size": 5, "window": 1.0}, "either size"),
        ({"size": 0}, "batch size 0"),
        ({"size": 2.5}, "batch size 2.5"),
        ({"window": 0.0}, "window=0.0"),
        ({"window": float("nan")}, "window=nan"),
        ({"size": 5, "ties": "hole"}, "Did you mean 'whole'"),
    ],
)
def test_bad_arguments_get_clear_errors(arguments: dict[str, object], message: str) -> None:
    stream: EventStream = as_stream([(0, 1, 1.0), (1, 2, 2.0)])
    with pytest.raises(OptionError, match=message):
        TemporalBatches(stream, **arguments)  # type: ignore[arg-type]


@given(items=st.lists(st.integers()), depth=st.integers(1, 5))
def test_prefetch_yields_the_same_items_in_order(items: list[int], depth: int) -> None:
    assert list(prefetch(items, depth)) == items


@pytest.mark.parametrize("depth", [1, 3])
def test_prefetch_makes_the_next_items_while_this_one_is_used(
    depth: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, made = 0, []

    class Counting(ThreadPoolExecutor):
        def submit(self, *given: Any, **further: Any) -> Future[Any]:
            nonlocal asked
            asked += 1
            return super().submit(*given, **further)

    def items() -> Iterator[int]:
        for i in range(9):
            made.append(i)
            yield i

    monkeypatch.setattr("pres.sampling.batches.ThreadPoolExecutor", Counting)
    stream = prefetch(items(), depth)
    for used in range(5):
        assert next(stream) == used
        wanted = used + 1 + depth
        assert asked == wanted  # so many ahead, and no more
        until(lambda wanted=wanted: made == list(range(wanted)))  # type: ignore[misc]


def test_prefetch_raises_where_the_failing_item_would_come() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise RuntimeError("broken")

    stream = prefetch(items())
    assert next(stream) == 1
    with pytest.raises(RuntimeError, match="broken"):
        next(stream)


def test_leaving_a_prefetch_early_stops_its_thread() -> None:
    for item in prefetch(range(1_000_000)):
        if item == 3:
            break
    names = [thread.name for thread in threading.enumerate()]
    assert not any(name.startswith("pres-prefetch") for name in names)


def test_prefetch_needs_a_depth() -> None:
    with pytest.raises(OptionError, match="depth=0"):
        prefetch([1], 0)
