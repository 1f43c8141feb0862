from pathlib import Path

import pytest

from pres.data.datasets.load import load
from pres.data.datasets.registry import Counts
from pres.errors import UnreadableSourceError, ValueInRowError
from tests.data.datasets.toy import Publish

ICEWS = Counts(events=5, nodes=4, relations=3)
PARTS = {
    "train": "0    \t2    \t1\t0\t0\n3  \t0 \t0\t0\t0\n1\t0\t2 \t24\t0\n",
    "valid": "2    \t1    \t3\t48\t0\n",
    "test": "2\t2\t2 \t72\t0\n",
}


@pytest.fixture
def folder(data: Path, publish: Publish) -> Path:
    publish("icews18", ICEWS)
    folder = data / "ICEWS18"
    folder.mkdir()
    for part, text in PARTS.items():
        (folder / f"{part}.txt").write_text(text)
    return folder


def test_three_padded_parts_become_one_stream(folder: Path) -> None:
    events = load("icews18")
    assert events.src.tolist() == [0, 3, 1, 2, 2]
    assert events.dst.tolist() == [1, 0, 2, 3, 2]
    assert events.t.tolist() == [0, 0, 24, 48, 72]
    assert events.categories is not None and events.categories.tolist() == [[2], [0], [0], [1], [2]]
    assert events.info.category_names == ("relation",)
    assert events.info.category_levels == ((0, 1, 2),)
    assert events.info.time_unit == "h" and events.info.variant is None


def test_a_part_that_is_no_table_of_events_is_named(folder: Path) -> None:
    (folder / "valid.txt").write_text("2 1 3 48 0\n")
    with pytest.raises(UnreadableSourceError, match=r"valid.txt: 1 columns between tabs"):
        load("icews18")
    (folder / "valid.txt").write_text("2\tmeets\t3\t48\t0\n")
    with pytest.raises(ValueInRowError, match="column 'relation' is 'meets'"):
        load("icews18")
