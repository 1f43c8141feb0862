from dataclasses import replace
from pathlib import Path

import pytest

from pres.data.datasets.load import load
from pres.errors import EmptySourceError, UnreadableSourceError, ValueInRowError
from tests.data.datasets.toy import COUNTS, DST, LABEL, SRC, Publish, T, X, write_jodie


def test_the_ragged_header_is_skipped_and_every_column_kept(data: Path, publish: Publish) -> None:
    publish("reddit", COUNTS)
    write_jodie(data / "reddit.csv")
    events = load("reddit")
    assert events.src.tolist() == SRC
    assert events.dst.tolist() == DST
    assert events.t.tolist() == T
    assert events.x is not None and events.x.tolist() == X
    assert events.label is not None and events.label.tolist() == LABEL
    assert (events.num_src, events.num_nodes) == (3, 5)
    assert events.ids.decode(events.dst).to_list() == [0, 0, 1, 1, 1, 0]  # items count from 0, as in the file
    assert events.ids.encode_dst([1, 0]).tolist() == [4, 3]
    assert events.info.title == "reddit" and events.info.time_unit == "s"


def test_columns_that_are_zero_throughout_are_no_features(data: Path, publish: Publish) -> None:
    publish("lastfm", replace(COUNTS, positives=None, edge_features=(0, 2)))
    rows = "\n".join(f"{u},{i},{t},0,0.0,0.0" for u, i, t in zip(SRC, [0, 0, 1, 1, 1, 0], T, strict=True))
    (data / "lastfm.csv").write_text(f"user_id,item_id,timestamp,state_label,features\n{rows}\n")
    events = load("lastfm")
    assert events.x is None
    assert events.label is None
    assert events.info.variant is None


@pytest.mark.parametrize(
    ("line", "error", "said"),
    [
        ("2,1,4.0,1,0.125,4.0,9", UnreadableSourceError, "line 5: 7 fields where the others have 6"),
        ("2,1,4.0,1,0.125", ValueInRowError, "row 4, column 'f1' is empty"),
        ("2,1,four,1,0.125,4.0", ValueInRowError, "row 4, column 'time' is 'four'"),
        ("two,1,4.0,1,0.125,4.0", ValueInRowError, "row 4, column 'user' is 'two'"),
        ("2,-1,4.0,1,0.125,4.0", ValueInRowError, "row 4, column 'item' is -1"),
        ("2,1,4.0,0.5,0.125,4.0", ValueInRowError, "row 4, column 'label' is 0.5"),
        ("2,1,4.0,1,nan,4.0", ValueInRowError, "row 4, column 'f0' is nan"),
        ("2,1,4.0,1,big,4.0", ValueInRowError, "row 4, column 'f0' is 'big'"),
    ],
)
def test_a_damaged_line_is_named(
    data: Path, publish: Publish, line: str, error: type[Exception], said: str
) -> None:
    publish("wikipedia", COUNTS)
    path = write_jodie(data / "wikipedia.csv")
    lines = path.read_text().splitlines()
    lines[4] = line
    path.write_text("\n".join(lines))
    with pytest.raises(error, match=said):
        load("wikipedia")


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("", EmptySourceError, "is empty"),
        ("user_id,item_id\n", EmptySourceError, "no rows"),
        ("user_id,item_id\n1,2\n", UnreadableSourceError, "2 fields where at least 4"),
    ],
)
def test_a_file_that_is_no_jodie_file_is_refused(
    data: Path, text: str, error: type[Exception], said: str
) -> None:
    (data / "wikipedia.csv").write_text(text)
    with pytest.raises(error, match=said):
        load("wikipedia")


def test_bytes_that_are_no_text_are_refused(data: Path) -> None:
    (data / "wikipedia.csv").write_bytes(b"header\n" + bytes(range(256)) * 40)
    with pytest.raises((UnreadableSourceError, ValueInRowError, EmptySourceError)):
        load("wikipedia")
