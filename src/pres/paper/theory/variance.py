"""Theorem 1: how much the gradient varies over the draw of negatives, against the batch size.

Weights are fixed, the training part is replayed, and each batch's negatives are drawn anew several times:
the variance ``E‖g − E g‖²`` of one batch's gradient, and that of the epoch's, which is the sum over its
batches.

What the normalisation of the loss explains by itself. A batch's gradient is a sum over its events, whose
negatives are independent draws. If an event contributes the variance ``v``, then

- with the loss summed over a batch: ``b·v`` per batch and ``|E|·v`` per epoch, exponents 1 and 0 in b;
- with its mean: ``v/b`` per batch and ``|E|·v/b²`` per epoch, exponents −1 and −2 in b.

So a falling variance of the epoch is a property of the mean. `Exponents.beyond` is what is left: v itself
changes with b, because memory is older in a larger batch and because fewer destinations are allowed as
negatives. The smallest and the largest also come closer to each other as b grows, because there are fewer
batches to be extreme.

The bound of the theorem is ``|E|/b · σ²_min``. Negatives of different batches are independent, so the
epoch's variance is the sum of its batches', of which none is below σ²_min: but for the error of few draws the
bound cannot fail, and its 1/b is the whole dependence on b only where σ²_min itself does not depend on b.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from matplotlib.axes import Axes
from rich.console import Group
from rich.table import Table
from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import DivergedError, OptionError
from pres.figure import FIRST, GREY, SECOND, batch_size_axis
from pres.models import MDGNN
from pres.paper.theory.gradients import batch_loss, batches_to_try, flat_gradient, replay, trainable
from pres.paper.theory.measured import Measured, about, number, tracked
from pres.sampling import NegativeSampler
from pres.sampling.rng import derived
from pres.tables import table

Loss = Literal["mean", "sum"]
LOSSES: tuple[Loss, Loss] = ("mean", "sum")
BATCH_SIZES = (100, 200, 400, 800, 1600)
EXPLAINED: dict[Loss, dict[str, int]] = {
    "mean": {"smallest": -1, "largest": -1, "mean": -1, "epoch": -2},
    "sum": {"smallest": 1, "largest": 1, "mean": 1, "epoch": 0},
}


@dataclass(frozen=True)
class VarianceRow:
    """The variances at one batch size, under one normalisation of the loss."""

    batch_size: int
    batches: int  # K, all of exactly that size
    loss: Loss
    smallest: float  # of the batches: σ²_min
    largest: float  # σ²_max
    mean: float
    epoch: float  # of the sum of the batches' gradients, from the draws of whole epochs
    epoch_independent: float  # the same as the sum of the batches' variances: less noisy
    bound: float  # of Theorem 1: K · σ²_min


@dataclass(frozen=True)
class Exponents:
    """With which power of b a variance goes: the slope of a line through its logarithms."""

    loss: Loss
    fitted: dict[str, float | None]  # None where there are fewer than two batch sizes, or no variance
    explained: dict[str, int]  # by the normalisation alone
    beyond: dict[str, float | None]  # their difference


@dataclass(frozen=True, kw_only=True)
class GradientVariance(Measured):
    """The variance of the gradient over the draw of negatives, at each batch size."""

    events: int  # of the training part, from its beginning
    draws: int
    seed: int
    parameters: int
    rows: tuple[VarianceRow, ...]
    exponents: tuple[Exponents, ...]  # under the mean and under the sum

    def shown(self) -> Group:
        """Return the variances at each batch size and their exponents, a table for each normalisation."""
        about = f"{self.events:,} events, {self.draws} draws of negatives, {self.parameters:,} parameters"
        tables: list[Table | str] = []
        for exponents in self.exponents:
            cells = []
            for row in self._of(exponents.loss):
                figures = (row.smallest, row.largest, row.mean, row.epoch, row.epoch_independent, row.bound)
                sizes = f"{row.batch_size:,}", f"{row.batches:,}"
                cells.append((*sizes, *(number(figure, ".4g") for figure in figures)))
            for name, powers in (
                ("power of b", exponents.fitted),
                ("explained", exponents.explained),
                ("beyond", exponents.beyond),
            ):
                cells.append((name, "", *(number(powers[of], "+.2f") for of in exponents.explained)))
            names = ("b", "batches", "σ²_min", "σ²_max", "mean", "epoch", "Σ σ²", "bound")
            tables += ["", f"{exponents.loss} loss", table(names, cells, collapse_padding=True)]
        return Group(f"Variance of the gradient: {self.title}", about, *tables)

    def panels(self) -> tuple[str, Sequence[Callable[[Axes], None]]]:
        """Return the variances of batches and of the epoch, for each normalisation."""
        title = f"{self.title}: {self.events:,} events, {self.draws} draws of negatives"
        panels = [
            partial(draw, rows=self._of(exponents.loss), exponents=exponents)
            for exponents in self.exponents
            for draw in (_draw_batches, _draw_epoch)
        ]
        return title, panels

    def _of(self, loss: Loss) -> list[VarianceRow]:
        return [row for row in self.rows if row.loss == loss]


def _draw_batches(panel: Axes, rows: list[VarianceRow], exponents: Exponents) -> None:
    sizes = [row.batch_size for row in rows]
    label = f"mean, b to the {number(exponents.fitted['mean'], '.2f')}"
    panel.plot(sizes, [row.mean for row in rows], "o-", color=FIRST, label=label)
    low, high = [row.smallest for row in rows], [row.largest for row in rows]
    panel.fill_between(sizes, low, high, color=FIRST, alpha=0.15, label="σ²_min to σ²_max")
    _finish(panel, f"One batch's gradient, {exponents.loss} loss", rows)


def _draw_epoch(panel: Axes, rows: list[VarianceRow], exponents: Exponents) -> None:
    sizes = [row.batch_size for row in rows]
    label = f"measured, b to the {number(exponents.fitted['epoch'], '.2f')}"
    panel.plot(sizes, [row.epoch for row in rows], "o-", color=FIRST, label=label)
    summed = [row.epoch_independent for row in rows]
    panel.plot(sizes, summed, "x:", color=GREY, label="sum of the batches'")
    panel.plot(sizes, [row.bound for row in rows], "s--", color=SECOND, label="Theorem 1: |E|/b · σ²_min")
    _finish(panel, f"The epoch's gradient, {exponents.loss} loss", rows)


def _finish(panel: Axes, title: str, rows: list[VarianceRow]) -> None:
    panel.set(title=title, ylabel="variance")
    if max(row.largest for row in rows) > 0:
        panel.set_yscale("log", nonpositive="clip")  # σ²_min may be 0: an empty memory tells no nodes apart
        low, high = panel.get_ylim()
        panel.set_ylim(low / 2, high * 2)  # else a variance that hardly changes fills the panel
    batch_size_axis(panel, [row.batch_size for row in rows])
    panel.legend(frameon=False, fontsize=8)


def gradient_variance(
    model: MDGNN,
    events: EventStream,
    batch_sizes: Sequence[int] | None = None,
    *,
    draws: int = 8,
    limit: int | None = None,
    seed: int = 0,
    weights: str = "as given",
    progress: bool = False,
) -> GradientVariance:
    """Return the variance of the gradient over the draw of negatives, at the model's weights.

    The gradient is that by all trainable parameters, without dropout. The model is left as it was.

    Args:
        model: A model made from ``events``.
        events: The whole stream, of which the training part is replayed.
        batch_sizes: Sizes to try; by default 100 to 1,600 as far as the events reach. A smaller batch at the
            end is left out.
        draws: How often negatives are drawn, at least twice.
        limit: Use only so many events from the beginning of the training part.
        seed: Of the draws.
        weights: What to say of where the weights come from.
        progress: Whether to show a progress bar on stderr.
    """
    if draws < 2:
        raise OptionError(f"draws={draws}: a variance needs at least two.")
    part, sampler, cut = batches_to_try(model, events, batch_sizes, BATCH_SIZES, limit)
    rows: list[VarianceRow] = []
    for size, batches in cut.items():
        shown = tracked(batches, f"batches of {size:,}", progress)
        variances, epoch = _variances(model, shown, sampler, draws, seed)
        rows += [_row(size, loss, variances, epoch) for loss in LOSSES]
    count = sum(parameter.numel() for parameter in trainable(model))
    return GradientVariance(
        **about(model, events, weights),
        events=len(part),
        draws=draws,
        seed=seed,
        parameters=count,
        rows=tuple(rows),
        exponents=tuple(_exponents(loss, [row for row in rows if row.loss == loss]) for loss in LOSSES),
    )


def _exponents(loss: Loss, rows: list[VarianceRow]) -> Exponents:
    sizes, explained = [row.batch_size for row in rows], EXPLAINED[loss]
    values = {name: [getattr(row, name) for row in rows] for name in explained}
    # Whole batches of different sizes do not cover quite the same events: compare epochs per event.
    values["epoch"] = [row.epoch / (row.batches * row.batch_size) for row in rows]
    fitted = {name: slope(sizes, column) for name, column in values.items()}
    beyond = {name: None if e is None else e - explained[name] for name, e in fitted.items()}
    return Exponents(loss, fitted, explained, beyond)


def slope(sizes: Sequence[int], values: Sequence[float]) -> float | None:
    """Return the least-squares slope of ``log value`` against ``log size``, or None where there is none."""
    if len(sizes) < 2 or min(values) <= 0:
        return None
    x, y = (torch.tensor(column, dtype=torch.float64).log() for column in (sizes, values))
    x = x - x.mean()
    return float((x * y).sum() / x.square().sum())


def _variances(
    model: MDGNN,
    batches: Iterable[EventStream],
    sampler: NegativeSampler,
    draws: int,
    seed: int,
) -> tuple[Tensor, float]:
    """Return the variance of each batch's gradient `[K]` and that of their sum, of mean losses.

    Kept are the draws of one batch and their sums over the epoch, never those of all batches.
    """
    parameters = trainable(model)
    variances: list[float] = []
    epoch: Tensor | float = 0.0
    for copied, batch in replay(model, batches):
        negatives = [sampler.sample(batch, seed=derived(seed, draw)).nodes for draw in range(draws)]
        losses = (batch_loss(copied, batch, drawn) for drawn in negatives)
        gradients = torch.stack([flat_gradient(loss, parameters) for loss in losses]).double()
        epoch = epoch + gradients
        variances.append(_variance(gradients))
        if not math.isfinite(variances[-1]):
            raise DivergedError(
                f"the gradient is not finite in the batch of events {batch.offset:,} to "
                f"{batch.offset + len(batch) - 1:,}. Train the model with a smaller lr."
            )
    assert isinstance(epoch, Tensor)  # there is at least one batch
    return torch.tensor(variances, dtype=torch.float64), _variance(epoch)


def _variance(gradients: Tensor) -> float:
    """Return the unbiased estimate of ``E‖g − E g‖²`` from draws `[draws, p]`."""
    return float(gradients.var(dim=0).sum())


def _row(size: int, loss: Loss, variances: Tensor, epoch: float) -> VarianceRow:
    # A batch's summed loss is b times its mean, and so is its gradient.
    scale = 1 if loss == "mean" else size**2
    variances, count = scale * variances, len(variances)
    return VarianceRow(
        batch_size=size,
        batches=count,
        loss=loss,
        smallest=float(variances.min()),
        largest=float(variances.max()),
        mean=float(variances.mean()),
        epoch=scale * epoch,
        epoch_independent=float(variances.sum()),
        bound=count * float(variances.min()),
    )
