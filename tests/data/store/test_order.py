from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pres.data.incidence import IndexArrays
from pres.data.store import order
from pres.data.store.arrays import mapped
from pres.data.store.columns import ColumnFiles
from pres.data.store.order import write_index, write_time_order
from pres.sampling.index import index_arrays
from tests.oracles.sampling import Event
from tests.streams import as_stream, small_streams


@settings(deadline=None)  # files
@given(small_streams(), st.booleans(), st.integers(1, 12), st.sampled_from([1, 2, 1 << 16]))
def test_an_index_made_in_parts_is_that_made_in_memory(
    events: list[Event], directed: bool, at_once: int, most_nodes: int
) -> None:
    stream = as_stream(events, directed=directed)
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(order, "_MOST_NODES", most_nodes)
        write_index(stream, Path(folder), at_once)
        wanted = index_arrays(stream, "out" if directed else "both")
        for name, theirs in zip(IndexArrays._fields, wanted, strict=True):
            ours = mapped(Path(folder) / f"index-{name}.npy")
            assert ours.dtype == theirs.dtype and torch.equal(ours, theirs), name


@settings(deadline=None)  # files
@given(
    st.lists(st.integers(-3, 3) | st.integers(-(2**62), 2**62), min_size=1, max_size=60),
    st.integers(1, 20),
    st.booleans(),
)
def test_an_order_made_in_parts_is_stable(times: list[int], at_once: int, floats: bool) -> None:
    t = np.array(times, dtype=np.float64 if floats else np.int64)
    with TemporaryDirectory() as folder:
        path = Path(folder) / "row.npy"
        write_time_order(t, path, at_once)
        wanted = sorted(range(len(t)), key=lambda row: t[row])  # Python's sort is stable
        assert mapped(path).tolist() == wanted


def test_one_time_may_have_more_events_than_are_sorted_at_once(tmp_path: Path) -> None:
    t = np.array([5, 1, 5, 5, 5, 9, 5, 5, 5, 0, 5, 5])
    write_time_order(t, tmp_path / "row.npy", 2)
    assert mapped(tmp_path / "row.npy").tolist() == [9, 1, 0, 2, 3, 4, 6, 7, 8, 10, 11, 5]


def test_columns_that_come_in_parts_are_put_into_the_order_of_time(tmp_path: Path) -> None:
    t, x = torch.tensor([4, 0, 3, 3, 1]), torch.arange(10.0).reshape(5, 2)
    with ColumnFiles(tmp_path, 5, at_once=2) as columns:
        for part in (slice(0, 2), slice(2, 5)):
            columns.append(t=t[part], x=x[part], label=None)
        columns.sort()
    found, order = columns.tensors(), [1, 4, 2, 3, 0]
    assert {path.name for path in tmp_path.iterdir()} == {"t.npy", "x.npy", "row.npy"}
    assert found["row"].tolist() == order and found["t"].tolist() == t[order].tolist()
    assert found["x"].tolist() == x[order].tolist()
