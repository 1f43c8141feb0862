"""A run and the updates in its folder: the events that came later, and the memory that took them in."""

from __future__ import annotations

import re
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl
import torch

from pres.data.growing import GrowingStream
from pres.data.stream import EventStream
from pres.data.tabular.more import MoreEvents
from pres.errors import SourceNotFoundError, UnreadableSourceError, notify, one_line
from pres.models import MDGNN
from pres.storage import checksum, read_json
from pres.training.checkpoint import Tensors, load_into, load_tensors
from pres.training.opened import open_run

UPDATES, EVENTS, STATE, RESULT = "updates", "events.parquet", "state.safetensors", "update.json"


@dataclass(frozen=True, eq=False)
class LiveRun:
    """A run's settings, its stream with all later events, and its model as it was at the last cut."""

    config: dict[str, Any]  # the fields of FitConfig
    events: EventStream
    model: MDGNN
    event_ids: list[Hashable]  # of the later events, where they have any


def open_live(folder: str | Path, device: str = "cpu", source: str | Path | None = None) -> LiveRun:
    """Return the run in ``folder`` with the events of its updates; see `pres.training.opened.open_run`."""
    run, ids = open_run(folder, device, source), list[Hashable]()
    places = updates_of(Path(folder))
    if not places:
        return LiveRun(run.config, run.events, run.model, ids)
    growing = GrowingStream(run.events)
    for number, place in enumerate(places, start=1):
        if place.name != f"{number:06d}":
            raise UnreadableSourceError(f"{place.parent} lacks update {number:06d}. Put it back.")
        about, more, further = _read_events(place)
        growing.extend(more)
        if about.get("events") != len(growing.events):
            raise UnreadableSourceError(
                f"{place} does not follow what is before it. Put back what was there."
            )
        ids += further
    run.model.grow(growing.events)
    try:
        load_into(run.model, _read_state(places[-1] / STATE, run.model))
    except (SourceNotFoundError, UnreadableSourceError) as error:
        notify(f"{error} The memory is made again from the events, by the weights of the run.")
    return LiveRun(run.config, growing.events, run.model, ids)


def updates_of(folder: Path) -> list[Path]:
    """Return the folders of a run's updates, in their order."""
    place = folder / UPDATES
    found = place.iterdir() if place.is_dir() else ()
    return sorted(path for path in found if re.fullmatch(r"\d{6}", path.name))


def write_events(events: EventStream, ids: list[Hashable], path: Path) -> None:
    """Write later events, and their ids if they have some, as a table of the user's ids."""
    columns: dict[str, Any] = {
        "src": events.ids.decode(events.src),
        "dst": events.ids.decode(events.dst),
        "t": events.t.cpu().numpy(),
    }
    for name, values in ("x", events.x), ("categories", events.categories):
        if values is not None:
            columns[name] = values.cpu().numpy()
    if ids:
        columns["event_id"] = pl.Series(ids)
    pl.DataFrame(columns).write_parquet(path)


def _read_state(path: Path, model: MDGNN) -> Tensors:
    """Return a state of an update, which must have the weights of the run."""
    state = load_tensors(path)[0]
    for name, weight in model.named_parameters():
        if name not in state or not torch.equal(weight.cpu(), state[name]):
            raise UnreadableSourceError(f"{path} has other weights than the run, which was trained on since.")
    return state


def _read_events(place: Path) -> tuple[dict[str, Any], MoreEvents, list[Hashable]]:
    path, told = place / EVENTS, read_json(place / RESULT)
    if not path.is_file():
        raise SourceNotFoundError(f"{path}: no such file.")
    if told.get("checksum") != checksum(path):
        raise UnreadableSourceError(f"{path} is damaged: it is not what its checksum says.")
    try:
        frame = pl.read_parquet(path)
        wide = {
            name: torch.from_numpy(frame[name].to_numpy(writable=True)) if name in frame.columns else None
            for name in ("x", "categories")
        }
        t = torch.from_numpy(frame["t"].to_numpy(writable=True))
        more = MoreEvents(frame["src"], frame["dst"], t, wide["x"], wide["categories"])
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise UnreadableSourceError(f"{path} is damaged: {one_line(error)}.") from None
    return told, more, frame["event_id"].to_list() if "event_id" in frame.columns else []
