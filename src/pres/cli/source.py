"""Which events a command works on, and how to read them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from pres.cli.console import notices

if TYPE_CHECKING:
    from pres.events import EventStream

Source = Annotated[str, typer.Argument(help="A file of events (CSV, Parquet, NumPy), or a dataset's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

# How to understand a file; every command that reads one has these.
SrcColumn = Annotated[str | None, typer.Option("--src", help="Column of the source's id.")]
DstColumn = Annotated[str | None, typer.Option("--dst", help="Column of the destination's id.")]
TimeColumn = Annotated[str | None, typer.Option("--time", help="Column of the time (t).")]
LabelColumn = Annotated[str | None, typer.Option("--label", help="Column of an integer label.")]
XColumns = Annotated[list[str] | None, typer.Option("--x", help="A numeric feature column; repeatable.")]
Categories = Annotated[list[str] | None, typer.Option("--category", help="A categorical column; repeatable.")]
Bipartite = Annotated[
    bool | None, typer.Option("--bipartite/--one-kind", help="Do sources and destinations differ in kind?")
]
Directed = Annotated[bool, typer.Option(help="Do neighbourhoods follow the events' direction?")]
Header = Annotated[bool, typer.Option(help="Does a text file start with column names?")]
Separator = Annotated[str | None, typer.Option(help="What separates a text file's columns.")]
TimeUnit = Annotated[str | None, typer.Option(help="Unit of time: ns, us, ms, s, h or d.")]


def reading_options(given: dict[str, Any]) -> dict[str, Any]:
    """Return those of a command's options that say how to read a file and differ from their defaults."""
    names = ("src", "dst", "t", "label", "x", "categories", "bipartite", "separator", "time_unit")
    options = {name: given[name] for name in names if given[name] not in (None, [])}
    if given["directed"]:
        options["directed"] = True
    if not given["header"]:
        options["header"] = False
    return options


def open_events(source: str, options: dict[str, Any]) -> EventStream:
    """Return the events of a dataset or a file, and show what was decided on the way."""
    from pres.datasets.source import events_from

    with notices():
        return events_from(source, options)
