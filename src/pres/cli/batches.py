"""`pres batches`: what larger batches do to one's own stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from pres.cli.console import print_json, say, stderr, stdout, stoppable
from pres.cli.model import ModelName
from pres.cli.source import AsJson, Debug, Source, open_events, reads_events


@reads_events
def batches(
    source: Source,
    model: ModelName = "jodie",
    batch_size: Annotated[int, typer.Option(help="Events per batch of the standard.")] = 200,
    factor: Annotated[int, typer.Option(help="How many times as large the larger batches are.")] = 16,
    epochs: Annotated[int, typer.Option(help="Epochs of each training.")] = 5,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    png: Annotated[Path | None, typer.Option(help="Also draw accuracy against time here.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Train with standard batches, with larger ones, and with --preset large; show what each gives."""
    from pres.figure import check_png
    from pres.tuning.compare import as_table, save_figure, try_batches

    if png is not None:
        check_png(png)
    events = open_events(source, reading)
    with stoppable("stopped. Nothing is kept; the same command begins anew."):
        found = try_batches(
            events,
            model,
            batch_size=batch_size,
            factor=factor,
            epochs=epochs,
            patience=epochs,
            seed=seed,
            progress=stderr.is_terminal,
            on_trial=lambda name: say(f"training {model}: {name} …"),
        )
    if png is not None:
        save_figure(found, png)
        say(f"picture: {png}")
    if as_json:
        print_json({"trials": [trial.to_dict() for trial in found], "png": None if png is None else str(png)})
    else:
        stdout.print(as_table(found))
