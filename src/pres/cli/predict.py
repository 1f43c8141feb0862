"""`pres predict`: scores of pairs that a file asks for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pres.cli.console import plain, print_json, progress_bar, stdout
from pres.cli.source import AsJson, Debug, DstColumn, Header, RunSource, Separator, SrcColumn, TimeColumn
from pres.errors import ColumnError, OptionError, ValueInRowError

if TYPE_CHECKING:
    import polars as pl
    from rich.table import Table

    from pres.data.tabular.rows import Table as Source

_SHOWN = 10


def predict(
    run: Annotated[Path, typer.Argument(help="The folder of a saved run.")],
    pairs: Annotated[Path, typer.Argument(help="A file of pairs (CSV, Parquet, NumPy), in your own ids.")],
    src: SrcColumn = None,
    dst: DstColumn = None,
    t: TimeColumn = None,
    header: Header = True,
    separator: Separator = None,
    at: Annotated[
        str | None,
        typer.Option(help="Ask about all pairs at this time: a date or a number, as the stream's."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Where to write (.csv, .tsv, .parquet); by default beside PAIRS.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    new: Annotated[bool, typer.Option("--new", help="Take unknown ids as nodes without history.")] = False,
    source: RunSource = None,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, or cuda for a GPU.")] = "cpu",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Score the pairs of a file with a saved run, and write them with their scores as a table.

    Pairs are asked about at their own times or, if they have none, just after the stream's last event.
    """
    import polars as pl
    import torch

    from pres.data.tabular.pairs import pair_columns, read_pairs
    from pres.data.tabular.rows import open_table
    from pres.data.tabular.write import beside, check_new, write_table
    from pres.evaluation.predict import predict_pairs
    from pres.serving.live import open_live
    from pres.training.folder import RunFolder
    from pres.training.step import arithmetic

    RunFolder(run).check_usable()  # that there is none is said first
    target = beside(pairs, "scores") if out is None else out
    check_new(target, overwrite)
    table = open_table(pairs, header=header, separator=separator)
    _check_names(table, ("score", "new") if new else ("score",))
    asked_at = table
    if at is not None:
        if t is not None:
            raise OptionError("--at is the time of all pairs: leave out --time, or --at.")
        _check_time(table, at)
        asked_at, t = replace(table, frame=table.frame.with_columns(pl.lit(at).alias("--at"))), "--at"
    opened = open_live(run, device, source)
    columns = pair_columns(asked_at, opened.events, src=src, dst=dst, t=t)
    asked = read_pairs(asked_at, columns, opened.events, unknown="new" if new else "error")
    config = opened.config
    with arithmetic(torch.device(device), config["precision"]), progress_bar("replaying events") as progress:
        found = predict_pairs(
            opened.model,
            opened.events,
            asked,
            batch_size=config["eval_batch_size"],
            on_progress=progress,
        )
    added = {"score": found.score.numpy()} | ({"new": found.new.numpy()} if new else {})
    scored = table.frame.with_columns(pl.Series(name, values) for name, values in added.items())
    write_table(scored, target, overwrite)
    if as_json:
        result = {"run": str(run), "pairs": len(found), "out": str(target), "new_nodes": found.new_nodes}
        print_json(result)
        return
    shown = [name for name in (columns.src, columns.dst, columns.t) if name in scored.columns]
    which = f"the {_SHOWN} highest" if len(found) > _SHOWN else "the highest first"
    said = f"scores of {len(found):,} pairs are in {target}; {which}:"
    stdout.print(plain(said), highlight=False, soft_wrap=True)
    stdout.print(as_table(scored.select(*shown, *added)))


def _check_time(table: Source, at: str) -> None:
    import polars as pl

    from pres.data.tabular.times import read_times

    try:
        read_times(replace(table, frame=pl.DataFrame({"--at": [at]})), "--at")
    except ValueInRowError:  # it would name the file of pairs, and a row of it
        raise OptionError(
            f"--at {at!r} is not a time. Use a number, or an ISO date like 2024-05-17T08:30:00."
        ) from None


def _check_names(table: Source, added: tuple[str, ...]) -> None:
    for name in added:
        if name in table.frame.columns:
            raise ColumnError(
                f"{table.where} has a column '{name}' already, where the result goes. Rename it."
            )


def as_table(scored: pl.DataFrame) -> Table:
    """Return the pairs with the highest scores as a rich table."""
    from rich.table import Table

    table = Table(box=None)
    for name in scored.columns:
        table.add_column(plain(name), justify="right" if name == "score" else "left", overflow="fold")
    best = scored.sort("score", descending=True, maintain_order=True).head(_SHOWN)
    for row in best.iter_rows(named=True):
        cells = (f"{value:.4f}" if name == "score" else str(value) for name, value in row.items())
        table.add_row(*(plain(cell) for cell in cells))
    return table
