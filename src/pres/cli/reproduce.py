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
    from pres.paper.experiments.evidence import Evidence
    from pres.paper.experiments.runner import Progress


def reproduce(
    name: Annotated[
        str | None, typer.Argument(help="table1, table2, fig-…, theory, …, or all; --list names them.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="Name all experiments, and stop.")] = False,
    quick: Annotated[bool, typer.Option("--quick", help="Slices and few epochs: minutes.")] = False,
    full: Annotated[bool, typer.Option("--full", help="As the paper: 5 seeds, 50 epochs. Days.")] = False,
    seeds: Annotated[int | None, typer.Option(help="Repeat so often; as the size says by default.")] = None,
    datasets: Annotated[
        list[str] | None,
        typer.Option("--datasets", help="On these instead of the paper's; repeatable, or with commas."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Keep everything here.  \\[default: runs/reproduce-SIZE]")
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

    from pres.paper.experiments.executor import LocalProcesses, NoJobs
    from pres.paper.experiments.kept import KeptResults
    from pres.paper.experiments.registry import find
    from pres.paper.experiments.runner import reproduce as run_experiments
    from pres.paper.experiments.size import SIZES
    from pres.paper.report.write import write_report

    if list_:
        show_experiments(as_json)
        return
    if name is None:
        raise OptionError("say which experiment: --list names them, all is all of them.")
    if quick and full:
        raise OptionError("--quick and --full are two sizes: give one.")
    if jobs is not None and jobs < 1:
        raise OptionError(f"--jobs {jobs}: run at least one at a time.")
    experiments = find(name)
    size = SIZES["quick" if quick else "full" if full else "default"]
    named = [each.strip() for given in datasets or [] for each in given.split(",") if each.strip()]
    if datasets and not named:
        raise OptionError("--datasets: name at least one, or leave it out for the paper's.")
    root = out or Path("runs") / f"reproduce-{size.name}"
    flags = [f"--{size.name}"] if size.name != "default" else []
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
                size,
                root,
                NoJobs() if so_far else LocalProcesses(jobs or os.cpu_count() or 1),
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
                "size": size.name,
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


def show_experiments(as_json: bool) -> None:
    """Print the name, the place in the paper and the title of every experiment."""
    from pres.paper.experiments.registry import EXPERIMENTS

    if as_json:
        listed = [{"name": one.name, "where": one.where, "title": one.title} for one in EXPERIMENTS.values()]
        print_json({"experiments": listed})
        return
    for one in EXPERIMENTS.values():
        line = f"{one.name:<18} {one.title} ({one.where})"
        stdout.print(plain(line), highlight=False, soft_wrap=True)


def show_evidence(found: Evidence, root: Path) -> None:
    """Print a table, what it comes to, and what is not in it."""
    from rich.console import Console
    from rich.table import Table

    title = f"\n[bold]{plain(found.name)}: {plain(found.title)}[/] ({plain(found.where)})"
    stdout.print(title, highlight=False, soft_wrap=True)
    stdout.print(plain(found.protocol), highlight=False, soft_wrap=True, style="dim")
    table = Table(box=None)
    for heading, numeric in zip(found.table.headings, found.table.numeric(), strict=True):
        table.add_column(heading.title, justify="right" if numeric else "left", overflow="fold")
    for row in found.table.shown():
        table.add_row(*map(plain, row))
    if found.table.rows:
        # A file has no width: there a row is a line.
        console = stdout if stdout.is_terminal else Console(width=400)
        console.print(table, highlight=False)
    stdout.print(f"The paper: {plain(found.says)}", highlight=False, soft_wrap=True)
    for line in found.findings:
        stdout.print(f"Here: {plain(line)}", highlight=False, soft_wrap=True)
    for figure in found.figures:
        stdout.print(f"Figure: {plain(str(root / 'figures' / figure))}", highlight=False, soft_wrap=True)
    for dataset, how in found.skipped.items():
        stdout.print(f"Skipped: {dataset}. {plain(how)}", highlight=False, soft_wrap=True)
    for job, error in found.failed.items():
        stdout.print(f"[red]Failed:[/] {plain(job)}: {plain(error)}", highlight=False, soft_wrap=True)


def _interrupt(number: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt
