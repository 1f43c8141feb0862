"""A place of the grid against the one without PRES at the smaller batch."""

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


def lost(group: Group, groups: Groups) -> float | None:
    """Return the AP, in points, that a place has less than its baseline."""
    before = baseline(group, groups)
    was, now = None if before is None else before.mean("ap", 100), group.mean("ap", 100)
    return None if was is None or now is None else was - now
