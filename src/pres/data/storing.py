"""`pres.write_store`: a stream of any size into a folder that `pres.open_store` opens."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from pres.data.datasets.registry import DATASETS
from pres.data.ids import IdMap
from pres.data.info import Origin
from pres.data.reading import OPTIONS, origin_of
from pres.data.source import events_from, names_a_file
from pres.data.store.arrays import ArrayFile, mapped, write_tensor
from pres.data.store.columns import ColumnFiles
from pres.data.store.folder import check_free, is_store, making, write_about
from pres.data.store.order import AT_ONCE, Show, write_index
from pres.data.stream import COLUMNS, EventStream, unchecked
from pres.data.synthetic import SyntheticPlan, synthetic_stream
from pres.data.tabular.build import stream_of_rows
from pres.data.tabular.rows import open_rows
from pres.errors import EmptySourceError, OptionError, nearest
from pres.storage import user_path

ROWS = 1 << 20  # of a table in memory at a time
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
    target = user_path(folder)
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
    if isinstance(source, str) and (source.casefold() in DATASETS or not names_a_file(source)):
        if source.casefold() == "synthetic":
            return _of_synthetic(place, options, at_once, begin("making", None))
        return _of_stream(events_from(source, options), place, at_once)
    for name in options:
        if name not in OPTIONS:
            raise OptionError(f"reading a table has no option {name!r}.{nearest(name, OPTIONS)}")
    given, show = OPTIONS | options, begin("reading", None)
    opened = open_rows(source, header=given["header"], separator=given["separator"])

    with ExitStack() as stack:
        scratch = Path(stack.enter_context(TemporaryDirectory(dir=place)))

        def keep(part: pl.DataFrame) -> pl.LazyFrame:
            path = scratch / f"{sum(1 for _ in scratch.iterdir())}.arrow"
            path.write_bytes(part.write_ipc(None).getvalue())
            return pl.scan_ipc(path)

        def files(count: int) -> ColumnFiles:
            return stack.enter_context(ColumnFiles(place, count, at_once, show))

        return stream_of_rows(opened, given, origin_of(source, given), files, keep, rows, show)


def _of_stream(events: EventStream, place: Path, at_once: int) -> EventStream:
    """Write the columns of a stream that is in memory, or in another store."""
    if events.offset:
        raise OptionError("a store is written of a whole stream, not of a slice of it.")
    for name in COLUMNS:
        values = getattr(events, name)
        if values is not None:
            write_tensor(values, place / f"{name}.npy", at_once)
    return events


def _of_synthetic(place: Path, options: dict[str, Any], at_once: int, show: Show) -> EventStream:
    """Write the columns of `synthetic_stream` of these options, made and sorted some events at a time.

    Memory is needed for the bursts, of which there is one per 6 events, and for ``at_once`` events.
    """
    known = {name: p.default for name, p in inspect.signature(synthetic_stream).parameters.items()}
    for name in options:
        if name not in known:
            raise OptionError(f"the synthetic stream has no option {name!r}.{nearest(name, known)}")
    given = known | options
    labels, n = given.pop("labels"), given["num_events"]
    plan = SyntheticPlan(**given, at_once=at_once)
    with ColumnFiles(place, n, at_once, show) as columns:
        for part in plan.parts():
            columns.append(**part._asdict() | ({} if labels else {"label": None}))
            show(len(part.t))
        columns.sort()
    if plan.features:
        topic, places = mapped(place / "topic.npy"), plan.places()
        with ArrayFile(place / "x.npy", np.float32, (n, plan.features)) as file:
            for noise in plan.noise():
                file.append(noise.add_(places[topic[file.end : file.end + len(noise)]]).numpy())
    for scratch in ("row", "topic"):
        (place / f"{scratch}.npy").unlink()
    ids = IdMap.dense(plan.num_users + plan.num_items, plan.num_users)
    info = dataclasses.replace(plan.info, origin=Origin("synthetic", options))
    return unchecked(**columns.tensors(), num_nodes=ids.num_nodes, num_src=ids.num_src, ids=ids, info=info)


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
