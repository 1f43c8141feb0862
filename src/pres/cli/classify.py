"""`pres classify`: how well a trained run's embeddings tell the labels of its events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pres.cli.console import plain, print_json, say, stderr, stdout
from pres.cli.source import AsJson, Debug
from pres.errors import StorageError
from pres.storage import write_whole

if TYPE_CHECKING:
    from rich.console import Group

    from pres.evaluation.nodes import Classification


def classify(
    run: Annotated[Path, typer.Argument(help="The folder of a saved run.")],
    epochs: Annotated[int, typer.Option(help="Epochs of the decoder; the best on validation counts.")] = 20,
    lr: Annotated[float, typer.Option(help="Learning rate of the decoder.")] = 5e-4,
    seed: Annotated[int, typer.Option(help="Of the decoder: the same seed gives the same numbers.")] = 0,
    batch_size: Annotated[int, typer.Option(help="Events per batch of the replay.")] = 200,
    with_features: Annotated[
        bool, typer.Option("--with-features", help="Let the decoder read the event's own features too.")
    ] = False,
    device: Annotated[str, typer.Option(help="Where to replay: cpu, or cuda for a GPU.")] = "cpu",
    out: Annotated[Path | None, typer.Option(help="Also write the result here, as JSON.")] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Classify the sources of a saved run's events by their labels, from what they did before.

    The run's model stays as it is; a small decoder learns from its embeddings.
    """
    import torch
    from rich.progress import Progress

    from pres.evaluation.nodes import classify as run_classification
    from pres.training.opened import open_run
    from pres.training.step import arithmetic

    if out is not None and out.exists():
        raise StorageError(f"{out} exists already. Choose another name, or remove it first.")
    opened = open_run(run, device)
    with (
        Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as progress,
        arithmetic(torch.device(device), opened.run.config["precision"]),
    ):
        replay = progress.add_task("replaying events", total=len(opened.events))
        learning = progress.add_task("training the decoder", total=epochs)
        found = run_classification(
            opened.model,
            opened.events,
            epochs=epochs,
            lr=lr,
            batch_size=batch_size,
            seed=seed,
            with_features=with_features,
            on_progress=lambda done, _: progress.update(replay, completed=done),
            on_epoch=lambda done: progress.update(learning, completed=done.epoch),
        )
    result = {"run": str(run)} | found.to_dict()
    if out is not None:
        write_whole(out, lambda path: path.write_text(json.dumps(result, indent=2) + "\n"))
        say(f"result: {out}")
    if as_json:
        print_json(result)
    else:
        stdout.print(as_tables(found), highlight=False)


def as_tables(found: Classification) -> Group:
    """Return the result as a rich table, with what it rests on around it."""
    from rich.console import Group
    from rich.table import Table

    variant = "" if found.variant is None else f" ({found.variant})"
    title = (
        f"{found.model} on {found.dataset}{variant}: {found.labels} labels of the source, "
        f"decoder of epoch {found.best_epoch} of {found.epochs}, seed {found.seed}"
    )
    binary = found.labels == "binary"
    table = Table(box=None, pad_edge=False)
    table.add_column("part")
    for name in ("events", f"label {found.classes[1]}" if binary else "classes", "ROC-AUC", "AP"):
        table.add_column(name, justify="right")
    for name, part in (("training", found.train), ("validation", found.val), ("test", found.test)):
        held = sum(count > 0 for count in part.counts) if part.positives is None else part.positives
        table.add_row(name, f"{part.events:,}", f"{held:,}", f"{part.auc:.4f}", f"{part.ap:.4f}")
    notes = Table(show_header=False, box=None, pad_edge=False)
    notes.add_column(style="dim")
    notes.add_column()
    weights = [f"{w:.4g} for label {c}" for c, w in zip(found.classes, found.class_weights, strict=True)]
    shown = ", ".join(weights if len(weights) <= 5 else [*weights[:5], "…"])
    notes.add_row("weights", f"{shown}: all labels of the training part count alike")
    read = "the source's embedding before the event"
    notes.add_row("read", f"{read}, and the event's features" if found.with_features else read)
    notes.add_row("replay", f"from the stream's first event, weights frozen, batches of {found.batch_size:,}")
    if not binary:
        notes.add_row("figures", "each label against all others, averaged over those that the part holds")
    return Group(plain(title), "", table, "", notes)
