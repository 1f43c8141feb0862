"""`pres theory`: what the paper proves, measured."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from pres.cli.console import print_json, say, stderr, stdout
from pres.cli.model import AnyModel, ModelName
from pres.cli.source import AsJson, Debug, Source, reads_events
from pres.cli.subject import Subject, chosen_subject, made_subject

if TYPE_CHECKING:
    from pres.paper.theory.measured import Result

app = typer.Typer(help="Measure what the paper proves.", no_args_is_help=True)

Png = Annotated[Path | None, typer.Option(help="Also draw the result as a picture here.")]
ModelOption = Annotated[
    list[str] | None,
    typer.Option("--option", "-o", help="An option of the model, as memory_dim=64; repeatable."),
]
Draws = Annotated[int, typer.Option(help="How often negatives are drawn, at least twice.")]
Events = Annotated[
    int | None,
    typer.Option("--events", help="Measure on so many events from the beginning of the training part."),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same numbers.")]
Device = Annotated[str, typer.Option(help="Where to compute: cpu, or cuda for a GPU.")]


def _on_a_model(
    source: Annotated[
        str | None,
        typer.Argument(help="A file of events, a store's folder or a dataset's name; not with --run."),
    ] = None,
    run: Annotated[
        Path | None, typer.Option(help="Take model, weights and events of this saved run.")
    ] = None,
    model: AnyModel = None,
    option: ModelOption = None,
    epochs: Annotated[
        int | None, typer.Option(help="Epochs to train before measuring; 0: none.  \\[default: 1]")
    ] = None,
    lr: Annotated[
        float | None, typer.Option(help="Learning rate of that training.  \\[default: 0.001]")
    ] = None,
    beta: Annotated[
        float | None, typer.Option(help="Weight of the coherence objective in that training.")
    ] = None,
    train_batch_size: Annotated[int, typer.Option(help="Events per batch of that training.")] = 200,
    batch_size: Annotated[
        list[int] | None,
        typer.Option(help="A batch size to measure at; repeatable. Several by default, as they fit."),
    ] = None,
    limit: Events = None,
    seed: Seed = 0,
    device: Device = "cpu",
    png: Png = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """The options of every measurement at the weights of a model."""


def measures(example: str, *, batches: int = 1) -> Callable[[Callable[..., Any]], None]:
    """Return what makes a command of a measurement at the weights of a model: one new, trained or saved.

    It gets the ``subject``, what to measure ``on`` (batch sizes, limit, progress) and its own options.
    ``batches`` of the largest size must fit the events that are measured on.
    """

    def register(measure: Callable[..., Any]) -> None:
        common = inspect.signature(_on_a_model, eval_str=True).parameters
        own = inspect.signature(measure, eval_str=True).parameters

        def command(*, reading: dict[str, Any], **given: Any) -> None:
            check_picture(given["png"])
            from pres.smoothing import PRES

            smoothing = PRES(beta=given["beta"], filter=False) if given["beta"] else None
            making = {name: given[name] for name in ("model", "option", "epochs", "lr")}
            seed, limit, sizes = given["seed"], given["limit"], given["batch_size"] or None
            subject = chosen_subject(
                given["source"],
                given["run"],
                reading,
                making | {"smoothing": smoothing},
                given["train_batch_size"],
                seed,
                given["device"],
                limit,
                needed=batches * max(sizes or [0]),
            )
            on = {"batch_sizes": sizes, "limit": limit, "weights": subject.weights}
            options = {name: given[name] for name in own if name in given}
            found = measure(subject, on | {"progress": stderr.is_terminal}, **options)
            show(found, given["png"], given["as_json"])

        further = [p for name, p in own.items() if name not in ("subject", "on") and name not in common]
        read = inspect.Parameter("reading", inspect.Parameter.KEYWORD_ONLY)
        command.__signature__ = inspect.Signature([*common.values(), *further, read])  # type: ignore[attr-defined]
        command.__name__, command.__doc__ = measure.__name__, measure.__doc__
        app.command(epilog=f"Example: pres theory {example}")(reads_events(command))

    return register


def check_picture(png: Path | None) -> None:
    """Raise, before anything is measured, if no picture can be written there."""
    from pres.figure import check_png

    if png is not None:
        check_png(png)


def show(found: Result, png: Path | None, as_json: bool) -> None:
    """Print the result as JSON or as tables, and draw it if asked."""
    if as_json:
        print_json(found.to_dict() | {"png": None if png is None else str(png)})
    else:
        stdout.print(found.shown(), highlight=False)
    if png is not None:
        found.save_png(png)
        say(f"picture: {png}")


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

    system = {"drift": drift, "spread": spread, "nodes": nodes, "steps": steps}
    progress = stderr.is_terminal
    found = state_space_errors(noise or NOISES, missing or MISSING, seeds=seeds, progress=progress, **system)
    show(found, png, as_json)


@measures("variance wikipedia --model tgn --events 20000 --png variance.png")
def variance(subject: Subject, on: dict[str, Any], draws: Draws = 8, seed: Seed = 0) -> Any:
    """Theorem 1: the variance of the gradient over the draw of negatives, against the batch size."""
    from pres.paper.theory.variance import gradient_variance

    return gradient_variance(subject.model, subject.events, **on, draws=draws, seed=seed)


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
    show(found, png, as_json)


@measures("coherence mooc --model jodie --batch-size 800 --samples 500")
def coherence(
    subject: Subject,
    on: dict[str, Any],
    samples: Annotated[int, typer.Option(help="Events to sample at each batch size.")] = 500,
    fresh: Annotated[
        Literal["before", "after"], typer.Option(help="Whether fresh memory knows the event itself.")
    ] = "after",
    wrt: Annotated[Literal["memory", "parameters"], typer.Option(help="What gradients are by.")] = "memory",
    seed: Seed = 0,
) -> Any:
    """Definition 3: whether gradients at an older memory lead where those at a fresh one do."""
    from pres.paper.theory.coherence import memory_coherence

    options = {"samples": samples, "seed": seed} | on
    return memory_coherence(subject.model, subject.events, fresh=fresh, wrt=wrt, **options)


@measures("distance uci --model tgn --json", batches=2)
def distance(
    subject: Subject,
    on: dict[str, Any],
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
        bool, typer.Option("--carried", help="Let each variant go on from its own memory, as training does.")
    ] = False,
) -> Any:
    """How far a batch leaves memory from the exact one: standard, and with a filter."""
    from pres.paper.theory.distance import DELTAS, DISCOUNTS, GAMMAS, candidates, distance_to_exact

    filters = candidates(delta or DELTAS, gamma or GAMMAS, discount or DISCOUNTS)
    return distance_to_exact(subject.model, subject.events, configurations=filters, carried=carried, **on)
