from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from pres.datasets import load
from pres.datasets.registry import Counts
from pres.errors import RowCountError, UnreadableSourceError
from tests.datasets.toy import COUNTS, DST, LABEL, SRC, Publish, T, X, write_dgb


def test_ids_from_one_and_the_empty_first_row(data: Path, publish: Publish) -> None:
    publish("wikipedia", COUNTS)
    write_dgb(data / "wikipedia", "wikipedia")
    events = load("wikipedia")
    assert (events.src.tolist(), events.dst.tolist(), events.t.tolist()) == (SRC, DST, T)
    assert events.x is not None and events.x.tolist() == X
    assert events.label is not None and events.label.tolist() == LABEL


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
    np.save(path, np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(UnreadableSourceError, match="not a plain NumPy file"):
        load("enron")
    path.write_bytes(b"\x93NUMPY")
    with pytest.raises(UnreadableSourceError, match=r"ml_enron\.npy"):
        load("enron")
