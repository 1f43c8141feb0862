"""`pres theory`: what the paper proves, measured."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol

import typer

from pres.cli.console import print_json, say, stderr, stdout
from pres.cli.model import AnyModel, ModelName
from pres.cli.source import AsJson, Debug, Source, reads_events
from pres.cli.subject import chosen_subject, made_subject

if TYPE_CHECKING:
    from rich.console import RenderableType

app = typer.Typer(help="Measure what the paper proves.", no_args_is_help=True)

Png = Annotated[Path | None, typer.Option(help="Also draw the result as a picture here.")]
ModelOption = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="An option of the model, as memory_dim=64; repeatable."),
]
SourceOrRun = Annotated[
    str | None, typer.Argument(help="A file of events, a store's folder or a dataset's name; not with --run.")
]
SavedRun = Annotated[Path | None, typer.Option(help="Take model, weights and events of this saved run.")]
Epochs = Annotated[
    int | None, typer.Option(help="Epochs to train before measuring; 0: none.  \\[default: 1]")
]
LearningRate = Annotated[
    float | None, typer.Option(help="Learning rate of that training.  \\[default: 0.001]")
]
TrainBatchSize = Annotated[int, typer.Option(help="Events per batch of that training.")]
Draws = Annotated[int, typer.Option(help="How often negatives are drawn, at least twice.")]
Events = Annotated[
    int | None,
    typer.Option("--events", help="Measure on so many events from the beginning of the training part."),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, or cuda for a GPU.")]


class Result(Protocol):
    """What every measurement gives."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        ...

    def save_png(self, path: str | Path) -> Path:
        """Draw it at ``path``."""
        ...


@app.command(
    name="state-space", epilog="Example: pres theory state-space --noise 0.5 --noise 2 --png errors.png"
)
def state_space(
    noise: Annotated[
        list[float] | None, typer.Option(help="Standard deviation of a measurement; repeatable.")
    ] = None,
    missing: Annotated[
        list[int] | None, typer.Option(help="Transitions that a measurement leaves out; repeatable.")
    ] = None,
    drift: Annotated[float, typer.Option(help="Mean rate of a transition.")] = 1.0,
    spread: Annotated[float, typer.Option(help="Standard deviation of that rate.")] = 0.5,
    nodes: Annotated[int, typer.Option(help="Nodes to simulate.")] = 30,
    steps: Annotated[int, typer.Option(help="Steps of each node.")] = 50,
    seeds: Annotated[int, typer.Option(help="Independent simulations.")] = 20,
    png: Png = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Proposition 1: how near STANDARD and PRES are to the true state of a simulated linear system."""
    check_picture(png)
    from pres.paper.theory.state_space import MISSING, NOISES, state_space_errors
    from pres.paper.theory.tables import state_space_table

    found = state_space_errors(
        noise or NOISES,
        missing or MISSING,
        seeds=seeds,
        progress=stderr.is_terminal,
        drift=drift,
        spread=spread,
        nodes=nodes,
        steps=steps,
    )
    show(found, state_space_table(found), png, as_json)


@app.command(epilog="Example: pres theory variance wikipedia --model tgn --events 20000 --png variance.png")
@reads_events
def variance(
    source: SourceOrRun = None,
    run: SavedRun = None,
    model: AnyModel = None,
    option: ModelOption = None,
    epochs: Epochs = None,
    lr: LearningRate = None,
    train_batch_size: TrainBatchSize = 200,
    batch_size: Annotated[
        list[int] | None,
        typer.Option(help="A batch size to measure at; repeatable. 100 to 1,600 by default."),
    ] = None,
    draws: Draws = 8,
    limit: Events = None,
    seed: Seed = 0,
    device: Device = "cpu",
    png: Png = None,
    as_json: AsJson = False,
    debug: Debug = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Theorem 1: the variance of the gradient over the draw of negatives, against the batch size."""
    check_picture(png)
    from pres.paper.theory.tables import variance_tables
    from pres.paper.theory.variance import gradient_variance

    subject = chosen_subject(
        source,
        run,
        reading,
        {"model": model, "option": option, "epochs": epochs, "lr": lr},
        train_batch_size,
        seed,
        device,
        limit,
        needed=max(batch_size or [0]),
    )
    found = gradient_variance(
        subject.model,
        subject.events,
        batch_size or None,
        draws=draws,
        limit=limit,
        seed=seed,
        weights=subject.weights,
        progress=stderr.is_terminal,
    )
    show(found, variance_tables(found), png, as_json)


@app.command(epilog="Example: pres theory convergence wikipedia --model jodie --mu 0.2 --epochs 5 --json")
@reads_events
def convergence(
    source: Source,
    model: ModelName = "tgn",
    option: ModelOption = None,
    mu: Annotated[
        float | None, typer.Option(help="Lower bound of memory coherence, μ; measured if it is not given.")
    ] = None,
    samples: Annotated[int, typer.Option(help="Events to measure μ on, before and after training.")] = 200,
    batch_size: Annotated[int, typer.Option(help="Events per batch.")] = 200,
    epochs: Annotated[int, typer.Option(help="Epochs of each training, T.")] = 3,
    lr: Annotated[float, typer.Option(help="Learning rate of the training by Adam.")] = 1e-3,
    draws: Draws = 8,
    curvature_batches: Annotated[int, typer.Option(help="Batches to measure the curvature on.")] = 4,
    iterations: Annotated[int, typer.Option(help="Power iterations for the curvature.")] = 20,
    limit: Events = None,
    seed: Seed = 0,
    device: Device = "cpu",
    png: Png = None,
    as_json: AsJson = False,
    debug: Debug = False,
    *,
    reading: dict[str, Any],
) -> None:
    """Theorem 2: the terms of its bound along plain SGD at its own step size, and along Adam.

    The bound has 1 + log T where the paper prints log T: the proof needs an upper bound of the sum of 1/t
    over T epochs, and log T is below that sum.
    """
    check_picture(png)
    from pres.paper.theory.convergence import convergence_terms
    from pres.paper.theory.tables import convergence_table

    subject = made_subject(source, reading, model, option, seed, device)
    found = convergence_terms(
        subject.model,
        subject.events,
        batch_size=batch_size,
        epochs=epochs,
        lr=lr,
        mu=mu,
        samples=samples,
        draws=draws,
        curvature_batches=curvature_batches,
        iterations=iterations,
        limit=limit,
        seed=seed,
        weights=f"new (seed {seed}), trained for {epochs} epochs",
        progress=stderr.is_terminal,
    )
    show(found, convergence_table(found), png, as_json)


def check_picture(png: Path | None) -> None:
    """Raise, before anything is measured, if no picture can be written there."""
    from pres.figure import check_png

    if png is not None:
        check_png(png)


def show(found: Result, tables: RenderableType, png: Path | None, as_json: bool) -> None:
    """Print the result as JSON or as tables, and draw it if asked."""
    if as_json:
        print_json(found.to_dict() | {"png": None if png is None else str(png)})
    else:
        stdout.print(tables, highlight=False)
    if png is not None:
        found.save_png(png)
        say(f"picture: {png}")
