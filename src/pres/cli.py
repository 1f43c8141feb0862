"""The command line: parse, call, print."""

from __future__ import annotations

import dataclasses
import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.console import Console

from pres import __version__
from pres.errors import Notice, OptionError, PresError, UnknownDatasetError, nearest, one_line

if TYPE_CHECKING:
    from pres.datasets import Entry
    from pres.events import EventStream

app = typer.Typer(
    help="Train memory-based dynamic graph neural networks on event streams.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
_out, _err = Console(), Console(stderr=True)

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


def main() -> None:
    """Run the command line; a failure that the user can mend is one line and exit code 1."""
    try:
        app()
    except PresError as error:
        if "--debug" in sys.argv:
            raise
        _err.print(f"[bold red]error:[/] {_plain(str(error))}", highlight=False, soft_wrap=True)
        sys.exit(1)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"pres {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Options of every command."""


@app.command(epilog="Example: pres diagnose clicks.csv --src user --dst item --time ts --png clicks.png")
def diagnose(
    source: Source,
    src: SrcColumn = None,
    dst: DstColumn = None,
    t: TimeColumn = None,
    label: LabelColumn = None,
    x: XColumns = None,
    categories: Categories = None,
    bipartite: Bipartite = None,
    directed: Directed = False,
    header: Header = True,
    separator: Separator = None,
    time_unit: TimeUnit = None,
    batch_size: Annotated[list[int] | None, typer.Option(help="A batch size to try; repeatable.")] = None,
    ties: Annotated[Literal["cut", "whole"], typer.Option(help="May a batch cut equal times apart?")] = "cut",
    png: Annotated[Path | None, typer.Option(help="Also draw the diagnosis as a picture here.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Show what a stream is like, and what larger temporal batches would lose."""
    reading = _reading(locals())
    from pres.diagnosis import diagnose as run_diagnosis
    from pres.diagnosis.figure import check_png
    from pres.diagnosis.tables import as_tables

    if png is not None:
        check_png(png)
    events = _events(source, reading)
    diagnosis = run_diagnosis(events, batch_size or None, ties=ties, progress=_err.is_terminal)
    if png is not None:
        diagnosis.save_png(png)
        _err.print(f"picture: {_plain(str(png))}", highlight=False, soft_wrap=True)
    if as_json:
        _print_json(diagnosis.to_dict() | {"png": None if png is None else str(png)})
    else:
        _out.print(as_tables(diagnosis))


@app.command(epilog="Example: pres train wikipedia --model tgn --batch-size 200 --out runs/a")
def train(
    source: Source,
    model: Annotated[Literal["tgn", "jodie", "apan"], typer.Option(help="Which model.")] = "tgn",
    batch_size: Annotated[int, typer.Option(help="Events between two updates of the memory.")] = 200,
    step_size: Annotated[
        int | None,
        typer.Option(help="Events between two updates of the weights; as --batch-size by default."),
    ] = None,
    epochs: Annotated[int, typer.Option(help="Epochs at most.")] = 10,
    patience: Annotated[int, typer.Option(help="Epochs without a better validation before stopping.")] = 3,
    lr: Annotated[float, typer.Option(help="Learning rate.")] = 1e-3,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    eval_batch_size: Annotated[int, typer.Option(help="Events per batch in validation and test.")] = 200,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, or cuda for a GPU.")] = "cpu",
    out: Annotated[Path | None, typer.Option(help="Save the run into this folder.")] = None,
    src: SrcColumn = None,
    dst: DstColumn = None,
    t: TimeColumn = None,
    label: LabelColumn = None,
    x: XColumns = None,
    categories: Categories = None,
    bipartite: Bipartite = None,
    directed: Directed = False,
    header: Header = True,
    separator: Separator = None,
    time_unit: TimeUnit = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Train a memory model to predict links; weights are chosen on validation, the test part is reported."""
    reading = _reading(locals())
    import torch

    from pres import models
    from pres.training import EpochResult, FitConfig, fit
    from pres.training.run import check_free

    settings = {
        "batch_size": batch_size,
        "step_size": step_size,
        "epochs": epochs,
        "patience": patience,
        "lr": lr,
        "seed": seed,
        "eval_batch_size": eval_batch_size,
    }
    FitConfig.of(settings)  # what cannot be is said before anything is read
    if out is not None:
        check_free(out)
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise OptionError(f"device '{device}' cannot be used here: {one_line(error)}.") from None
    events = _events(source, reading).to(device)
    torch.manual_seed(seed)
    made = {"tgn": models.TGN, "jodie": models.JODIE, "apan": models.APAN}[model](events).to(device)
    num_train = len(events.split().train)

    def say(done: EpochResult) -> None:
        left = (epochs - done.epoch) * done.seconds
        _err.print(
            f"epoch {done.epoch:>3}  loss {done.loss:.4f}  validation AP {done.val.ap:.4f}  "
            f"{num_train / done.seconds:,.0f} events/s  about {left:,.0f} s left",
            highlight=False,
        )

    run = fit(made, events, on_epoch=say, **settings)
    if out is not None:
        run.save(out)
        _err.print(f"saved: {_plain(str(out))}", highlight=False, soft_wrap=True)
    if as_json:
        _print_json(run.to_dict() | {"run": None if out is None else str(out)})
    else:
        _out.print(_plain(repr(run)), highlight=False, soft_wrap=True)


@app.command(epilog="Example: pres datasets --json")
def datasets(as_json: AsJson = False, debug: Debug = False) -> None:
    """List the named datasets: their published statistics, and where each is or how to get it."""
    from rich.table import Table

    from pres.datasets import catalogue

    rows = catalogue()
    if as_json:
        _print_json({"datasets": [dataclasses.asdict(row) for row in rows]})
        return
    table = Table(title="Named datasets, with their published counts", title_justify="left", box=None)
    for name in ("name", "events", "nodes", "features", "positives", "status"):
        table.add_column(name, justify="left" if name in ("name", "status") else "right", overflow="fold")
    for row in rows:
        positives = _count(row.positives)
        table.add_row(row.name, _count(row.events), _count(row.nodes), _features(row), positives, row.status)
    _out.print(table)
    for row in rows:
        how = f"{row.where} ({row.format})" if row.format else row.where
        variant = f" This copy is the variant '{row.variant}'." if row.variant else ""
        about = f"{row.title}. {row.note}".strip() + variant
        _out.print(f"\n[bold]{row.name}[/]  {_plain(about)}\n  {_plain(how)}", soft_wrap=True)


def _features(row: Entry) -> str:
    return f"{row.relations:,} relations" if row.relations else _count(row.edge_features)


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"


def _reading(given: dict[str, Any]) -> dict[str, Any]:
    """Return those of a command's options that say how to read a file and differ from their defaults."""
    names = ("src", "dst", "t", "label", "x", "categories", "bipartite", "separator", "time_unit")
    options = {name: given[name] for name in names if given[name] not in (None, [])}
    if given["directed"]:
        options["directed"] = True
    if not given["header"]:
        options["header"] = False
    return options


def _events(source: str, options: dict[str, Any]) -> EventStream:
    """Return the dataset of that name if there is one, otherwise the events of the file."""
    from pres.datasets import load
    from pres.datasets.registry import DATASETS
    from pres.io import read

    with _notices():
        if source.casefold() in DATASETS:
            if options:
                named = ", ".join(options)
                raise OptionError(f"'{source}' is a named dataset; {named} can be given for a file only.")
            return load(source)
        if Path(source).exists() or Path(source).suffix or "/" in source:
            return read(source, **options)
    raise UnknownDatasetError(
        f"there is neither a file nor a dataset '{source}'.{nearest(source, DATASETS)} "
        f"Datasets are {', '.join(DATASETS)}."
    )


@contextmanager
def _notices() -> Iterator[None]:
    """Show what the library decided for the user as notes on stderr."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", Notice)
        yield
    for warning in caught:
        _err.print(f"[dim]note: {_plain(str(warning.message))}[/]", highlight=False, soft_wrap=True)


def _print_json(value: dict[str, Any]) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False, allow_nan=False))


def _plain(text: str) -> str:
    """Return ``text`` with nothing in it read as rich markup."""
    return text.replace("[", r"\[")
