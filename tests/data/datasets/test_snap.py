import gzip
from pathlib import Path

import pytest

from pres.data.datasets.load import load
from pres.data.datasets.registry import Counts
from pres.errors import UnreadableSourceError
from tests.data.datasets.toy import Publish

TEXT = "1 2 1082040961\n3 4 1082155839\n1 4 1082155839\n"


@pytest.mark.parametrize("packed", [False, True])
def test_ids_and_times_count_from_zero(data: Path, publish: Publish, packed: bool) -> None:
    publish("uci", Counts(3, 4))
    if packed:
        (data / "CollegeMsg.txt.gz").write_bytes(gzip.compress(TEXT.encode()))
    else:
        (data / "CollegeMsg.txt").write_text(TEXT)
    events = load("uci")
    assert (events.src.tolist(), events.dst.tolist()) == ([0, 2, 0], [1, 3, 3])
    assert events.t.tolist() == [0, 114878, 114878]
    assert events.x is None and events.label is None and events.info.variant is None


def test_another_shape_is_refused(data: Path) -> None:
    (data / "CollegeMsg.txt").write_text("1 2\n3 4\n")
    with pytest.raises(UnreadableSourceError, match="2 columns between blanks, expected 3"):
        load("uci")
