"""Which events a command works on, and how to read them."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, get_args

import typer

if TYPE_CHECKING:
    from pres.data.stream import EventStream

SOURCE_HELP = "A file of events (CSV, Parquet, NumPy), a store's folder, or a dataset's name."
Source = Annotated[str, typer.Argument(help=SOURCE_HELP)]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object to stdout and nothing else.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
RunSource = Annotated[
    str | None,
    typer.Option(
        "--source",
        help="Where the run's events are now: a file, a store or a dataset.  \\[default: as trained]",
    ),
]
SrcColumn = Annotated[str | None, typer.Option("--src", help="Column of the source's id.")]
DstColumn = Annotated[str | None, typer.Option("--dst", help="Column of the destination's id.")]
TimeColumn = Annotated[str | None, typer.Option("--time", help="Column of the time (t).")]
Header = Annotated[bool, typer.Option(help="Does a text file start with column names?")]
Separator = Annotated[str | None, typer.Option(help="What separates a text file's columns.")]


def _how_to_read(
    src: SrcColumn = None,
    dst: DstColumn = None,
    t: TimeColumn = None,
    label: Annotated[str | None, typer.Option("--label", help="Column of an integer label.")] = None,
    x: Annotated[list[str] | None, typer.Option("--x", help="A numeric feature column; repeatable.")] = None,
    categories: Annotated[
        list[str] | None, typer.Option("--category", help="A categorical column; repeatable.")
    ] = None,
    bipartite: Annotated[
        bool | None,
        typer.Option("--bipartite/--one-kind", help="Do sources and destinations differ in kind?"),
    ] = None,
    directed: Annotated[bool, typer.Option(help="Do neighbourhoods follow the events' direction?")] = False,
    header: Header = True,
    separator: Separator = None,
    time_unit: Annotated[str | None, typer.Option(help="Unit of time: ns, us, ms, s, h or d.")] = None,
    first: Annotated[int | None, typer.Option(help="Only the first so many events.")] = None,
) -> dict[str, Any]:
    """Return those of the options that differ from their defaults."""
    given = {name: value for name, value in locals().items() if value not in (None, [])}
    if not directed:
        del given["directed"]
    if header:
        del given["header"]
    return given


def reads_events(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options that say how to read a file; it gets what was said as ``reading``."""
    further = inspect.signature(_how_to_read, eval_str=True).parameters
    own = [p for p in inspect.signature(command, eval_str=True).parameters.values() if p.name != "reading"]

    @functools.wraps(command)
    def with_reading(**given: Any) -> None:
        reading = _how_to_read(**{name: given.pop(name) for name in further})
        command(**given, reading=reading)

    for parameter in further.values():
        get_args(parameter.annotation)[1].rich_help_panel = "How to read a file"
    parameters = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *further.values())]
    with_reading.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    with_reading.__annotations__ = {p.name: p.annotation for p in parameters}
    return with_reading


def open_events(source: str, options: dict[str, Any]) -> EventStream:
    """Return the events of a dataset or a file."""
    from pres.data.source import events_from

    return events_from(source, options)
