"""`pres update`: a saved run takes in later events, each evaluated before it does."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

import polars as pl
import torch
from matplotlib.axes import Axes

from pres.data.incidence import distinct
from pres.data.stream import EventStream
from pres.data.tabular.rows import Table
from pres.data.tabular.values import read_ids
from pres.errors import ColumnError, nearest
from pres.evaluation.link import LinkScores, link_scores
from pres.evaluation.metrics import LinkMetrics
from pres.figure import FIRST, SECOND, save_panels
from pres.models import MDGNN
from pres.models.scratch import copy_of
from pres.sampling import NegativeSampler
from pres.serving.live import EVENTS, RESULT, STATE, UPDATES, updates_of, write_events
from pres.serving.online import Late, Observed, OnlineModel
from pres.storage import checksum, new_folder, sweep, taken, write_json
from pres.training.checkpoint import save_tensors
from pres.training.folder import RunFolder

NEGATIVES = 100  # of each event
PARTS = 20  # of the events, at most, whose metrics are told over time


@dataclass(frozen=True, eq=False)
class Update:
    """What became of later events, and how well the run told them before it took them in."""

    folder: Path | None  # of the update; None if all events were known
    seen: Observed
    metrics: LinkMetrics | None
    over_time: list[dict[str, Any]]  # of each part: its events, when it ends, its AP and MRR

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "update": None if self.folder is None else str(self.folder),
            "accepted": self.seen.accepted,
            "duplicates": self.seen.duplicates,
            "late": self.seen.late,
            "new_nodes": self.seen.new_nodes,
            "events": self.seen.position,
            "prequential": None if self.metrics is None else dataclasses.asdict(self.metrics),
            "over_time": self.over_time,
        }


def update(
    folder: str | Path,
    table: Table,
    *,
    event_id: str | None = None,
    late: Late = "refuse",
    device: str = "cpu",
    source: str | Path | None = None,
    on_batch: Callable[[int, int], None] | None = None,
) -> Update:
    """Let a saved run take in later events; weights stay as they are.

    Events are evaluated batch by batch, each batch before memory takes it in. Then the update appears in
    ``updates/`` of the run's folder in one step, or not at all: its events, the memory after them, and its
    metrics. `pres.OnlineModel.open` and ``pres predict`` go on from it.

    Args:
        folder: Where the run is.
        table: The events, in the columns that the run's events were read from.
        event_id: The column of the events' ids: one that was taken in before is left out.
        late: What happens to an event that is earlier than one before it, see `pres.OnlineModel`.
        device: Where to compute.
        source: Where the run's own events are now.
        on_batch: Called with the number of events evaluated so far, and of those to evaluate.
    """
    folder = Path(folder)
    RunFolder(folder).check_usable()
    with taken(folder / ".lock", folder):
        for place in updates_of(folder):  # one may have got its name just before a kill
            sweep(place)
        online = OnlineModel.open(folder, device, source, late)
        ids = _event_ids(table, event_id)
        online.state()  # memory as at the last cut
        before, first = copy_of(online.model), online.position
        seen = online.observe(table, event_ids=ids)
        if not seen.accepted:
            return Update(None, seen, None, [])
        before.grow(online.events)
        scores = _prequential(before, online.events, first, online.batch_size, on_batch)
        kept = [] if ids is None else [ids[row] for row in seen.rows.tolist()]
        places = updates_of(folder)
        place = folder / UPDATES / f"{int(places[-1].name) + 1 if places else 1:06d}"
        done = Update(place, seen, scores.metrics, _over_time(scores, online.events[first:]))
        with new_folder(place) as made:
            write_events(online.events[first:], kept, made / EVENTS)
            save_tensors(made / STATE, online.state(), {})
            write_json(made / RESULT, done.to_dict() | {"checksum": checksum(made / EVENTS)})
            _draw(done.over_time, online.events.info.title, made / "prequential.png")
        for old in places:  # the memory of the newest holds all that they had
            (old / STATE).unlink(missing_ok=True)
        return done


def _event_ids(table: Table, column: str | None) -> list[Hashable] | None:
    if column is None:
        return None
    if column not in table.frame.columns:
        meant = nearest(column, table.frame.columns)
        raise ColumnError(f"{table.where}: there is no column {column!r} of event ids.{meant}")
    # As text, so that 7 is 7 whatever kind of file it comes from.
    return list[Hashable](read_ids(table, column).cast(pl.String).to_list())


def _prequential(
    model: MDGNN,
    events: EventStream,
    first: int,
    batch_size: int,
    on_batch: Callable[[int, int], None] | None,
) -> LinkScores:
    """Return the scores of the events from ``first`` on, each by memory as at the last cut before it."""
    part = events[model.memory.position :]

    def show(batch: EventStream) -> None:
        if on_batch is not None:
            on_batch(batch.offset + len(batch) - part.offset, len(part))

    sampler = NegativeSampler(events)
    (scores,) = link_scores(model, part, [sampler], batch_size=batch_size, negatives=NEGATIVES, on_batch=show)
    chosen = scores.select(torch.arange(len(part)) >= first - part.offset)
    assert chosen is not None
    return chosen


def _over_time(scores: LinkScores, events: EventStream) -> list[dict[str, Any]]:
    """Return the metrics of equal parts of the events, of a hundred events or more each."""
    n = len(events)
    number = torch.arange(n) * max(1, min(PARTS, n // 100)) // n
    told, stop = [], 0
    for one in distinct(number).tolist():
        part = scores.select(number == one)
        assert part is not None
        found = part.metrics
        stop += found.events
        until = events.t[stop - 1].item()
        told.append({"events": found.events, "until": until, "ap": found.ap, "mrr": found.mrr})
    return told


def _draw(over_time: list[dict[str, Any]], title: str, path: Path) -> None:
    so_far = list(accumulate(part["events"] for part in over_time))

    def panel(name: str, label: str, colour: str, chance: float) -> Callable[[Axes], None]:
        def draw(axes: Axes) -> None:
            found = [part[name] for part in over_time]
            axes.plot(so_far, found, "o-", color=colour)
            axes.set(xlabel="later events so far", ylabel=label, ylim=(min(chance, *found), 1.02))
            axes.set_xlim(left=0)

        return draw

    named = f"{title}: later events, before they were taken in"
    mrr = panel("mrr", f"MRR among {NEGATIVES} negatives", SECOND, chance=0)
    save_panels(path, named, panel("ap", "AP", FIRST, chance=0.5), mrr)
