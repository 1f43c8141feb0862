"""`pres evaluate`: how good a trained run is, beside scorers without weights."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import typer

from pres.cli.console import plain, print_json, progress_bar, say, stdout
from pres.cli.source import AsJson, Debug, RunSource
from pres.errors import check_choice
from pres.storage import write_json

if TYPE_CHECKING:
    from rich.console import Group
    from rich.table import Table

    from pres.evaluation.compare import Comparison, ComparisonRow
    from pres.sampling.negatives import NegativeStrategy


def evaluate(
    run: Annotated[Path, typer.Argument(help="The folder of a saved run.")],
    negatives: Annotated[
        int,
        typer.Option(help="Negatives that an event is ranked among; AP and AUC go by the first."),
    ] = 100,
    out: Annotated[
        Path | None, typer.Option(help="Also keep everything here, as JSON; `pres report` shows it.")
    ] = None,
    part: Annotated[Literal["test", "val"], typer.Option(help="Which part of the stream.")] = "test",
    strategy: Annotated[
        list[str] | None,
        typer.Option(help="Negatives: random, historical or inductive; repeatable. All three by default."),
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Events per batch.  \\[default: as the run was evaluated with]")
    ] = None,
    staleness: Annotated[
        Literal["both", "batch", "0"],
        typer.Option(
            help="batch: predict from memory at the start of each batch, as the field does; 0: from memory "
            "after all strictly earlier events. 0 is slow for a model without cell=scan."
        ),
    ] = "both",
    seed: Annotated[int | None, typer.Option(help="Of the negatives; the run's by default.")] = None,
    baselines: Annotated[bool, typer.Option(help="Score EdgeBank and popularity too?")] = True,
    source: RunSource = None,
    device: Annotated[str, typer.Option(help="Where to compute: cpu, or cuda for a GPU.")] = "cpu",
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Evaluate a saved run's model under several kinds of negatives, beside EdgeBank and popularity.

    Every figure is given at two values of staleness, which are not comparable with each other.
    """
    how = part, strategy, negatives, batch_size, staleness, seed
    comparison = evaluated(run, *how, baselines=baselines, source=source, device=device)
    result = about(run, comparison)
    if out is not None:
        keep(result, out)
    if as_json:
        print_json(result)
    else:
        stdout.print(as_tables(comparison), highlight=False)


def evaluated(
    run: Path,
    part: Literal["test", "val"] = "test",
    strategy: list[str] | None = None,
    negatives: int = 100,
    batch_size: int | None = None,
    staleness: Literal["both", "batch", "0"] = "both",
    seed: int | None = None,
    *,
    baselines: bool = True,
    source: str | None = None,
    device: str = "cpu",
) -> Comparison:
    """Return a saved run beside the baselines; see the flags of `evaluate`."""
    from pres.evaluation.compare import STRATEGIES, compare
    from pres.training.config import FitConfig
    from pres.training.opened import open_run
    from pres.training.step import arithmetic

    for name in strategy or ():
        check_choice("--strategy", name, STRATEGIES)  # what cannot be is said before anything is read
    opened = open_run(run, device, source)
    settings = opened.config
    computing = arithmetic(opened.model.memory.device, settings["precision"])
    with computing, progress_bar("evaluating") as on_progress:
        return compare(
            opened.model,
            opened.events,
            part,
            strategies=cast("list[NegativeStrategy]", strategy) or STRATEGIES,
            negatives=negatives,
            batch_size=settings["eval_batch_size"] if batch_size is None else batch_size,
            seed=settings["seed"] if seed is None else seed,
            staleness=0 if staleness == "0" else staleness,
            pool=FitConfig.of(settings).pool,
            anew=settings["protocol"] == "tgl",
            baselines=baselines,
            on_progress=on_progress,
        )


def about(run: Path, comparison: Comparison) -> dict[str, Any]:
    """Return an evaluation as plain values, with the run and the epoch of its weights."""
    from pres.training.folder import RunFolder

    return {"run": str(run), "best_epoch": RunFolder(run).best_epoch()} | comparison.to_dict()


def keep(result: dict[str, Any], out: Path) -> None:
    """Write an evaluation as JSON, and say where."""
    write_json(out, result)
    say(f"evaluation: {out}")


def as_tables(comparison: Comparison) -> Group:
    """Return the comparison as rich tables, one for each kind of negatives at each staleness."""
    from rich.columns import Columns
    from rich.console import Group

    strategies = dict.fromkeys(row.strategy for row in comparison.rows)
    levels = dict.fromkeys(row.staleness for row in comparison.rows)
    # Beside each other where there is room; apart, as figures at different staleness are not comparable.
    tables = [
        Columns([_table(comparison, strategy, level) for level in levels], padding=(1, 4))
        for strategy in strategies
    ]
    return Group(
        plain(_title(comparison)), *(line for table in tables for line in ("", table)), "", _notes(comparison)
    )


def _title(comparison: Comparison) -> str:
    variant = "" if comparison.variant is None else f" ({comparison.variant})"
    part = "test" if comparison.part == "test" else "validation"
    return (
        f"{comparison.model} on {comparison.dataset}{variant}, {part} part: {comparison.events:,} events "
        f"from {comparison.begins} to {comparison.ends}, batches of {comparison.batch_size:,}, seed "
        f"{comparison.seed}"
    )


def _table(comparison: Comparison, strategy: NegativeStrategy, staleness: int) -> Table:
    from pres.tables import table

    rows = [row for row in comparison.rows if (row.strategy, row.staleness) == (strategy, staleness)]
    if not _grouped(rows):
        rows = [row for row in rows if row.group == "all"]
    shares = {row.group: row.fallback_share for row in rows}  # the same for every scorer
    fallback = ", ".join(f"{group} {share:.1%}" for group, share in shares.items() if share is not None)
    title = f"{strategy} negatives, staleness {staleness:,}"
    title += "" if strategy == "random" else f" (fallback: {fallback})"
    # Fewer than k negatives cannot push an event out of the first k.
    hits = [k for k in (1, 3, 10) if k <= comparison.negatives]
    names = ("scorer", "group", "events", "AP", "AUC", "MRR", *(f"Hits@{k}" for k in hits))
    cells = [(row.scorer if row.group == "all" else "", row.group, *_values(row, hits)) for row in rows]
    return table(names, cells, left=names[:2], title=title, collapse_padding=True)


def _grouped(rows: Sequence[ComparisonRow]) -> bool:
    """Return whether there are seen and unseen events; if all are one of them, the groups say nothing."""
    return all(row.metrics is not None for row in rows)


def _values(row: ComparisonRow, hits: list[int]) -> list[str]:
    found = row.metrics
    assert found is not None
    figures = [found.ap, found.auc, found.mrr, *(getattr(found, f"hits_{k}") for k in hits)]
    return [f"{found.events:,}", *(f"{figure:.4f}" for figure in figures)]


def _meaning(staleness: int) -> str:
    if staleness == 0:
        return "an event is predicted from the state after all strictly earlier events"
    return f"an event is predicted from the state at the start of its group of {staleness:,} events"


def _notes(comparison: Comparison) -> Table:
    from pres.tables import listed

    table = listed(pad_edge=False)
    which = "" if comparison.pool == "nodes" else " that are a destination anywhere in the stream"
    for level in dict.fromkeys(row.staleness for row in comparison.rows):
        table.add_row(f"staleness {level:,}", _meaning(level))
    table.add_row("", "never set figures at different staleness against each other")
    table.add_row("pool", f"the {comparison.pool_size:,} nodes{which}")
    table.add_row("fallback", "negatives from the pool, because the source's history had none left")
    if _grouped(comparison.rows):
        table.add_row("seen", "both endpoints occur in the training part; unseen: at least one does not")
    count = "1 negative" if comparison.negatives == 1 else f"{comparison.negatives:,} negatives"
    table.add_row("AP, AUC", "against 1 negative per event, as the field does")
    table.add_row("MRR, Hits", f"by an event's rank among its own {count}; one tied with it counts half")
    as_given = comparison.memory == "as given"
    replayed = "replayed from the stream's first event to the part, with the trained weights"
    table.add_row("memory", "as the run left it just before the part" if as_given else replayed)
    if comparison.window is not None:
        table.add_row("window", "EdgeBank (window) remembers as long as the part is")
    return table
