"""`pres.write_store`: a stream of any size into a folder that `pres.open_store` opens."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from pres.data.datasets.registry import DATASETS
from pres.data.read import origin_of, read
from pres.data.source import events_from
from pres.data.store.arrays import write_tensor
from pres.data.store.folder import check_free, is_store, making, write_about
from pres.data.store.order import AT_ONCE, Show, write_index
from pres.data.store.scanned import ROWS, ScannedTable
from pres.data.store.synthetic import write_synthetic
from pres.data.stream import COLUMNS, EventStream
from pres.data.tabular.chunks import scan
from pres.errors import EmptySourceError, OptionError, nearest

_READING = {
    name: parameter.default
    for name, parameter in inspect.signature(read).parameters.items()
    if name != "source"
}

Begin = Callable[[str, int | None], Show]  # told of a piece of work and how many events it has to do


def write_store(
    source: Any,
    folder: str | Path,
    *,
    progress: bool = False,
    rows: int = ROWS,
    at_once: int = AT_ONCE,
    **options: Any,
) -> Path:
    """Write the events of a source into a new folder, with their index, and return it.

    `pres.open_store` gives the events that `pres.read` would. Text and Parquet files are read in parts, and
    the synthetic stream is made in parts: memory is needed for some of the events, and for all ids. Any other
    source is read as a whole first. The folder appears when it is complete; on an error nothing is left.

    Args:
        source: An `EventStream`, a file, a polars query (``scan_parquet("part-*.parquet")``), the name of
            a dataset, or whatever else `pres.read` takes.
        folder: The folder to make.
        progress: Whether to show a progress bar on stderr.
        rows: Rows of a table in memory at a time.
        at_once: Events in memory at a time where they are sorted; 100 bytes each.
        **options: Those of `pres.read`, or of `pres.load` for the name of a dataset.
    """
    target = Path(folder).expanduser()
    if rows < 1 or at_once < 1:
        raise OptionError(f"rows={rows} and at_once={at_once}: take at least one at a time.")
    check_free(target)
    if is_store(source):
        raise OptionError(f"{source} is a store already; pres.open_store opens it.")
    with making(target) as place, _progress(progress) as begin:
        events = _columns(source, options, place, rows, at_once, begin)
        if len(events) == 0:
            raise EmptySourceError(f"{events.info.title} holds no event to store.")
        write_index(events, place, at_once, begin("indexing", 2 * len(events)))
        write_about(events, place)
    return target


def _columns(
    source: Any, options: dict[str, Any], place: Path, rows: int, at_once: int, begin: Begin
) -> EventStream:
    """Return the events of a source, their columns being written already."""
    if isinstance(source, EventStream):
        if options:
            raise OptionError(f"an EventStream is written as it is; leave out {', '.join(options)}.")
        return _of_stream(source, place, at_once)
    named = isinstance(source, str) and source.casefold() in DATASETS
    if named and DATASETS[source.casefold()].embedded:
        return write_synthetic(place, options, at_once, begin("making", None))
    found = (
        None if named else scan(source, **{k: options[k] for k in ("header", "separator") if k in options})
    )
    if found is None:
        whole = events_from(source, options) if isinstance(source, str) else read(source, **options)
        return _of_stream(whole, place, at_once)
    for name in options:
        if name not in _READING:
            raise OptionError(f"reading a table has no option {name!r}.{nearest(name, _READING)}")
    given = _READING | options
    table = ScannedTable(found, given, rows, at_once)
    events = table.write(place, begin("reading", None))
    origin = origin_of(source, {"source": source} | given)
    return events.with_info(dataclasses.replace(events.info, origin=origin))


def _of_stream(events: EventStream, place: Path, at_once: int) -> EventStream:
    """Write the columns of a stream that is in memory, or in another store."""
    if events.offset:
        raise OptionError("a store is written of a whole stream, not of a slice of it.")
    for name in COLUMNS:
        values = getattr(events, name)
        if values is not None:
            write_tensor(values, place / f"{name}.npy", at_once)
    return events


@contextmanager
def _progress(wanted: bool) -> Iterator[Begin]:
    """Give a function that begins a new bar, and returns what moves it on."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} events"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, disable=not wanted) as bars:

        def begin(what: str, total: int | None) -> Show:
            for done in bars.task_ids:
                bars.remove_task(done)
            task = bars.add_task(what, total=total)
            return lambda further: bars.advance(task, further)

        yield begin
