import math
import zipfile
from pathlib import Path

import pytest

from pres.data.datasets.load import load
from pres.data.datasets.registry import Counts
from pres.errors import UnreadableSourceError
from tests.data.datasets.toy import COUNTS, DST, SRC, Publish, T, X, write_jodie

REVIEW = "ts,source,target,weight\n929232000,9,30122,5.0\n930787200,7,9,0\n931824000,9,30122,2.0\n"
# The second version of this file has the header of another one.
COIN = (
    "day,src,dst,callsign,typecode\n"
    "1648811421,0x27,0x84,800.0\n1648811421,0x84,0x01,4\n1648811500,0x27,0x01,0.5\n"
)
COMMENT = "ts,src,dst,subreddit,num_words,score\n100,5,6,2500,3\n160,6,5,10,-2\n"
FLIGHT = (
    "timestamp,src,dst,callsign,typecode\n1546300800,KJFK,EGLL,BA178,b77W\n1546387200,EGLL,KJFK,,ABCDEFGHI\n"
)


def test_ratings_become_logarithms_and_nodes_count_by_first_appearance(data: Path, publish: Publish) -> None:
    publish("tgbl-review", Counts(3, 3, edge_features=(1,)))
    (data / "tgbl-review_edgelist_v2.csv").write_text(REVIEW)
    events = load("tgbl-review")
    assert events.src.tolist() == [0, 2, 0]  # 9, 30122, 7 appear in this order
    assert events.dst.tolist() == [1, 0, 1]
    assert events.t.tolist() == [929232000, 930787200, 931824000]
    assert events.x is not None
    assert events.x[:, 0].tolist() == pytest.approx([math.log2(5), 0.0, 1.0])
    assert not events.bipartite


def test_the_zip_is_read_by_place_and_its_pickles_are_left_alone(data: Path, publish: Publish) -> None:
    publish("tgbl-coin", Counts(3, 3, edge_features=(1,)))
    with zipfile.ZipFile(data / "tgbl-coin-v2.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("__MACOSX/tgbl-coin_edgelist_v2.csv", "junk")
        archive.writestr("tgbl-coin-v2/tgbl-coin_edgelist_v2.csv", COIN)
        archive.writestr("tgbl-coin-v2/tgbl-coin_val_ns_v2.pkl", b"never opened")
        archive.writestr("../escaped.csv", "never unpacked")
    events = load("tgbl-coin")
    assert (events.src.tolist(), events.dst.tolist()) == ([0, 1, 0], [1, 2, 2])
    assert events.x is not None
    assert events.x[:, 0].tolist() == pytest.approx([math.log2(800), 2.0, -1.0])
    assert sorted(path.name for path in data.iterdir()) == ["tgbl-coin-v2.zip"]


def test_a_header_longer_than_the_rows_shifts_nothing(data: Path, publish: Publish) -> None:
    publish("tgbl-comment", Counts(2, 2, edge_features=(2,)))
    (data / "tgbl_comment").mkdir()
    (data / "tgbl_comment" / "tgbl-comment_edgelist.csv").write_text(COMMENT)
    events = load("tgbl-comment")
    assert events.x is not None
    assert events.x.flatten().tolist() == pytest.approx([0.5, 3.0, 0.002, -2.0])


def test_call_signs_become_characters(data: Path, publish: Publish) -> None:
    publish("tgbl-flight", Counts(2, 2, edge_features=(16,), node_features=20))
    (data / "tgbl-flight_edgelist_v2.csv").write_text(FLIGHT)
    events = load("tgbl-flight")
    assert events.x is not None
    raw_message = {char: 30 + k for k, char in enumerate("ABCDEFGHIJKLMNOPQRSTUVWXYZ")}
    call_sign = [raw_message["B"], raw_message["A"], 1, 7, 8, -1, -1, -1]
    aircraft = [raw_message["B"], 7, 7, raw_message["W"], -1, -1, -1, -1]
    assert events.x[0].tolist() == call_sign + aircraft
    assert events.x[1].tolist() == [-1] * 16  # no call sign; a type too long to be one
    assert events.info.title == "tgbl-flight (no node features)"


def test_dates_are_times_too(data: Path, publish: Publish) -> None:
    publish("tgbl-flight", Counts(2, 2, edge_features=(16,), node_features=20))
    dated = FLIGHT.replace("1546300800", "2019-01-01").replace("1546387200", "2019-01-02")
    (data / "tgbl-flight_edgelist_v2.csv").write_text(dated)
    assert load("tgbl-flight").t.tolist() == [1546300800, 1546387200]


def test_wiki_keeps_the_layout_of_its_origin(data: Path, publish: Publish) -> None:
    publish("tgbl-wiki", COUNTS)
    write_jodie(data / "tgbl-wiki" / "tgbl-wiki_edgelist_v2.csv")
    events = load("tgbl-wiki")
    assert (events.src.tolist(), events.dst.tolist(), events.t.tolist()) == (SRC, DST, T)
    assert events.x is not None and events.x.tolist() == X


def test_a_damaged_zip_is_named(data: Path, publish: Publish) -> None:
    publish("tgbl-review", Counts(3, 3, edge_features=(1,)))
    path = data / "tgbl-review-v2.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tgbl-review_edgelist_v2.csv", REVIEW)
    content = bytearray(path.read_bytes())
    content[content.index(b"929232000")] = ord("8")
    path.write_bytes(bytes(content))
    with pytest.raises(UnreadableSourceError, match=r"tgbl-review-v2\.zip is cut short or corrupt"):
        load("tgbl-review")
