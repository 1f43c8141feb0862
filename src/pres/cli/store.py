"""`pres store`: a stream into a folder, to be used from there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pres.cli.console import plain, print_json, stderr, stdout
from pres.cli.source import AsJson, Debug, Source, reads_events


@reads_events
def store(
    source: Source,
    out: Annotated[Path, typer.Option(help="The folder to make.")],
    num_events: Annotated[int | None, typer.Option(help="Events of the synthetic stream.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Write events and their index into a folder, which every command takes as a source and reads as it goes.

    Text and Parquet files are read in parts, so they may be larger than memory.
    """
    from pres.data.store.folder import open_store
    from pres.data.storing import write_store

    options = reading if num_events is None else reading | {"num_events": num_events}
    folder = write_store(source, out, progress=stderr.is_terminal, **options)
    events = open_store(folder)
    size = sum(path.stat().st_size for path in folder.iterdir())
    if as_json:
        found = {"store": str(folder), "events": len(events), "nodes": events.num_nodes, "bytes": size}
        print_json({"dataset": events.info.name} | found)
    else:
        about = f"{len(events):,} events, {events.num_nodes:,} nodes, {size / 1e6:,.1f} MB"
        stdout.print(plain(f"stored: {folder} ({about})"), highlight=False, soft_wrap=True)
