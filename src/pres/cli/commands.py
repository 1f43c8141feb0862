"""The commands by name, and how one runs: what goes wrong is one line on stderr."""

from __future__ import annotations

import os
import sys
import warnings
from typing import Annotated, Any

import typer
from polars.exceptions import PanicException

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
    train,
    update,
)
from pres.cli.console import show_error, show_warning, speak_as
from pres.cli.flags import Commands, complete
from pres.errors import Notice, PresError, one_line

app = typer.Typer(
    cls=Commands,
    help="Train memory-based dynamic graph neural networks on event streams.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
)
for function, example in (
    (train.train, "pres train wikipedia --model tgn --batch-size 200 --out runs/a"),
    (evaluate.evaluate, "pres evaluate runs/a --strategy historical --out runs/a/evaluation.json"),
    (predict.predict, "pres predict runs/a pairs.csv --src user --dst item"),
    (update.update, "pres update runs/a today.csv --event-id id"),
    (classify.classify, "pres classify runs/a --out labels.csv"),
    (report.report, "pres report runs/a"),
    (data.diagnose, "pres diagnose clicks.csv --src user --dst item --time ts --png clicks.png"),
    (batches.batches, "pres batches clicks.csv --src user --dst item --time ts --png batches.png"),
    (data.datasets, "pres datasets --json"),
    (store.store, "pres store clicks.parquet --src user --dst item --time ts --out clicks"),
    (reproduce.reproduce, "pres reproduce table1 --quick"),
):
    app.command(epilog=f"Example: {example}")(function)
if benchmark.FOLDER is not None:
    app.command(epilog="Example: pres benchmark --batch-size 600 --json")(benchmark.benchmark)
app.add_typer(theory.app, name="theory")


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


def run(arguments: list[str]) -> int:
    """Run the command that the arguments name; return its exit code."""
    group: Any = typer.main.get_command(app)
    command, name = group, "pres"
    for word in arguments:
        if word in getattr(command, "commands", ()):
            command, name = command.commands[word], f"{name} {word}"
    speak_as(complete(command))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("always", Notice)
            warnings.showwarning = show_warning
            with group.make_context("pres", arguments) as context:
                group.invoke(context)
    except typer.Exit as done:
        return done.exit_code
    except PresError as error:
        if "--debug" in arguments:
            raise
        show_error("error", str(error))
        return 1
    except typer.TyperException as error:  # the arguments are not those of the command
        if said := _usage(error):  # else it is help, and was shown
            show_error(name, said)
        return error.exit_code
    except BrokenPipeError:  # who reads has heard enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (Exception, PanicException) as error:
        if "--debug" in arguments:
            raise
        show_error("error", _unexpected(error))
        return 1
    return 0


def _unexpected(error: BaseException) -> str:
    """Return one line about what no command foresaw."""
    if isinstance(error, OSError) and error.strerror:
        where = "" if error.filename is None else f"{error.filename}: "
        return str(PresError(f"{where}{error.strerror.lower()}."))
    if isinstance(error, MemoryError):
        return "there is not enough memory. Take fewer events (--first), or a machine with more."
    said = f"unexpected {type(error).__name__}: {one_line(error)}. --debug shows where it comes from."
    return str(PresError(said))


def _usage(error: typer.TyperException) -> str:
    """Return what is wrong with the arguments, and what was meant instead if that can be guessed."""
    option = getattr(error, "option_name", None)
    if option is None or not hasattr(error, "possibilities"):
        said = " ".join(error.format_message().split())
        said = said.replace("Value error, ", "").replace("Input should be", "it should be")
        return said[:1].lower() + said[1:].partition(", unable to parse")[0]
    close = [f" Did you mean {name}?" for name in error.possibilities or ()][:1]
    return f"no option {option}.{''.join(close)}"
