"""A place of the grid against the one without PRES, at the smaller batch or at its own."""

from __future__ import annotations

from pres.experiments.groups import Group, Groups


def baseline(group: Group, groups: Groups) -> Group | None:
    """Return the place without PRES at the smaller batch of the pair, otherwise the same."""
    same = {name: group[name] for name in ("dataset", "model", "reading")}
    return groups.one(**same, way="off", batch_size=groups.size.pair[0])


def speed_up(group: Group, groups: Groups) -> float | None:
    """Return how many times shorter an epoch is than the baseline's."""
    before, now = baseline(group, groups), group.mean("seconds")
    seconds = None if before is None else before.mean("seconds")
    return None if seconds is None or not now else seconds / now


def lost(group: Group, groups: Groups, measure: str = "ap") -> float | None:
    """Return the points of AP, or of another share, that a place has less than its baseline."""
    return _less(group, baseline(group, groups), measure, -100)


def added(group: Group, groups: Groups, measure: str, scale: float = 1.0) -> float | None:
    """Return what a place has more than the one without PRES that is otherwise the same."""
    same = {name: group[name] for name in ("dataset", "model", "batch_size", "reading")}
    return _less(group, groups.one(**same, way="off"), measure, scale)


def _less(group: Group, other: Group | None, measure: str, scale: float) -> float | None:
    was, now = None if other is None else other.mean(measure), group.mean(measure)
    return None if was is None or now is None else scale * (now - was)
