"""`pres theory coherence` and `pres theory distance`: what a batch does to memory, beside the exact one."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from pres.cli.console import stderr
from pres.cli.model import AnyModel
from pres.cli.source import AsJson, Debug, reads_events
from pres.cli.subject import chosen_subject
from pres.cli.theory import (
    Device,
    Epochs,
    Events,
    LearningRate,
    ModelOption,
    Png,
    SavedRun,
    Seed,
    SourceOrRun,
    TrainBatchSize,
    check_picture,
    show,
)


@reads_events
def coherence(
    source: SourceOrRun = None,
    run: SavedRun = None,
    model: AnyModel = None,
    option: ModelOption = None,
    epochs: Epochs = None,
    lr: LearningRate = None,
    beta: Annotated[
        float | None, typer.Option(help="Weight of the coherence objective in that training.")
    ] = None,
    train_batch_size: TrainBatchSize = 200,
    batch_size: Annotated[
        list[int] | None,
        typer.Option(help="A batch size to measure at; repeatable. 200 to 3,200 by default."),
    ] = None,
    samples: Annotated[int, typer.Option(help="Events to sample at each batch size.")] = 500,
    fresh: Annotated[
        Literal["before", "after"], typer.Option(help="Whether fresh memory knows the event itself.")
    ] = "after",
    wrt: Annotated[Literal["memory", "parameters"], typer.Option(help="What gradients are by.")] = "memory",
    limit: Events = None,
    seed: Seed = 0,
    device: Device = "cpu",
    png: Png = None,
    as_json: AsJson = False,
    debug: Debug = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Definition 3: whether gradients at an older memory lead where those at a fresh one do."""
    check_picture(png)
    from pres.paper.theory.coherence import memory_coherence
    from pres.paper.theory.tables import coherence_table
    from pres.smoothing import PRES

    smoothing = PRES(beta=beta, filter=False) if beta else None
    subject = chosen_subject(
        source,
        run,
        reading,
        {"model": model, "option": option, "epochs": epochs, "lr": lr, "smoothing": smoothing},
        train_batch_size,
        seed,
        device,
        limit,
        needed=max(batch_size or [0]),
    )
    found = memory_coherence(
        subject.model,
        subject.events,
        batch_size or None,
        fresh=fresh,
        wrt=wrt,
        samples=samples,
        limit=limit,
        seed=seed,
        weights=subject.weights,
        progress=stderr.is_terminal,
    )
    show(found, coherence_table(found), png, as_json)


@reads_events
def distance(
    source: SourceOrRun = None,
    run: SavedRun = None,
    model: AnyModel = None,
    option: ModelOption = None,
    epochs: Epochs = None,
    lr: LearningRate = None,
    train_batch_size: TrainBatchSize = 200,
    batch_size: Annotated[
        list[int] | None,
        typer.Option(help="A batch size to measure at; repeatable. 200 to 6,400 by default."),
    ] = None,
    delta: Annotated[
        list[str] | None,
        typer.Option(
            help="What filters to choose from may track: rate, step, innovation or residual; repeatable. All "
            "by default."
        ),
    ] = None,
    gamma: Annotated[
        list[float] | None,
        typer.Option(help="And the weight of the measurement in them; repeatable. 0.3 to 0.9 by default."),
    ] = None,
    discount: Annotated[
        list[float] | None,
        typer.Option(
            help="And what a transition counts for after each further one of its node; below 1 the best is "
            "chosen apart; repeatable. 1, 0.5, 0.8, 0.9 and 0.95 by default."
        ),
    ] = None,
    carried: Annotated[
        bool, typer.Option("--carried", help="Let each way go on from its own memory, as training does.")
    ] = False,
    limit: Events = None,
    seed: Seed = 0,
    device: Device = "cpu",
    png: Png = None,
    as_json: AsJson = False,
    debug: Debug = False,
    *,
    reading: dict[str, Any],
) -> None:
    """How far a batch leaves memory from the exact one: standard, and with a filter."""
    check_picture(png)
    from pres.paper.theory.candidates import DELTAS, DISCOUNTS, GAMMAS, candidates
    from pres.paper.theory.distance import distance_to_exact
    from pres.paper.theory.tables import distance_table

    configurations = candidates(delta or DELTAS, gamma or GAMMAS, discount or DISCOUNTS)
    subject = chosen_subject(
        source,
        run,
        reading,
        {"model": model, "option": option, "epochs": epochs, "lr": lr},
        train_batch_size,
        seed,
        device,
        limit,
        needed=2 * max(batch_size or [0]),
    )
    found = distance_to_exact(
        subject.model,
        subject.events,
        batch_size or None,
        configurations=configurations,
        carried=carried,
        limit=limit,
        weights=subject.weights,
        progress=stderr.is_terminal,
    )
    show(found, distance_table(found), png, as_json)
