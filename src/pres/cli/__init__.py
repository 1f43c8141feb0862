"""The command line: parse, call, print."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pres import __version__
from pres.cli import (
    batches,
    benchmark,
    classify,
    data,
    evaluate,
    predict,
    report,
    reproduce,
    store,
    theory,
    theory_memory,
    train,
)
from pres.cli.console import plain, stderr
from pres.errors import PresError

app = typer.Typer(
    help="Train memory-based dynamic graph neural networks on event streams.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
app.command(epilog="Example: pres diagnose clicks.csv --src user --dst item --time ts --png clicks.png")(
    data.diagnose
)
app.command(epilog="Example: pres train wikipedia --model tgn --batch-size 200 --out runs/a")(train.train)
app.command(epilog="Example: pres batches clicks.csv --src user --dst item --time ts --png batches.png")(
    batches.batches
)
app.command(epilog="Example: pres evaluate runs/a --strategy historical --negatives 20")(evaluate.evaluate)
app.command(epilog="Example: pres predict runs/a pairs.csv --src user --dst item")(predict.predict)
app.command(epilog="Example: pres classify runs/a --epochs 20 --json")(classify.classify)
app.command(epilog="Example: pres datasets --json")(data.datasets)
app.command(epilog="Example: pres store clicks.parquet --src user --dst item --time ts --out clicks")(
    store.store
)
app.command(epilog="Example: pres reproduce table1 --quick")(reproduce.reproduce)
app.command(epilog="Example: pres report runs/reproduce-quick")(report.report)
app.command(epilog="Example: pres benchmark --batch-size 600 --json")(benchmark.benchmark)
app.add_typer(theory.app, name="theory")
theory.app.command(epilog="Example: pres theory coherence mooc --model jodie --batch-size 800 --samples 500")(
    theory_memory.coherence
)
theory.app.command(epilog="Example: pres theory distance uci --model tgn --json")(theory_memory.distance)


def main() -> None:
    """Run the command line; a failure that the user can mend is one line and exit code 1."""
    try:
        app()
    except PresError as error:
        if "--debug" in sys.argv:
            raise
        stderr.print(f"[bold red]error:[/] {plain(str(error))}", highlight=False, soft_wrap=True)
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
