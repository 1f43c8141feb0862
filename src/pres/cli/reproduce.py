"""`pres reproduce`: a table or figure of the paper, by name."""

from __future__ import annotations

import os
import shlex
import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from pres.cli.console import plain, print_json, say, stderr, stdout
from pres.cli.source import AsJson, Debug
from pres.errors import JobsFailedError, OptionError

if TYPE_CHECKING:
    from pres.paper.experiments.budget import Budget
    from pres.paper.experiments.evidence import Evidence
    from pres.paper.experiments.runner import Progress
    from pres.paper.experiments.table import Table


def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="table1, table2, fig-…, theory, …, or all; --list names them.")
    ] = None,
    list_: Annotated[
        bool,
        typer.Option("--list", help="Show all experiments, how long each takes and what is done."),
    ] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Slices and few epochs: minutes.")] = False,
    full: Annotated[bool, typer.Option("--full", help="As the paper: 5 seeds, 50 epochs. Days.")] = False,
    seeds: Annotated[int | None, typer.Option(help="Repeat so often; as the budget says by default.")] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option("--datasets", help="On these instead of the paper's; repeatable, or with commas."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep everything here.  \\[default: runs/reproduce-BUDGET]")
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Jobs at once, one thread each.  \\[default: one per core]")
    ] = None,
    results: Annotated[
        Path | None,
        typer.Option(
            help="A Parquet file of finished jobs: they are not done again, others are added to it."
        ),
    ] = None,
    so_far: Annotated[
        bool, typer.Option("--so-far", help="Show what is done so far, and do nothing.")
    ] = False,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Do what a table or figure of the paper needs, and show it beside the paper's numbers.

    Stop it at any time: the same command goes on, and no finished job is done again.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bars

    from pres.paper.experiments.budget import BUDGETS
    from pres.paper.experiments.executor import LocalProcesses
    from pres.paper.experiments.kept import KeptResults
    from pres.paper.experiments.registry import find
    from pres.paper.experiments.runner import reproduce as run_experiments
    from pres.paper.report.write import write_report

    if quick and full:
        raise OptionError("--quick and --full are two budgets: give one.")
    if jobs is not None and jobs < 1:
        raise OptionError(f"--jobs {jobs}: run at least one at a time.")
    budget = BUDGETS["quick" if quick else "full" if full else "default"]
    named = [each.strip() for given in datasets or [] for each in given.split(",") if each.strip()]
    if datasets and not named:
        raise OptionError("--datasets: name at least one, or leave it out for the paper's.")
    root = out or Path("runs") / f"reproduce-{budget.name}"
    if list_:
        show_experiments(budget, seeds, named, root, as_json)
        return
    if name is None:
        raise OptionError("say which experiment: --list names them, all is all of them.")
    experiments = find(name)
    flags = [f"--{budget.name}"] if budget.name != "default" else []
    flags += [] if seeds is None else ["--seeds", str(seeds)]
    flags += ["--datasets", ",".join(named)] if named else []
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bars(*columns, console=stderr, transient=True, disable=not stderr.is_terminal) as bars:
        task = bars.add_task("jobs", total=None)

        def show(progress: Progress) -> None:
            bars.update(task, completed=progress.done, total=progress.total)
            outcome = "done" if progress.error is None else f"FAILED: {progress.error}"
            say(f"{progress.done:>4} of {progress.total}  {progress.job.title}: {outcome}")

        before = signal.signal(signal.SIGTERM, _interrupt)
        try:
            found = run_experiments(
                experiments,
                budget,
                root,
                None if so_far else LocalProcesses(jobs or os.cpu_count() or 1),
                seeds=seeds,
                datasets=named or None,
                results=None if results is None else KeptResults(results),
                command=lambda one: shlex.join(["pres", "reproduce", one, *flags]),
                on_progress=show,
            )
        except KeyboardInterrupt:
            say(f"stopped. {root} keeps what is done; the same command goes on.")
            raise typer.Exit(130) from None
        finally:
            signal.signal(signal.SIGTERM, before)
    report = write_report(root)
    if as_json:
        print_json(
            {
                "out": str(root),
                "report": str(report),
                "budget": budget.name,
                "jobs": found.jobs,
                "done_before": found.repeated,
                "failed": found.failures,
                "experiments": [one.to_dict() for one in found.evidence],
            }
        )
    else:
        for one in found.evidence:
            show_evidence(one, root)
    say(f"results: {root}")
    say(f"report: {report}")
    if found.failures:
        first = next(iter(found.failures.items()))
        raise JobsFailedError(
            f"{len(found.failures)} of {found.jobs} jobs failed, the first ({first[0]}) because {first[1]} "
            f"What each said is in {root / 'jobs'}; the same command tries them again."
        )


def show_experiments(
    budget: Budget, seeds: int | None, datasets: list[str], root: Path, as_json: bool
) -> None:
    """Print every experiment: what it shows, how long it takes at a budget, and what is done of it."""
    from pres.paper.experiments.listing import as_table, listed

    found = listed(budget, seeds, datasets or None, root)
    if as_json:
        print_json({"budget": budget.name, "out": str(root), "experiments": found})
        return
    print_table(as_table(found))
    say(f"budget: {budget.name}; results: {root}; hours are of one core, from the jobs done here and ours")


def print_table(table: Table) -> None:
    """Print a table; numbers stand on the right."""
    from rich.console import Console
    from rich.table import Table as RichTable

    shown = RichTable(box=None)
    for heading, numeric in zip(table.headings, table.numeric(), strict=True):
        shown.add_column(heading.title, justify="right" if numeric else "left", overflow="fold")
    for row in table.shown():
        shown.add_row(*map(plain, row))
    # A file has no width: there a row is a line.
    console = stdout if stdout.is_terminal else Console(width=400)
    console.print(shown, highlight=False)


def show_evidence(found: Evidence, root: Path) -> None:
    """Print a table, what it comes to, and what is not in it."""

    def line(text: str, style: str = "") -> None:
        stdout.print(text, highlight=False, soft_wrap=True, style=style)

    line(f"\n[bold]{plain(found.name)}: {plain(found.title)}[/] ({plain(found.where)})")
    line(plain(found.protocol), "dim")
    if found.table.rows:
        print_table(found.table)
    line(f"The paper: {plain(found.says)}")
    for finding in found.findings:
        line(f"Here: {plain(finding)}")
    for figure in found.figures:
        line(f"Figure: {plain(str(root / 'figures' / figure))}")
    for dataset, how in found.skipped.items():
        line(f"Skipped: {dataset}. {plain(how)}")
    for job, error in found.failed.items():
        line(f"[red]Failed:[/] {plain(job)}: {plain(error)}")


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
