"""`pres update`: a saved run takes in the events that came since."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pres.cli.console import plain, print_json, progress_bar, stdout
from pres.cli.source import AsJson, Debug, Header, RunSource, Separator


def update(
    run: Annotated[Path, typer.Argument(help="The folder of a saved run.")],
    events: Annotated[Path, typer.Argument(help="A file of later events, in your own ids.")],
    event_id: Annotated[
        str | None, typer.Option(help="Column of the events' ids: what was taken in before is left out.")
    ] = None,
    late: Annotated[
        Literal["refuse", "arrival"],
        typer.Option(help="An event earlier than the one before it: refuse all, or take it in at arrival."),
    ] = "refuse",
    header: Header = True,
    separator: Separator = None,
    source: RunSource = None,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, or cuda for a GPU.")] = "cpu",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Let a saved run take in later events with their new nodes, and tell how well it predicted them.

    Each batch is evaluated before memory takes it in. Weights stay as they are. Columns are those that the
    run's events were read from. The run's folder gets a folder in updates/, in one step or not at all.
    """
    from pres.data.tabular.rows import open_table
    from pres.serving.update import NEGATIVES
    from pres.serving.update import update as take_in
    from pres.training.folder import RunFolder

    RunFolder(run).check_usable()  # that there is none is said first
    table = open_table(events, header=header, separator=separator)
    with progress_bar("evaluating events") as progress:
        done = take_in(
            run, table, event_id=event_id, late=late, device=device, source=source, on_batch=progress
        )
    if as_json:
        print_json({"run": str(run)} | done.to_dict())
        return
    seen = done.seen
    told = f"{seen.accepted:,} events taken in, {seen.duplicates:,} known before, {seen.late:,} late"
    stdout.print(plain(f"{told}; {seen.new_nodes:,} new nodes"), highlight=False, soft_wrap=True)
    if done.metrics is not None:
        found = done.metrics
        said = (
            f"before they were taken in: AP {found.ap:.4f}, MRR {found.mrr:.4f} among {NEGATIVES} negatives"
        )
        stdout.print(plain(said), highlight=False, soft_wrap=True)
        stdout.print(plain(f"the update is in {done.folder}"), highlight=False, soft_wrap=True)
