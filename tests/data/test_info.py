import math

import pytest

from pres.data.info import date_text, epoch_unit, human_duration


@pytest.mark.parametrize(
    ("t", "unit", "said"),
    [
        (0, "s", "1970-01-01 00:00:00"),
        (1_700_000_000, "s", "2023-11-14 22:13:20"),
        (1_700_000_000_250, "ms", "2023-11-14 22:13:20.25"),
        (1_700_000_000_000_001, "us", "2023-11-14 22:13:20.000001"),
        (1_700_000_000 * 10**9, "ns", "2023-11-14 22:13:20"),
        (-86_400, "s", "1969-12-31 00:00:00"),
        (2**60, "s", f"{2**60:,}"),  # no calendar reaches there
    ],
)
def test_times_since_1970_are_said_as_dates(t: float, unit: str, said: str) -> None:
    assert date_text(t, unit) == said


@pytest.mark.parametrize(
    ("first", "last", "unit"),
    [
        (631_152_000, 4_102_444_799, "s"),
        (631_151_999, 1_700_000_000, None),  # 1989
        (1_700_000_000, 4_102_444_800, None),  # 2100
        (1_700_000_000, 1_700_000_000_000, None),  # one of each unit
        (1.7e9 + 0.5, 1.8e9, "s"),
        (1.7e18, 1.8e18, "ns"),
        (-1, 10, None),
        (0, math.inf, None),
    ],
)
def test_only_times_that_lie_in_our_days_have_a_unit(first: float, last: float, unit: str | None) -> None:
    assert epoch_unit(first, last) == unit


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0.5, "0.5 seconds"), (119, "119 seconds"), (120, "2.0 minutes"), (7200, "2.0 hours"),
     (86400 * 31, "31.0 days"), (86400 * 365.25 * 3, "3.0 years")],
)  # fmt: skip
def test_durations_are_said_in_the_largest_unit_that_fits(seconds: float, said: str) -> None:
    assert human_duration(seconds) == said
