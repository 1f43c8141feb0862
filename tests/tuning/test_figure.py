from pathlib import Path

import pytest
import torch
from matplotlib import image

from pres.data.info import StreamInfo
from pres.data.stream import EventStream
from pres.errors import OptionError, StorageError
from pres.tuning import diagnose
from tests.streams import as_stream


@pytest.mark.parametrize("unit", [None, "s", "d"])
def test_the_picture_is_a_whole_png(tmp_path: Path, unit: str | None) -> None:
    n = torch.arange(300)
    stream = EventStream(n % 5, n % 3, n * n, info=StreamInfo(time_unit=unit))
    path = diagnose(stream).save_png(tmp_path / "new folder" / "picture.png")
    pixels = image.imread(path)
    assert pixels.shape[0] > 500 and pixels.shape[1] > 1000
    assert pixels[..., :3].std() > 0.05  # something is drawn
    assert [p.name for p in path.parent.iterdir()] == ["picture.png"]


def test_streams_whose_gaps_are_all_equal_or_all_ties_can_be_drawn(tmp_path: Path) -> None:
    even = as_stream([(0, 1, float(i)) for i in range(60)])
    tied = as_stream([(i, i + 60, float(i >= 30)) for i in range(60)])
    for i, stream in enumerate((even, tied)):
        assert diagnose(stream).save_png(tmp_path / f"{i}.png").stat().st_size > 10_000


def test_only_a_png_is_ever_written(tmp_path: Path) -> None:
    (tmp_path / "clicks.csv").write_text("mine")
    diagnosis = diagnose(as_stream([(0, 1, float(i)) for i in range(60)]))
    with pytest.raises(OptionError, match=r"clicks\.csv: a picture is written as \.png"):
        diagnosis.save_png(tmp_path / "clicks.csv")
    assert (tmp_path / "clicks.csv").read_text() == "mine"


def test_a_target_that_cannot_be_written_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    diagnosis = diagnose(as_stream([(0, 1, float(i)) for i in range(60)]))
    with pytest.raises(StorageError, match=r"cannot write .*picture\.png: (not a directory|file exists)"):
        diagnosis.save_png(tmp_path / "file" / "picture.png")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
