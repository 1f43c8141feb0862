from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from pres.data.datasets.load import load
from pres.data.datasets.registry import Counts
from pres.errors import ColumnError, RowCountError, UnreadableSourceError
from tests.data.datasets.toy import COUNTS, DST, LABEL, SRC, Publish, T, X


def write(data: Path, name: str = "wikipedia") -> Path:
    path = data / f"{name}.parquet"
    pl.DataFrame(
        {"src": SRC, "dst": DST, "t": T, "label": LABEL},
        schema={"src": pl.Int32, "dst": pl.Int32, "t": pl.Float64, "label": pl.Int8},
    ).write_parquet(path)
    return path


def write_features(data: Path, rows: int = 6) -> None:
    frame = pl.DataFrame(X[:rows], schema={"f0": pl.Float32, "f1": pl.Float32}, orient="row")
    frame.write_parquet(data / "wikipedia_features.parquet")


def test_events_and_features_side_by_side(data: Path, publish: Publish) -> None:
    publish("wikipedia", COUNTS)
    write(data)
    write_features(data)
    events = load("wikipedia")
    assert (events.src.tolist(), events.dst.tolist(), events.t.tolist()) == (SRC, DST, T)
    assert events.x is not None and events.x.tolist() == X
    assert events.label is not None and events.label.tolist() == LABEL
    assert events.info.feature_names == ("f0", "f1")
    assert events.info.variant is None


def test_ids_are_those_of_the_file(data: Path, publish: Publish) -> None:
    publish("uci", Counts(3, 4))
    frame = pl.DataFrame({"src": [70, 5, 70], "dst": [5, 900, 31], "t": [0.0, 1.0, 2.0]})
    frame.write_parquet(data / "uci.parquet")
    events = load("uci")
    assert events.src.tolist() == [2, 0, 2]
    assert events.ids.decode(events.src).to_list() == [70, 5, 70]
    assert events.ids.decode(events.dst).to_list() == [5, 900, 31]


def test_absent_features_are_a_named_variant(data: Path, publish: Publish) -> None:
    publish("wikipedia", COUNTS)
    write(data)
    events = load("wikipedia")
    assert events.info.variant == "featureless"
    assert "wikipedia (featureless)" in repr(events)


def test_relations_are_categories_and_their_absence_a_variant(data: Path, publish: Publish) -> None:
    publish("icews18", Counts(6, 5, relations=2))
    write(data, "icews18")
    assert load("icews18").info.title == "icews18 (no relations)"
    relations = pl.Series("rel", [0, 7, 7, 0, 7, 0], dtype=pl.Int16)
    relations.to_frame().write_parquet(data / "icews18_relations.parquet")
    events = load("icews18")
    assert events.categories is not None and events.categories.flatten().tolist() == [0, 1, 1, 0, 1, 0]
    assert events.info.category_levels == ((0, 7),)
    assert events.label is None


def test_files_that_do_not_fit_are_named(data: Path, publish: Publish) -> None:
    publish("wikipedia", COUNTS)
    path = write(data)
    write_features(data, rows=5)
    with pytest.raises(RowCountError, match="x has 5 rows for 6 events"):
        load("wikipedia")
    (data / "wikipedia_features.parquet").write_bytes(b"PAR1 but no more")
    with pytest.raises(UnreadableSourceError, match=r"wikipedia_features.parquet"):
        load("wikipedia")
    pl.read_parquet(path).rename({"t": "when"}).write_parquet(path)
    with pytest.raises(ColumnError, match="no column 't'"):
        load("wikipedia")


def test_a_stream_without_label_column_is_a_variant(data: Path, publish: Publish) -> None:
    publish("wikipedia", replace(COUNTS, edge_features=(0,)))
    path = write(data)
    pl.read_parquet(path).drop("label").write_parquet(path)
    assert load("wikipedia").info.variant == "no labels"
