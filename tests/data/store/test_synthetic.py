from pathlib import Path
from typing import Any

import pytest

import pres
from pres.errors import OptionError
from tests.data.store.same import assert_same


@pytest.mark.parametrize(
    ("options", "at_once"),
    [
        ({"num_events": 2}, 1),
        ({"num_events": 40, "num_users": 3}, 7),
        ({"num_events": 1_500}, 100),
        ({"num_events": 1_501, "features": 3, "seed": 5}, 64),
        ({"num_events": 3_000, "features": 1, "num_topics": 5, "num_items": 9}, 1_000),
        ({"num_events": 2_000, "features": 0, "labels": False}, 333),
        ({"num_events": 2_000}, 1 << 20),
    ],
)
def test_the_stream_made_in_parts_is_that_made_at_once(
    tmp_path: Path, options: dict[str, Any], at_once: int
) -> None:
    pres.write_store("synthetic", tmp_path / "s", at_once=at_once, **options)
    assert_same(pres.open_store(tmp_path / "s"), pres.load("synthetic", **options))


def test_options_of_the_stream_are_checked(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="no option 'num_event'"):
        pres.write_store("synthetic", tmp_path / "s", num_event=10)
    with pytest.raises(OptionError, match="num_topics=2"):
        pres.write_store("synthetic", tmp_path / "s", num_topics=2)
    assert not list(tmp_path.iterdir())
