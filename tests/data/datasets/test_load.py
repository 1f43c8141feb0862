import os
from dataclasses import replace
from pathlib import Path

import pytest

from pres.data.datasets.load import load
from pres.data.datasets.registry import DATASETS
from pres.errors import (
    DatasetCountError,
    DatasetUnavailableError,
    Notice,
    OptionError,
    SourceNotFoundError,
    StorageError,
)
from tests.data.datasets.toy import COUNTS, EVENTS, LABEL, SRC, Publish, write_jodie

REAL = os.environ.get("PRES_DATA")
needs_real_data = pytest.mark.skipif(
    not REAL or not (Path(REAL) / "wikipedia.parquet").exists(), reason="PRES_DATA holds no real datasets"
)


@needs_real_data
@pytest.mark.parametrize(
    ("name", "title", "events", "nodes", "num_src", "features", "positives"),
    [
        ("wikipedia", "wikipedia (featureless)", 157_474, 9_227, 8_227, 0, 217),
        ("mooc", "mooc", 411_749, 7_144, 7_047, 4, 4_066),
        ("uci", "uci", 59_835, 1_899, None, 0, None),
        ("enron", "enron (featureless)", 125_235, 184, None, 0, None),
        ("icews18", "icews18", 468_558, 23_033, None, 0, None),
    ],
)
def test_real_datasets_have_their_published_counts(
    name: str, title: str, events: int, nodes: int, num_src: int | None, features: int, positives: int | None
) -> None:
    assert REAL is not None
    stream = load(name, folder=REAL)
    summary = stream.summary()
    assert stream.info.title == title
    assert (summary.events, summary.nodes, stream.num_src) == (events, nodes, num_src)
    assert (summary.edge_features, summary.positives) == (features, positives)
    assert stream.num_categories == ((256,) if name == "icews18" else ())


@needs_real_data
def test_the_real_positives_are_the_last_events_of_their_users() -> None:
    assert REAL is not None
    stream = load("wikipedia", folder=REAL)
    assert stream.label is not None
    last = {int(user): place for place, user in enumerate(stream.src)}
    positives = stream.label.nonzero().flatten().tolist()
    assert all(last[int(stream.src[place])] == place for place in positives)


def test_wrong_counts_show_what_is_published_and_what_was_found(data: Path, publish: Publish) -> None:
    publish("wikipedia", replace(COUNTS, events=7, positives=1, edge_features=(172,)))
    write_jodie(data / "wikipedia.csv")
    with pytest.raises(DatasetCountError) as caught:
        load("wikipedia")
    said = str(caught.value)
    assert "events: 7 published, 6 found" in said
    assert "positives: 1 published, 2 found" in said
    assert "edge features: 172 published, 2 found" in said
    assert "nodes" not in said  # those fit


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"src": 2, "dst": 3}, "source nodes: 2 published, 3 found; destination nodes: 3 published, 2 found"),
        ({"nodes": 6}, "nodes: 6 published, 5 found"),
        ({"edge_features": (4, 5)}, "edge features: 4 or 5 published, 2 found"),
    ],
)
def test_every_published_count_is_checked(
    data: Path, publish: Publish, wrong: dict[str, int], said: str
) -> None:
    publish("wikipedia", replace(COUNTS, **wrong))  # type: ignore[arg-type]
    write_jodie(data / "wikipedia.csv")
    with pytest.raises(DatasetCountError, match=said):
        load("wikipedia")


def test_a_wrong_copy_is_not_converted(data: Path, cache: Path) -> None:
    write_jodie(data / "wikipedia.csv")
    with pytest.raises(DatasetCountError, match="157,474 published, 6 found"):
        load("wikipedia")
    assert not cache.exists()


def test_events_out_of_order_are_sorted_and_that_is_said(data: Path, publish: Publish) -> None:
    publish("wikipedia", COUNTS)
    path = write_jodie(data / "wikipedia.csv")
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([header, *rows[3:], *rows[:3]]))
    with pytest.warns(Notice, match="times go back 1 times") as said:
        events = load("wikipedia")
    assert said[0].filename == __file__  # it is the caller who should hear it
    assert events.src.tolist() == SRC
    assert events.label is not None and events.label.tolist() == LABEL


def test_sorting_keeps_the_order_of_ties(data: Path, publish: Publish) -> None:
    publish("wikipedia", replace(COUNTS, events=1000, src=1000, dst=1, nodes=1001, positives=0))
    rows = [f"{k},0,{k * 7 % 3},0,1,2" for k in range(1000)]  # the user is the number of the row
    (data / "wikipedia.csv").write_text("\n".join(["header", *rows]) + "\n")
    with pytest.warns(Notice, match="ties keep their order"):
        events = load("wikipedia")
    assert events.src.tolist() == [k for t in range(3) for k in range(1000) if k * 7 % 3 == t]


def test_every_label_but_zero_is_a_positive(data: Path, publish: Publish) -> None:
    publish("wikipedia", COUNTS)
    lines = [f"{u},{i},{t},{2 * label},{a},{b}" for u, i, t, label, a, b in EVENTS]
    (data / "wikipedia.csv").write_text("\n".join(["header", *lines]) + "\n")
    events = load("wikipedia")
    assert events.label is not None and events.label.tolist() == [2 * label for label in LABEL]
    publish("wikipedia", replace(COUNTS, positives=0))
    with pytest.raises(DatasetCountError, match="positives: 0 published, 2 found"):
        load("wikipedia")


def test_wrong_features_are_seen_even_if_they_are_left_out(data: Path, cache: Path, publish: Publish) -> None:
    publish("wikipedia", replace(COUNTS, edge_features=(3,)))
    write_jodie(data / "wikipedia.csv")
    with pytest.raises(DatasetCountError, match="edge features: 3 published, 2 found"):
        load("wikipedia", features=False)
    assert not cache.exists()  # it would have been converted with them


def test_a_folder_of_ones_own_is_looked_in_alone(data: Path, tmp_path: Path, publish: Publish) -> None:
    publish("wikipedia", COUNTS)
    write_jodie(tmp_path / "mine" / "wikipedia.csv")
    assert len(load("wikipedia", folder=tmp_path / "mine")) == 6
    with pytest.raises(DatasetUnavailableError, match="holds no copy of 'wikipedia'"):
        load("wikipedia", folder=data)
    with pytest.raises(SourceNotFoundError, match="not a folder"):
        load("wikipedia", folder=tmp_path / "nowhere")


def test_what_is_absent_says_where_it_was_looked_for_and_where_to_get_it(data: Path, cache: Path) -> None:
    with pytest.raises(DatasetUnavailableError) as caught:
        load("reddit", download=False)
    for part in (str(data), str(cache), "https://snap.stanford.edu/jodie/reddit.csv", "PRES_DATA"):
        assert part in str(caught.value)


def test_a_cache_that_cannot_be_written_stops_the_download(data: Path, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.raises(StorageError, match="PRES_CACHE"):
        load("reddit")


def test_options_are_checked(data: Path) -> None:
    with pytest.raises(OptionError, match=r"no option 'feature'\. Did you mean 'features'\?"):
        load("wikipedia", feature=False)
    with pytest.raises(OptionError, match="part="):
        load("wikipedia", part="half")


def test_the_edge_features_of_the_whole_gdelt_are_refused_where_they_cannot_fit(
    data: Path, publish: Publish, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish("reddit", COUNTS, parts={"1% sample": COUNTS})
    write_jodie(data / "reddit.csv")
    monkeypatch.setattr(os, "sysconf", lambda name: 4)  # a machine of 16 bytes
    with pytest.raises(OptionError, match=r"features=False or part='1% sample'"):
        load("reddit")
    assert load("reddit", features=False).x is None
    assert DATASETS["gdelt"].parts.keys() == {"1% sample"}
