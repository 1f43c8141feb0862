import zipfile
from pathlib import Path

import pytest

from pres.data import catalogue
from pres.data.datasets.load import load
from pres.data.datasets.locate import cache_folder, locate, members, unpacked
from pres.data.datasets.registry import DATASETS
from pres.errors import SourceNotFoundError, UnreadableSourceError
from tests.data.datasets.toy import write_dgb, write_jodie, write_tgl

WIKIPEDIA = DATASETS["wikipedia"]


def test_the_data_folder_comes_before_the_cache(data: Path, cache: Path) -> None:
    in_cache = write_jodie(cache / "wikipedia" / "wikipedia.csv")
    found = locate(WIKIPEDIA)
    assert found is not None and found.where == in_cache
    in_data = write_jodie(data / "wikipedia.csv")
    found = locate(WIKIPEDIA)
    assert found is not None and found.where == in_data


def test_parquet_comes_before_the_slower_layouts(data: Path) -> None:
    write_dgb(data / "wikipedia", "wikipedia")
    for expected, write in (
        ("dgb", lambda: None),
        ("tgl", lambda: write_tgl(data / "WIKI")),
        ("jodie", lambda: write_jodie(data / "wikipedia" / "raw" / "wikipedia.csv")),
        ("parquet", lambda: (data / "wikipedia.parquet").touch()),
    ):
        write()
        found = locate(WIKIPEDIA)
        assert found is not None and found.format == expected


def test_without_settings_the_users_cache_is_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PRES_CACHE", raising=False)
    monkeypatch.delenv("PRES_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert "pres" in cache_folder().parts
    assert locate(WIKIPEDIA) is None


def test_a_data_folder_that_is_not_there_is_named(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRES_DATA", str(data / "typo"))
    with pytest.raises(SourceNotFoundError, match=r"PRES_DATA names .*typo, which is not a folder"):
        load("wikipedia")


def test_a_damaged_zip_is_named_unless_a_good_copy_is_beside_it(data: Path) -> None:
    (data / "wikipedia.zip").write_text("no zip")
    with pytest.raises(UnreadableSourceError, match=r"wikipedia\.zip is cut short or no zip file"):
        locate(WIKIPEDIA)
    entries = {entry.name: entry for entry in catalogue()}
    assert entries["wikipedia"].status == "unreadable" and "wikipedia.zip" in entries["wikipedia"].where
    path = write_jodie(data / "wikipedia.csv")
    found = locate(WIKIPEDIA)
    assert found is not None and found.where == path


def test_a_name_that_climbs_out_stays_in_the_folder(tmp_path: Path) -> None:
    path = tmp_path / "set.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("../../edges.csv", "inside")
    names = members(path)
    assert names == {"edges.csv": "../../edges.csv"}
    with unpacked(path, names.values()) as folder:
        assert [file.name for file in folder.iterdir()] == ["edges.csv"]
        assert (folder / "edges.csv").read_text() == "inside"
    assert not folder.exists()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["set.zip"]


@pytest.mark.parametrize("junk_first", [False, True])
def test_what_a_mac_adds_is_no_member(tmp_path: Path, junk_first: bool) -> None:
    path = tmp_path / "set.zip"
    names = ["set/edges.csv", "__MACOSX/set/edges.csv"]
    with zipfile.ZipFile(path, "w") as archive:
        for name in reversed(names) if junk_first else names:
            archive.writestr(name, name)
    assert members(path) == {"edges.csv": "set/edges.csv"}


def test_a_method_python_lacks_points_to_unzip(tmp_path: Path) -> None:
    path = tmp_path / "reddit.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("edges.csv", "text")
    content = bytearray(path.read_bytes())
    for magic, place in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        content[content.index(magic) + place] = 9  # Deflate64
    path.write_bytes(bytes(content))
    with pytest.raises(UnreadableSourceError, match="unzip command"), unpacked(path, ["edges.csv"]):
        pass
