"""A place of the grid against those without PRES: at the smaller batch, and at its own."""

from __future__ import annotations

from pres.paper.experiments.declaration import arm_name
from pres.paper.experiments.groups import Group, Groups
from pres.paper.experiments.table import Spread


def baseline(group: Group, groups: Groups) -> Group | None:
    """Return the place without PRES at the smaller batch of the pair, otherwise the same."""
    return _without(group, groups, groups.size.pair[0])


def counterpart(group: Group, groups: Groups) -> Group | None:
    """Return the place without PRES at the same batch."""
    return _without(group, groups, group["batch_size"])


def seconds(group: Group, groups: Groups) -> float | None:
    """Return the seconds of an epoch: timed in turns with other arms, if any were; or of the run itself."""
    if not groups.timings:
        return group.mean("seconds")
    timed = groups.timings.get((group["dataset"], group["model"]), {})
    return timed.get(arm_name(group["way"], group["batch_size"]))


def speed_up(group: Group, groups: Groups) -> float | None:
    """Return how many times shorter an epoch is than the baseline's."""
    before, now = baseline(group, groups), seconds(group, groups)
    was = None if before is None else seconds(before, groups)
    return None if was is None or not now else was / now


def difference(
    group: Group,
    other: Group | None,
    measure: str = "ap",
    scale: float = 100.0,
    other_measure: str | None = None,
) -> Spread | None:
    """Return what a place has more than another, seed by seed; None where no seed was measured at both."""
    if other is None:
        return None
    was = dict(zip(other.values["seed_of"], other.values.get(other_measure or measure, []), strict=False))
    pairs = [
        (was.get(seed), value)
        for seed, value in zip(group.values["seed_of"], group.values.get(measure, []), strict=False)
    ]
    return Spread.of([scale * (now - then) for then, now in pairs if then is not None and now is not None])


def against_baseline(group: Group, groups: Groups, measure: str = "ap") -> Spread | None:
    """Return the points that a place has more than the smaller batch without PRES."""
    return difference(group, baseline(group, groups), measure)


def against_counterpart(
    group: Group, groups: Groups, measure: str = "ap", scale: float = 100.0
) -> Spread | None:
    """Return what a place has more than the same batch without PRES."""
    return difference(group, counterpart(group, groups), measure, scale)


def _without(group: Group, groups: Groups, batch_size: int) -> Group | None:
    same = {name: group[name] for name in ("dataset", "model", "lr", "epochs")}
    return groups.one(**same, way="off", batch_size=batch_size)
