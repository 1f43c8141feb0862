"""`pres diagnose` and `pres datasets`: what there is to learn from."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pres.cli.console import plain, print_json, say, say_probe, stderr, stdout, stoppable
from pres.cli.model import known
from pres.cli.source import AsJson, Debug, Source, open_events, reads_events
from pres.errors import OptionError

if TYPE_CHECKING:
    from pres.data.datasets.catalogue import Entry


@reads_events
def diagnose(
    source: Source,
    batch_size: Annotated[list[int] | None, typer.Option(help="A batch size to try; repeatable.")] = None,
    ties: Annotated[Literal["cut", "whole"], typer.Option(help="May a batch cut equal times apart?")] = "cut",
    sample: Annotated[
        int, typer.Option(help="Of a longer stream only the last so many events are looked at.")
    ] = 1_000_000,
    model: Annotated[
        str | None,
        typer.Option(
            "--find-batch-size",
            help="Train this model, such as tgn, shortly, and say how large batches may be for it.",
            callback=known,
        ),
    ] = None,
    tolerance: Annotated[
        float | None,
        typer.Option(
            help="With --find-batch-size: the points of AP that larger batches may lose.  \\[default: 0.5]"
        ),
    ] = None,
    png: Annotated[Path | None, typer.Option(help="Also draw the diagnosis as a picture here.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Show what a stream is like, and what larger temporal batches would lose."""
    from pres.figure import check_png
    from pres.tuning import diagnose as run_diagnosis

    if tolerance is not None and model is None:
        raise OptionError(
            f"--tolerance {tolerance:g} is for --find-batch-size: give that too, or leave it out."
        )
    if png is not None:
        check_png(png)
    events = open_events(source, reading)
    diagnosis = run_diagnosis(
        events, batch_size or None, ties=ties, sample=sample, progress=stderr.is_terminal
    )
    found = None
    if model is not None:
        from pres.training.batch_size import TOLERANCE, find_batch_size

        with stoppable("stopped while probing batch sizes. Nothing is kept."):
            found = find_batch_size(
                events, model, tolerance=TOLERANCE if tolerance is None else tolerance, on_probe=say_probe
            )
    if png is not None:
        diagnosis.save_png(png)
        say(f"picture: {png}")
    if as_json:
        told = {"found_batch_size": None if found is None else found.to_dict()}
        print_json(diagnosis.to_dict() | told | {"png": None if png is None else str(png)})
    else:
        stdout.print(diagnosis.shown())
        if found is not None:
            stdout.print(f"\n{plain(f'{model} can be trained with {found}')}", soft_wrap=True)


def datasets(as_json: AsJson = False, debug: Debug = False) -> None:
    """List the named datasets: their published statistics, and where each is or how to get it."""
    from rich.table import Table

    from pres.data import catalogue

    rows = catalogue()
    if as_json:
        print_json({"datasets": [dataclasses.asdict(row) for row in rows]})
        return
    table = Table(title="Named datasets, with their published counts", title_justify="left", box=None)
    for name in ("name", "events", "nodes", "features", "positives", "status"):
        table.add_column(name, justify="left" if name in ("name", "status") else "right", overflow="fold")
    for row in rows:
        positives = _count(row.positives)
        table.add_row(row.name, _count(row.events), _count(row.nodes), _features(row), positives, row.status)
    stdout.print(table)
    for row in rows:
        how = f"{row.where} ({row.format})" if row.format else row.where
        variant = f" This copy is the variant '{row.variant}'." if row.variant else ""
        about = f"{row.title}. {row.note}".strip() + variant
        stdout.print(f"\n[bold]{row.name}[/]  {plain(about)}\n  {plain(how)}", soft_wrap=True)


def _features(row: Entry) -> str:
    return f"{row.relations:,} relations" if row.relations else _count(row.edge_features)


def _count(value: int | None) -> str:
    return "–" if value is None else f"{value:,}"
