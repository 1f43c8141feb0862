import os
from pathlib import Path

import pytest
import torch

from pres.data.datasets import formats
from pres.data.datasets.load import load
from pres.errors import Notice
from tests.data.datasets.toy import COUNTS, Publish, write_jodie


@pytest.fixture
def path(data: Path, publish: Publish) -> Path:
    publish("wikipedia", COUNTS)
    return write_jodie(data / "wikipedia.csv")


def test_the_second_load_reads_the_converted_copy_and_is_the_same(
    path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = load("wikipedia")
    monkeypatch.setattr(formats, "open_by_place", None)  # parsing the text again would fail
    again = load("wikipedia")
    for name in ("src", "dst", "t", "x", "label"):
        assert torch.equal(getattr(first, name), getattr(again, name)), name
    assert first.info == again.info
    for side in (first.src, first.dst):
        assert first.ids.decode(side).equals(again.ids.decode(side), check_dtypes=True)
    assert again.ids.decode(again.dst).to_list() == [0, 0, 1, 1, 1, 0]
    assert [folder.name for folder in cache.iterdir()] == ["converted"]
    assert load("wikipedia", features=False).info.variant == "featureless"


def test_a_changed_source_is_converted_anew_and_the_old_copy_removed(path: Path, cache: Path) -> None:
    load("wikipedia")
    (old,) = (cache / "converted").iterdir()
    path.write_text(path.read_text().replace("0.5,-1.0", "0.5,-7.0"))
    os.utime(path, ns=(1, 1))
    events = load("wikipedia")
    assert events.x is not None and events.x[0].tolist() == [0.5, -7.0]
    (new,) = (cache / "converted").iterdir()
    assert new.name != old.name


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "gone"])
def test_a_damaged_copy_is_made_anew(path: Path, cache: Path, damage: str) -> None:
    first = load("wikipedia")
    (copy,) = (cache / "converted").iterdir()
    whole = copy.read_bytes()
    for place in range(0, len(whole), 5):
        bad = bytearray(whole)
        bad[place] ^= 1 << place % 8
        copy.write_bytes({"flip": bytes(bad), "cut": whole[:place], "empty": b"", "gone": b""}[damage])
        if damage == "gone":
            copy.unlink()
        again = load("wikipedia")
        assert again.info == first.info and torch.equal(again.t, first.t)
        assert first.x is not None and again.x is not None and torch.equal(again.x, first.x)
        assert [kept.name for kept in (cache / "converted").iterdir()] == [copy.name]
        assert copy.read_bytes() == whole
        if damage in ("empty", "gone"):
            break


def test_a_cache_that_cannot_be_written_costs_one_notice_and_no_data(path: Path, cache: Path) -> None:
    cache.write_text("a file where the folder should be")
    with pytest.warns(Notice, match="no converted copy can be kept") as said:
        events = load("wikipedia")
    assert len(said) == 1
    assert len(events) == 6
