"""`pres train`: a model from a stream."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from pres.cli.console import plain, print_json, stderr, stdout
from pres.cli.source import (
    AsJson,
    Bipartite,
    Categories,
    Debug,
    Directed,
    DstColumn,
    Header,
    LabelColumn,
    Separator,
    Source,
    SrcColumn,
    TimeColumn,
    TimeUnit,
    XColumns,
    open_events,
    reading_options,
)
from pres.errors import OptionError, one_line


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
    reading = reading_options(locals())
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
    events = open_events(source, reading).to(device)
    torch.manual_seed(seed)
    made = {"tgn": models.TGN, "jodie": models.JODIE, "apan": models.APAN}[model](events).to(device)
    num_train = len(events.split().train)

    def say(done: EpochResult) -> None:
        left = (epochs - done.epoch) * done.seconds
        stderr.print(
            f"epoch {done.epoch:>3}  loss {done.loss:.4f}  validation AP {done.val.ap:.4f}  "
            f"{num_train / done.seconds:,.0f} events/s  about {left:,.0f} s left",
            highlight=False,
        )

    run = fit(made, events, on_epoch=say, **settings)
    if out is not None:
        run.save(out)
        stderr.print(f"saved: {plain(str(out))}", highlight=False, soft_wrap=True)
    if as_json:
        print_json(run.to_dict() | {"run": None if out is None else str(out)})
    else:
        stdout.print(plain(repr(run)), highlight=False, soft_wrap=True)
