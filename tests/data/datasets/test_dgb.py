from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pres.data.datasets.load import load
from pres.data.datasets.registry import Counts
from pres.errors import RowCountError, UnreadableSourceError
from tests.data.datasets.toy import COUNTS, DST, LABEL, SRC, Publish, T, X, write_dgb


def test_ids_from_one_and_the_empty_first_row(data: Path, publish: Publish) -> None:
    publish("wikipedia", COUNTS)
    write_dgb(data / "wikipedia", "wikipedia")
    events = load("wikipedia")
    assert (events.src.tolist(), events.dst.tolist(), events.t.tolist()) == (SRC, DST, T)
    assert events.x is not None and events.x.tolist() == X
    assert events.label is not None and events.label.tolist() == LABEL
    assert events.ids.decode(events.src).to_list() == [1, 2, 1, 3, 2, 2]
    assert events.ids.decode(events.dst).to_list() == [4, 4, 5, 5, 5, 4]


def test_features_belong_to_the_edge_index_and_not_to_the_line(data: Path, publish: Publish) -> None:
    publish("wikipedia", COUNTS)
    folder = write_dgb(data / "wikipedia", "wikipedia")
    path = folder / "ml_wikipedia.csv"
    lines = [line.rpartition(",")[0] for line in path.read_text().splitlines()[1:]]
    rows = [f"{line},{6 - k}" for k, line in enumerate(lines)]
    path.write_text("\n".join([",u,i,ts,label,idx", *rows]) + "\n")
    events = load("wikipedia")
    assert events.x is not None and events.x.tolist() == X[::-1]


@pytest.mark.parametrize(("name", "listed", "variant"), [("uci", 0, None), ("enron", 2, "featureless")])
def test_features_of_zeros_do_not_count(
    data: Path, publish: Publish, name: str, listed: int, variant: str | None
) -> None:
    publish(name, Counts(6, 5, edge_features=(listed,)))
    folder = write_dgb(data / name, name)
    np.save(folder / f"ml_{name}.npy", np.zeros((7, 2)))
    events = load(name)
    assert events.x is None and events.label is None
    assert not events.bipartite
    assert events.info.variant == variant


def test_a_feature_file_that_does_not_fit_is_named(data: Path, publish: Publish) -> None:
    publish("enron", replace(COUNTS, positives=None))
    path = write_dgb(data / "enron", "enron") / "ml_enron.npy"
    np.save(path, np.ones((6, 2)))
    with pytest.raises(RowCountError, match="6 rows, but the edges count up to 6"):
        load("enron")
    np.save(path, np.full((7, 2), 1e300))
    with pytest.raises(UnreadableSourceError, match="not a finite float32"):
        load("enron")
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UnreadableSourceError, match="not a plain NumPy file"):
        load("enron")
    path.write_bytes(b"\x93NUMPY")
    with pytest.raises(UnreadableSourceError, match=r"ml_enron\.npy"):
        load("enron")
