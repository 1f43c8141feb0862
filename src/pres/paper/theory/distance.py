"""Distance to the oracle: how far a batch leaves memory from where its events, one by one, would have.

    ‖s_batch − s_exact‖ / ‖s_exact − s_start‖   for each node of a batch

``s_start`` is the exact memory before the batch and ``s_exact`` that after it, taken in order; ``s_batch`` is
what the standard update makes of it (one per node, by its last event), and what a filter makes of that. 0 is
the exact memory, and 1 is as far off as a memory that did not move. All at the same weights.

Either every way begins each batch with the exact memory, which asks what one batch loses; or each is carried
along by itself, as training does, which asks how losses add up.

A filter's trackers know nothing at first. They learn along an earlier slice of the stream, on which the best
of several configurations is chosen by its mean distance; it is reported on the later slice, where its
trackers go on observing, each transition after it was corrected. They follow events alone: no negatives are
drawn. Filters that discount earlier transitions are chosen from apart from those that do not.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from rich.console import Console
from rich.progress import Progress
from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import DivergedError, OptionError
from pres.models import MDGNN
from pres.paper.theory.candidates import candidates, described
from pres.paper.theory.gradients import training_part, whole_batches
from pres.paper.theory.measured import Measured, about
from pres.paper.theory.ways import Truth, carried, exactly, resynchronised
from pres.sampling import TemporalBatches
from pres.smoothing import PRES, Smoothing
from pres.training.trainer import smoothing_for

Kind = Literal["standard", "own filter", "chosen filter", "discounted filter"]
BATCH_SIZES = (200, 400, 800, 1600, 3200, 6400)
MOVED = 1e-6  # of the median movement: a node that moved less did not move


@dataclass(frozen=True)
class DistanceRow:
    """The distances to the exact memory at one batch size, by one way, on the later slice."""

    batch_size: int
    batches: int  # of the later slice, all of exactly that size
    way: Kind
    filter: str | None
    nodes: int  # a node counts in each batch where it moved
    mean: float
    median: float
    overall: float  # the sum of the distances to the exact memory, over the sum of the movements
    repeated: float | None  # the mean over nodes with more than one event in the batch, if there are any


class Way(NamedTuple):
    """A way to take in batches."""

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
    """The distance to the exact memory at each batch size, by each way."""

    events: int  # of the training part, from its beginning: the earlier and the later slice
    earlier: float  # share of the batches that are in the earlier slice
    carried: bool  # whether each way goes on from its own memory, or begins each batch with the exact one
    rows: tuple[DistanceRow, ...]
    tried: tuple[Tried, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``pres theory distance --json`` prints it."""
        return dataclasses.asdict(self)

    def save_png(self, path: str | Path) -> Path:
        """Draw the distances as one picture at ``path`` and return it."""
        from pres.paper.theory.figures.distance import save_figure

        return save_figure(self, Path(path))


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
    """Return how far from the exact memory each way of taking in batches ends, at the model's weights.

    If the model has a filter (a run with PRES leaves one), it is among the ways: its gain as learned, its
    trackers begun anew, since they know the events that follow. The model is left as it was.

    Args:
        model: A model made from ``events``.
        events: The whole stream, of which the training part is replayed.
        batch_sizes: Sizes to try; by default 200 to 6,400 as far as two batches fit. A smaller batch at the
            end is left out.
        configurations: Filters to choose from on the earlier slice, those with a discount apart; by default
            `candidates`, none if empty.
        earlier: Share of the batches in the earlier slice; at least one is in each.
        carried: Whether each way goes on from its own memory, or begins each batch with the exact one.
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
    with Progress(console=Console(stderr=True), transient=True, disable=not progress) as bars:
        for size, batches in cut.items():
            ways = _ways(model, events, configurations)
            passes = 1 + len(ways) if carried else 1
            task = bars.add_task(f"batches of {size:,}", total=passes * len(batches))
            found = _Found(model, batches, [way.filter for way in ways], carried, partial(bars.advance, task))
            begin = min(max(round(earlier * len(batches)), 1), len(batches) - 1)
            found.check_finite()
            means, best = found.choice([way.kind for way in ways], begin)
            for i, way in enumerate(ways):
                if i in means and way.name is not None and way.settings is not None:
                    settings = way.settings.model_dump()
                    tried.append(Tried(size, way.name, settings, means[i], i in best))
                if i not in means or i in best:
                    rows.append(found.row(i, way, begin))
    return Distance(
        **about(model, events, weights),
        events=len(part),
        earlier=earlier,
        carried=carried,
        rows=tuple(rows),
        tried=tuple(tried),
    )


def _ways(model: MDGNN, events: EventStream, configurations: Sequence[PRES]) -> list[Way]:
    """Return every way to be tried, each filter with trackers of its own that have seen nothing."""
    ways = [Way("standard", None, None)]
    if model.smoothing is not None and model.smoothing.observes:
        own = copy.deepcopy(model.smoothing).eval()
        own.reset()
        ways.append(Way("own filter", "as trained", own))
    for settings in configurations:
        kind: Kind = "discounted filter" if settings.discount < 1 else "chosen filter"
        ways.append(Way(kind, described(settings), smoothing_for(model, events, settings), settings))
    return ways


class _Found:
    """How far every way is off and how far the exact memory moved, for each node of each batch."""

    def __init__(
        self,
        model: MDGNN,
        batches: TemporalBatches,
        filters: Sequence[Smoothing | None],
        apart: bool,
        on_batch: Callable[[], object],
    ) -> None:
        self.size, self.count = len(batches[0]), len(batches)
        self.off: list[list[Tensor]] = [[] for _ in filters]
        self.moved: list[Tensor] = []
        self.repeated: list[Tensor] = []
        if not apart:
            for truth, memories in resynchronised(model, batches, filters, on_batch):
                self._add_truth(truth)
                for off, memory in zip(self.off, memories, strict=True):
                    off.append(_lengths(memory - truth.end))
            return
        truths = exactly(model, batches, on_batch)
        for truth in truths:
            self._add_truth(truth)
        for off, filter_ in zip(self.off, filters, strict=True):
            found = zip(carried(model, batches, filter_, on_batch), truths, strict=True)
            off += [_lengths(memory - truth.end) for memory, truth in found]

    def _add_truth(self, truth: Truth) -> None:
        self.moved.append(_lengths(truth.end - truth.start))
        self.repeated.append(truth.repeated)

    def check_finite(self) -> None:
        """Raise if a memory is not a finite number."""
        everything = torch.cat([*self.moved, *(off for each in self.off for off in each)])
        if not bool(everything.isfinite().all()):
            raise DivergedError(
                f"memory is not finite in batches of {self.size:,} events. Train the model with a smaller lr."
            )

    def distances(self, way: int, start: int = 0, stop: int | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Return, for the nodes that moved in some batches, distance, movement, and whether they repeat."""
        off, moved, repeated = (
            torch.cat(each[start:stop]) for each in (self.off[way], self.moved, self.repeated)
        )
        counted = moved > MOVED * moved.median()
        return (off / moved)[counted], moved[counted], repeated[counted]

    def choice(self, kinds: Sequence[Kind], begin: int) -> tuple[dict[int, float], set[int]]:
        """Return the mean distance of each filter to choose from before ``begin``, and the best of a kind."""
        means: dict[int, float] = {}
        best: set[int] = set()
        for kind in ("chosen filter", "discounted filter"):
            own = [i for i, of in enumerate(kinds) if of == kind]
            means |= {i: float(self.distances(i, stop=begin)[0].mean()) for i in own}
            best |= set(sorted(own, key=lambda i: means[i])[:1])
        return means, best

    def row(self, i: int, way: Way, begin: int) -> DistanceRow:
        """Return what there is to say of a way on the batches from ``begin`` on."""
        distance, moved, repeated = self.distances(i, begin)
        return DistanceRow(
            batch_size=self.size,
            batches=self.count - begin,
            way=way.kind,
            filter=way.name,
            nodes=len(distance),
            mean=float(distance.mean()),
            median=float(distance.median()),
            overall=float((distance * moved).sum() / moved.sum()),
            repeated=float(distance[repeated].mean()) if bool(repeated.any()) else None,
        )


def _lengths(differences: Tensor) -> Tensor:
    lengths: Tensor = differences.double().norm(dim=1)
    return lengths
