import datetime
from decimal import Decimal

import pandas as pd
import polars as pl
import pytest

import pres
from pres.errors import Notice, OptionError
from tests.data.tabular.test_read import COLUMNS, NAMED, refused


def test_datetimes_with_zones_and_decimals() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    stamps = [datetime.datetime(2024, 5, 17, 14, 0, k, tzinfo=zone) for k in range(3)]
    for source in (pd.DataFrame(COLUMNS | {"t": stamps}), pl.DataFrame(COLUMNS | {"t": stamps})):
        events = pres.read(source, **NAMED)
        assert events.t.tolist() == [1_715_947_200, 1_715_947_201, 1_715_947_202]
        assert events.info.time_unit == "s" and events.span_seconds == 2.0
    exact = pres.read(pl.DataFrame(COLUMNS | {"t": [Decimal(10**17 + k) for k in range(3)]}), **NAMED)
    assert exact.t.tolist() == [10**17, 10**17 + 1, 10**17 + 2]


@pytest.mark.parametrize(("unit", "per_second"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_times_since_1970_are_recognised_in_any_unit(unit: str, per_second: int) -> None:
    source = COLUMNS | {"t": [(1_700_000_000 + k) * per_second for k in range(3)]}
    with pytest.warns(Notice) as said:
        events = pres.read(source, **NAMED)
    assert [str(one.message) for one in said] == [
        f"the dict: guessed time_unit='{unit}': times in 't' look like {unit} since 1970."
    ]
    assert events.info.time_unit == unit and events.since_1970 and not events.info.dates
    assert events.time_text(events.t[0].item()) == "2023-11-14 22:13:20"
    given = pres.read(source, **NAMED, time_unit="h")
    assert given.info.time_unit == "h" and not given.since_1970 and given.time_text(5) == "5"


def test_dates_bring_their_own_unit() -> None:
    dated = COLUMNS | {"t": ["2024-01-01", "2024-01-02", "2024-01-03"]}
    assert refused(OptionError, dated, **NAMED, time_unit="h") == (
        "'t' holds dates, read in s; leave out time_unit='h'."
    )
    assert pres.read(dated, **NAMED, time_unit="s").info.time_unit == "s"
