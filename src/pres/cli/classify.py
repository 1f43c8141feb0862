"""`pres classify`: how well a trained run's embeddings tell the labels of its events."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pres.cli.console import plain, print_json, say, stderr, stdout
from pres.cli.source import AsJson, Debug, RunSource

if TYPE_CHECKING:
    import polars as pl
    from rich.console import Group

    from pres.data.stream import EventStream
    from pres.evaluation.nodes import Classification


def classify(
    run: Annotated[Path, typer.Argument(help="The folder of a saved run.")],
    out: Annotated[
        Path | None, typer.Option(help="Write the score of every event here (.csv, .tsv, .parquet).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the file if it exists.")] = False,
    decoder: Annotated[
        Path | None,
        typer.Option(help="Keep the decoder's weights here (.safetensors), for `pres.nn.NodeDecoder`."),
    ] = None,
    epochs: Annotated[int, typer.Option(help="Epochs of the decoder; the best on validation counts.")] = 20,
    lr: Annotated[float, typer.Option(help="Learning rate of the decoder.")] = 5e-4,
    seed: Annotated[int, typer.Option(help="Of the decoder: the same seed gives the same numbers.")] = 0,
    batch_size: Annotated[int, typer.Option(help="Events per batch of the replay.")] = 200,
    with_features: Annotated[
        bool, typer.Option("--with-features", help="Let the decoder read the event's own features too.")
    ] = False,
    source: RunSource = None,
    device: Annotated[str, typer.Option(help="Where to replay: cpu, or cuda for a GPU.")] = "cpu",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Classify the sources of a saved run's events by their labels, from what they did before.

    The run's model stays as it is; a small decoder learns from its embeddings. A score is the probability of
    a label, at the rates of the training part.
    """
    import torch
    from rich.progress import Progress

    from pres.data.tabular.write import check_new, write_table
    from pres.evaluation.nodes import classify as run_classification
    from pres.training.checkpoint import save_tensors
    from pres.training.folder import RunFolder
    from pres.training.opened import open_run
    from pres.training.step import arithmetic

    RunFolder(run).check_usable()  # that there is none is said first
    if out is not None:
        check_new(out, overwrite)
    opened = open_run(run, device, source)
    with (
        Progress(console=stderr, transient=True, disable=not stderr.is_terminal) as progress,
        arithmetic(torch.device(device), opened.config["precision"]),
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
    if out is not None:
        write_table(scored(found, opened.events), out, overwrite)
        say(f"scores: {out}")
    if decoder is not None:
        about = {"classes": found.classes, "with_features": with_features}
        save_tensors(decoder, found.decoder.state_dict(), about)
        say(f"decoder: {decoder}")
    if as_json:
        print_json({"run": str(run)} | found.to_dict())
    else:
        stdout.print(as_tables(found), highlight=False)


def scored(found: Classification, events: EventStream) -> pl.DataFrame:
    """Return every event with its part, its label and its score: of two labels that of the larger."""
    import polars as pl

    sizes = zip(("train", "val", "test"), events.split(), strict=True)
    assert events.label is not None
    columns = {
        "src": events.ids.decode(events.src),
        "dst": events.ids.decode(events.dst),
        "t": pl.Series([events.time_text(t) for t in events.t.tolist()])
        if events.info.dates
        else pl.Series(events.t.cpu().numpy()),
        "part": pl.Series([name for name, part in sizes for _ in range(len(part))]),
        "label": pl.Series(events.label.cpu().numpy()),
    }
    if found.labels == "binary":
        columns["score"] = pl.Series(found.scores[:, 1].numpy())
    else:
        columns |= {f"score_{c}": pl.Series(found.scores[:, i].numpy()) for i, c in enumerate(found.classes)}
    return pl.DataFrame(columns)


def as_tables(found: Classification) -> Group:
    """Return the result as a rich table, with what it rests on around it."""
    from rich.console import Group

    from pres.tables import listed, table

    variant = "" if found.variant is None else f" ({found.variant})"
    title = (
        f"{found.model} on {found.dataset}{variant}: {found.labels} labels of the source, "
        f"decoder of epoch {found.best_epoch} of {found.epochs}, seed {found.seed}"
    )
    binary = found.labels == "binary"
    measured = ("ROC-AUC", "AP", "baseline ROC-AUC", "baseline AP")
    names = ("part", "events", f"label {found.classes[1]}" if binary else "classes", *measured)
    rows = []
    for name, part, baseline in (
        ("training", found.train, None),
        ("validation", found.val, found.baseline_val),
        ("test", found.test, found.baseline_test),
    ):
        held = sum(count > 0 for count in part.counts) if part.positives is None else part.positives
        others = ("", "") if baseline is None else (f"{baseline.auc:.4f}", f"{baseline.ap:.4f}")
        rows.append((name, f"{part.events:,}", f"{held:,}", f"{part.auc:.4f}", f"{part.ap:.4f}", *others))
    notes = listed(pad_edge=False)
    weights = [f"{w:.4g} for label {c}" for c, w in zip(found.classes, found.class_weights, strict=True)]
    shown = ", ".join(weights if len(weights) <= 5 else [*weights[:5], "…"])
    notes.add_row("weights", f"{shown}: in training all labels count alike")
    if binary:
        rate = found.test.counts[1] / found.test.events
        notes.add_row(
            "scores",
            f"probabilities at the rates of the training part; on average {found.mean_scores[1]:.2%} in the "
            f"test part, where {rate:.2%} have label {found.classes[1]}",
        )
    notes.add_row("baseline", "how often the source had the label in the training part")
    read = "the source's embedding before the event"
    notes.add_row("read", f"{read}, and the event's features" if found.with_features else read)
    notes.add_row("replay", f"from the stream's first event, weights frozen, batches of {found.batch_size:,}")
    if not binary:
        notes.add_row("figures", "each label against all others, averaged over those that the part holds")
    return Group(plain(title), "", table(names, rows, left=("part",)), "", notes)
