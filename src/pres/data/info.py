"""What is known of a stream beside its columns: its name, where it came from, what its times mean."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any

SECONDS_PER_UNIT = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "h": 3600.0, "d": 86400.0}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_SINCE_1990, _UNTIL_2100 = 631_152_000, 4_102_444_800  # in seconds since 1970


@dataclass(frozen=True)
class Origin:
    """Where a stream came from: enough to get it again."""

    source: str | None  # an absolute path, or a dataset's name; None for what was in memory
    options: dict[str, Any]  # those of pres.read or pres.load that were given


@dataclass(frozen=True)
class StreamInfo:
    """What a stream is called and what its columns mean."""

    name: str = "events"
    variant: str | None = None  # how this copy differs from the published dataset, e.g. "featureless"
    time_unit: str | None = None  # one of ns, us, ms, s, h, d; None if unknown
    dates: bool = False  # whether the times were read from dates, and count from 1970
    feature_names: tuple[str, ...] = ()
    category_names: tuple[str, ...] = ()
    category_levels: tuple[tuple[Any, ...], ...] = ()  # the user's value of each category index
    origin: Origin | None = None  # None for events that were not read

    @property
    def title(self) -> str:
        """The name with its variant: what every result carries."""
        return self.name if self.variant is None else f"{self.name} ({self.variant})"


def epoch_unit(first: float, last: float) -> str | None:
    """Return the unit in which both times, counted from 1970, lie between 1990 and 2100, if there is one."""
    for unit, per_second in _PER_SECOND.items():
        if _SINCE_1990 * per_second <= first <= last < _UNTIL_2100 * per_second:
            return unit
    return None


def date_text(t: float, unit: str) -> str:
    """Return a time that counts ``unit`` from 1970 as a date in UTC, or as a number beyond the calendar."""
    try:
        moment = datetime.datetime.fromtimestamp(0, datetime.UTC) + datetime.timedelta(
            seconds=t / _PER_SECOND[unit]
        )
    except OverflowError:
        return f"{t:,}"
    return f"{moment:%Y-%m-%d %H:%M:%S}" + (f".{moment:%f}".rstrip("0") if moment.microsecond else "")


def human_duration(seconds: float) -> str:
    """Return a duration in the largest unit that fits, e.g. ``31.0 days``."""
    for size, unit in ((86400 * 365.25, "years"), (86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.3g} seconds"
