import zipfile
from pathlib import Path

import pytest

from pres.data.datasets.archive import members, unpacked
from pres.errors import UnreadableSourceError


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
