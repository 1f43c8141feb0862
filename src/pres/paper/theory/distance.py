"""Distance to the oracle: how far a batch leaves memory from where its events, one by one, would have.

    ‖s_batch − s_exact‖ / ‖s_exact − s_start‖   for each node of a batch

``s_start`` is the exact memory before the batch and ``s_exact`` that after it, taken in order; ``s_batch`` is
what the standard update makes of it (one per node, by its last event), and what a filter makes of that. 0 is
the exact memory, and 1 is as far off as a memory that did not move. All at the same weights.

Either every variant begins each batch with the exact memory, which asks what one batch loses; or each is
carried along by itself, as training does, which asks how losses add up.

A filter's trackers know nothing at first. They learn along an earlier slice of the stream, on which the best
of several configurations is chosen by its mean distance; it is reported on the later slice, where its
trackers go on observing, each transition after it was corrected. They follow events alone: no negatives are
drawn. Filters that discount earlier transitions are chosen from apart from those that do not.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import polars as pl
import torch
from matplotlib.axes import Axes
from rich.console import Group
from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import DivergedError, OptionError
from pres.figure import FIRST, GREY, SECOND, THIRD, batch_size_axis
from pres.models import MDGNN
from pres.paper.theory.exact import carried, resynchronised
from pres.paper.theory.gradients import training_part, whole_batches
from pres.paper.theory.measured import Measured, about, number, tracked
from pres.sampling import TemporalBatches
from pres.smoothing import PRES, Smoothing
from pres.tables import table
from pres.training.trainer import smoothing_for

Kind = Literal["standard", "own filter", "chosen filter", "discounted filter"]
BATCH_SIZES = (200, 400, 800, 1600, 3200, 6400)
DELTAS = ("rate", "step", "innovation", "residual")
GAMMAS = (0.3, 0.5, 0.7, 0.9)
DISCOUNTS = (1.0, 0.5, 0.8, 0.9, 0.95)  # 1: all transitions count alike
COLOURS = {"standard": GREY, "chosen filter": FIRST, "discounted filter": THIRD, "own filter": SECOND}
MOVED = 1e-6  # of the median movement: a node that moved less did not move


@dataclass(frozen=True)
class DistanceRow:
    """The distances to the exact memory at one batch size, by one variant, on the later slice."""

    batch_size: int
    batches: int  # of the later slice, all of exactly that size
    variant: Kind
    filter: str | None
    nodes: int  # a node counts in each batch where it moved
    mean: float
    median: float
    overall: float  # the sum of the distances to the exact memory, over the sum of the movements
    repeated: float | None  # the mean over nodes with more than one event in the batch, if there are any


class Variant(NamedTuple):
    """How batches are taken in."""

    kind: Kind
    name: str | None  # of the filter, if there is one
    filter: Smoothing | None
    settings: PRES | None = None  # of a filter to choose from


@dataclass(frozen=True)
class Tried:
    """A configuration of the filter at one batch size, on the earlier slice."""

    batch_size: int
    filter: str
    settings: dict[str, Any]
    mean: float  # distance
    chosen: bool


@dataclass(frozen=True, kw_only=True)
class Distance(Measured):
    """The distance to the exact memory at each batch size, by each variant."""

    events: int  # of the training part, from its beginning: the earlier and the later slice
    earlier: float  # share of the batches that are in the earlier slice
    carried: bool  # whether each variant goes on from its own memory, or begins each batch with the exact one
    rows: tuple[DistanceRow, ...]
    tried: tuple[Tried, ...]

    def shown(self) -> Group:
        """Return the distances to the exact memory, one row for each batch size and variant."""
        rows = []
        for row in self.rows:
            variant: str = row.variant
            if row.filter is not None:  # a discount is part of its name
                kind = "" if variant == "discounted filter" else f"{variant.removesuffix(' filter')}: "
                variant = f"{kind}{row.filter}"
            figures = (row.mean, row.median, row.overall, row.repeated)
            rows.append((f"{row.batch_size:,}", variant, *(number(figure, ".4f") for figure in figures)))
        names = ("b", "variant", "mean", "median", "overall", "repeated")
        note = (
            "0: exact; 1: as far off as the exact memory moved; repeated: nodes of several events in a batch"
        )
        shown = table(names, rows, left=("variant",), collapse_padding=True)
        return Group(f"Distance to the exact memory: {self.title}", self._how, "", shown, note)

    @property
    def _how(self) -> str:
        if self.carried:
            return "each variant carried along by itself"
        return "each batch begun with the exact memory"

    def panels(self) -> tuple[str, Sequence[Callable[[Axes], None]]]:
        """Return the distance with and without a filter against b."""

        def filters(panel: Axes) -> None:
            for variant, colour in COLOURS.items():
                rows = [row for row in self.rows if row.variant == variant]
                if rows:
                    at = [row.batch_size for row in rows]
                    panel.plot(at, [row.mean for row in rows], "o-", color=colour, label=f"{variant}, mean")
                    panel.plot(
                        at, [row.median for row in rows], "x:", color=colour, label=f"{variant}, median"
                    )
            panel.set_ylim(bottom=0)
            panel.set(title="With and without a filter", ylabel="distance / movement")
            batch_size_axis(panel, sorted({row.batch_size for row in self.rows}))
            panel.legend(frameon=False, fontsize=8)

        return f"{self.title}:\n{self._how}", (filters,)


def candidates(
    deltas: Sequence[str] = DELTAS,
    gammas: Sequence[float] = GAMMAS,
    discounts: Sequence[float] = DISCOUNTS,
) -> tuple[PRES, ...]:
    """Return every filter of a fixed gain that these make.

    They follow events alone, as the measurement does.
    """
    return tuple(
        PRES(beta=0.0, delta=delta, gain="fixed", gamma=gamma, components=1, discount=discount)
        for discount in discounts
        for delta in deltas
        for gamma in gammas
    )


def described(settings: PRES) -> str:
    """Return what tells a filter from others, in a few words."""
    gain = f"γ {settings.gamma:g}" if settings.gain == "fixed" else f"γ {settings.gain}"
    discount = "" if settings.discount == 1 else f", discount {settings.discount:g}"
    return f"{settings.delta}, {gain}{discount}"


def distance_to_exact(
    model: MDGNN,
    events: EventStream,
    batch_sizes: Sequence[int] | None = None,
    *,
    configurations: Sequence[PRES] | None = None,
    earlier: float = 0.5,
    carried: bool = False,
    limit: int | None = None,
    weights: str = "as given",
    progress: bool = False,
) -> Distance:
    """Return how far from the exact memory each variant ends, at the model's weights.

    If the model has a filter (a run with PRES leaves one), it is among the variants: its gain as learned, its
    trackers begun anew, since they know the events that follow. The model is left as it was.

    Args:
        model: A model made from ``events``.
        events: The whole stream, of which the training part is replayed.
        batch_sizes: Sizes to try; by default 200 to 6,400 as far as two batches fit. A smaller batch at the
            end is left out.
        configurations: Filters to choose from on the earlier slice, those with a discount apart; by default
            `candidates`, none if empty.
        earlier: Share of the batches in the earlier slice; at least one is in each.
        carried: Whether each variant goes on from its own memory, or begins each batch with the exact one.
        limit: Use only so many events from the beginning of the training part.
        weights: What to say of where the weights come from.
        progress: Whether to show a progress bar on stderr.
    """
    if not 0 < earlier < 1:
        raise OptionError(f"earlier={earlier}: give a share between 0 and 1.")
    configurations = candidates() if configurations is None else configurations
    if not all(settings.filter for settings in configurations):
        raise OptionError("a configuration with filter=False has no filter to choose.")
    part = training_part(model, events, limit)
    if batch_sizes is None:
        batch_sizes = [size for size in BATCH_SIZES if 2 * size <= len(part)]
    if not batch_sizes or 2 * max(batch_sizes) > len(part):
        size = max(batch_sizes) if batch_sizes else BATCH_SIZES[0]
        raise OptionError(
            f"batch_size={size:,} does not fit twice into the {len(part):,} events that are measured on."
        )
    cut = {size: whole_batches(part, size) for size in sorted(set(batch_sizes))}
    rows: list[DistanceRow] = []
    tried: list[Tried] = []
    for size, batches in cut.items():
        variants = _variants(model, events, configurations)
        found = _found(model, batches, [one.filter for one in variants], carried, progress)
        begin = min(max(round(earlier * len(batches)), 1), len(batches) - 1)
        before, after = (
            _moved(found.filter(part)) for part in (pl.col("batch") < begin, pl.col("batch") >= begin)
        )
        means: dict[int, Any] = {
            i: before[str(i)].mean() for i, one in enumerate(variants) if one.settings is not None
        }
        best = set()
        for kind in ("chosen filter", "discounted filter"):
            best |= set(sorted((i for i in means if variants[i].kind == kind), key=means.__getitem__)[:1])
        for i, one in enumerate(variants):
            if one.settings is not None:
                settings = one.settings.model_dump()
                tried.append(Tried(size, described(one.settings), settings, means[i], i in best))
            if i not in means or i in best:
                rows.append(_row(after, i, one, size, len(batches) - begin))
    return Distance(
        **about(model, events, weights),
        events=len(part),
        earlier=earlier,
        carried=carried,
        rows=tuple(rows),
        tried=tuple(tried),
    )


def _variants(model: MDGNN, events: EventStream, configurations: Sequence[PRES]) -> list[Variant]:
    """Return every variant to be tried, each filter with trackers of its own that have seen nothing."""
    variants = [Variant("standard", None, None)]
    if model.smoothing is not None and model.smoothing.observes:
        own = copy.deepcopy(model.smoothing).eval()
        own.reset()
        variants.append(Variant("own filter", "as trained", own))
    for settings in configurations:
        kind: Kind = "discounted filter" if settings.discount < 1 else "chosen filter"
        variants.append(Variant(kind, described(settings), smoothing_for(model, events, settings), settings))
    return variants


def _found(
    model: MDGNN,
    batches: TemporalBatches,
    filters: Sequence[Smoothing | None],
    apart: bool,
    progress: bool,
) -> pl.DataFrame:
    """Return, for each node of each batch, how far the exact memory moved and each variant is off it."""
    size, off = len(batches[0]), [list[Tensor]() for _ in filters]
    moved: list[Tensor] = []
    repeated: list[Tensor] = []
    ends: list[Tensor] = []
    together = [] if apart else filters
    for truth, memories in resynchronised(
        model, tracked(batches, f"batches of {size:,}", progress), together
    ):
        moved.append(_lengths(truth.end - truth.start))
        repeated.append(truth.repeated)
        ends += [truth.end] if apart else []
        for lengths, memory in zip(off, memories, strict=False):
            lengths.append(_lengths(memory - truth.end))
    for lengths, filter_ in zip(off, filters if apart else (), strict=False):
        shown = tracked(batches, f"batches of {size:,}", progress)
        for memory, end in zip(carried(model, shown, filter_), ends, strict=True):
            lengths.append(_lengths(memory - end))
    numbers = {"moved": moved} | {str(i): lengths for i, lengths in enumerate(off)}
    if not all(bool(lengths.isfinite().all()) for each in numbers.values() for lengths in each):
        raise DivergedError(
            f"memory is not finite in batches of {size:,} events. Train the model with a smaller lr."
        )
    batch = [torch.full_like(nodes, i, dtype=torch.int64) for i, nodes in enumerate(repeated)]
    columns = {"batch": batch, "repeated": repeated, **numbers}
    return pl.DataFrame({name: torch.cat(parts).cpu().numpy() for name, parts in columns.items()})


def _moved(found: pl.DataFrame) -> pl.DataFrame:
    """Return the nodes that moved, and each variant's distance in units of that."""
    counted = found.filter(pl.col("moved") > MOVED * _middle(pl.col("moved")))
    return counted.with_columns(pl.exclude("batch", "moved", "repeated") / pl.col("moved"))


def _middle(column: pl.Expr) -> pl.Expr:
    return column.quantile(0.5, "lower")


def _row(found: pl.DataFrame, i: int, of: Variant, size: int, batches: int) -> DistanceRow:
    """Return what there is to say of a variant on the later slice."""
    distance, moved = pl.col(str(i)), pl.col("moved")
    told = found.select(
        mean=distance.mean(),
        median=_middle(distance),
        overall=(distance * moved).sum() / moved.sum(),
        repeated=distance.filter("repeated").mean(),
    ).row(0, named=True)
    return DistanceRow(
        batch_size=size, batches=batches, variant=of.kind, filter=of.name, nodes=len(found), **told
    )


def _lengths(differences: Tensor) -> Tensor:
    lengths: Tensor = differences.double().norm(dim=1)
    return lengths
