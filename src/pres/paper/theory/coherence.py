"""Memory coherence μ (Definition 3): whether gradients at an older memory lead where those at a fresh one do.

    μ(e_ij, B) = min over e in P(e_ij, B) of ⟨∇l(e_ij, s^(e)), ∇l(e_ij, s^(e_ij))⟩ / ‖∇l(e_ij, s^(e_ij))‖²

- ``s^(e)``: the exact memory of both nodes just after the pending event e, as one event after the other makes
  it. A node that e does not have is as it was at that moment.
- ``s^(e_ij)``: the fresh memory. The paper takes that after the event, which has the event's own label in it;
  ``fresh="before"`` takes that just before, which is what a prediction may know.
- ∇: by the two memories, as the definition says, or by all parameters that training moves, as the proof of
  Theorem 2 needs it, through embedding and decoder at the given memories.
- l: the loss of the event and of one drawn negative. Neighbours, the negative, and the time since a node's
  last event are as the batch finds them, so that one function is asked at different memories.

Where the gradient at the fresh memory is next to nothing the quotient says nothing: those events are counted
apart. Nothing is clamped. Without ties, and where mail goes to endpoints alone, the memory after the last
pending event is that just before the event: with ``fresh="before"`` no μ exceeds 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from matplotlib.axes import Axes
from rich.console import Group
from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import DivergedError, OptionError, check_choice
from pres.figure import FIRST, GREY, SECOND, batch_size_axis
from pres.models import MDGNN
from pres.paper.theory.event_loss import Fresh, Respect, coherence_of
from pres.paper.theory.exact import replay_exactly
from pres.paper.theory.gradients import batches_to_try
from pres.paper.theory.measured import Measured, about, number, tracked
from pres.sampling import TemporalBatches
from pres.sampling.pending import PendingProfile
from pres.tables import table

BATCH_SIZES = (200, 400, 800, 1600, 3200)
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95)
_SHOWN = ("0.05", "0.25", "0.5", "0.75", "0.95")


@dataclass(frozen=True)
class CoherenceRow:
    """The memory coherence of sampled events at one batch size; None where there is nothing to tell."""

    batch_size: int
    batches: int  # all of exactly that size
    with_pending: float  # share of all events that have a pending set: only those have a coherence
    sampled: int  # events, of those
    mean_pending: float | None  # mean size of the pending sets of the sampled events
    near_zero: int  # sampled events whose fresh gradient is next to nothing; not in what follows
    not_positive: float | None  # share of the others with μ ≤ 0
    minimum: float | None
    quantiles: dict[str, float] | None  # by share, as "0.05"


@dataclass(frozen=True, kw_only=True)
class Coherence(Measured):
    """The memory coherence of sampled events, at each batch size."""

    events: int  # of the training part, from its beginning
    fresh: Fresh
    wrt: Respect
    samples: int  # asked for, at each batch size
    near_zero: float  # a fresh gradient is next to nothing below so many times the median's length
    seed: int
    rows: tuple[CoherenceRow, ...]
    minimum: float | None  # the smallest μ of all; None where no event has one

    def shown(self) -> Group:
        """Return the quantiles of memory coherence, one row for each batch size."""
        rows = []
        for row in self.rows:
            quantiles = row.quantiles or {}
            rows.append(
                (
                    *(f"{row.batch_size:,}", number(row.mean_pending, ".1f"), f"{row.sampled:,}"),
                    *(number(row.not_positive, ".1%"), number(row.minimum)),
                    *(number(quantiles.get(share)) for share in _SHOWN),
                    f"{row.near_zero:,}",
                )
            )
        shares = [f"{float(share):.0%}" for share in _SHOWN]
        about = f"fresh memory {self.fresh} the event, gradients by {self.wrt}, {self.events:,} events"
        note = "pending: mean size of a pending set; ≈ 0: events whose fresh gradient is next to nothing"
        names = ("b", "pending", "events", "μ ≤ 0", "least", *shares, "≈ 0")
        return Group(
            f"Memory coherence μ: {self.title}", about, "", table(names, rows, collapse_padding=True), note
        )

    def panels(self) -> tuple[str, Sequence[Callable[[Axes], None]]]:
        """Return the quantiles of μ, the share of events without coherence, and the pending sets."""
        rows = [row for row in self.rows if row.quantiles is not None]
        sizes = [row.batch_size for row in rows]

        def quantiles(panel: Axes) -> None:
            of = {share: [(row.quantiles or {})[share] for row in rows] for share in _SHOWN}
            panel.fill_between(sizes, of["0.05"], of["0.95"], color=FIRST, alpha=0.12, label="5 % to 95 %")
            panel.fill_between(sizes, of["0.25"], of["0.75"], color=FIRST, alpha=0.25, label="25 % to 75 %")
            panel.plot(sizes, of["0.5"], "o-", color=FIRST, label="median")
            smallest = [row.minimum for row in rows if row.minimum is not None]
            panel.plot(sizes, smallest, "v:", color=SECOND, label="smallest")
            panel.axhline(0, color=GREY, linewidth=1)
            if smallest and min(smallest) < -2:
                panel.set_yscale("symlog", linthresh=1)  # else one event would hide all others
            panel.set_title(f"μ: fresh memory {self.fresh} the event, by {self.wrt}")
            panel.set_ylabel("memory coherence μ")
            batch_size_axis(panel, sizes)
            if rows:
                panel.legend(frameon=False, fontsize=8)

        def not_positive(panel: Axes) -> None:
            shares = [100 * (row.not_positive or 0.0) for row in rows]
            panel.plot(sizes, shares, "o-", color=SECOND)
            panel.set_ylim(0, max(1.0, 1.05 * max(shares, default=0.0)))
            panel.set(title="Events with μ ≤ 0", ylabel="% of sampled events")
            batch_size_axis(panel, sizes)

        def pending(panel: Axes) -> None:
            panel.plot(sizes, [row.mean_pending or 0.0 for row in rows], "o-", color=GREY)
            panel.set_ylim(bottom=0)
            panel.set(title="Size of a pending set", ylabel="mean over sampled events")
            batch_size_axis(panel, sizes)

        return self.title, (quantiles, not_positive, pending)


def memory_coherence(
    model: MDGNN,
    events: EventStream,
    batch_sizes: Sequence[int] | None = None,
    *,
    fresh: Fresh = "after",
    wrt: Respect = "memory",
    samples: int = 500,
    near_zero: float = 1e-6,
    limit: int | None = None,
    seed: int = 0,
    weights: str = "as given",
    progress: bool = False,
) -> Coherence:
    """Return the memory coherence of sampled events, at the model's weights and with exact memory.

    A filter that the model may have is left aside: what it mends is not there. The model is left as it was.

    Args:
        model: A model made from ``events``.
        events: The whole stream, of which the training part is replayed.
        batch_sizes: Sizes to try; by default 200 to 3,200 as far as the events reach. A smaller batch at the
            end is left out.
        fresh: Whether the fresh memory is that just ``"before"`` the event, or ``"after"`` it, as in the
            paper.
        wrt: Whether gradients are by the two nodes' ``"memory"`` or by all trainable ``"parameters"``.
        samples: Events to sample at each batch size, of those with a pending set.
        near_zero: Fresh gradients shorter than so many times the median's length are counted apart.
        limit: Use only so many events from the beginning of the training part.
        seed: Of the sample and of the negatives.
        weights: What to say of where the weights come from.
        progress: Whether to show a progress bar on stderr.
    """
    check_choice("fresh", fresh, ("before", "after"))
    check_choice("wrt", wrt, ("memory", "parameters"))
    if samples < 1:
        raise OptionError(f"samples={samples}: sample at least one event.")
    if not 0 <= near_zero < 1:
        raise OptionError(f"near_zero={near_zero}: give a share of the median length, from 0 to below 1.")
    part, sampler, cut = batches_to_try(model, events, batch_sizes, BATCH_SIZES, limit)
    rows: list[CoherenceRow] = []
    for size, batches in cut.items():
        profile = PendingProfile.of(batches.events, batches.edges)
        chosen = _sample(profile.sizes, samples, seed)
        found: list[tuple[Tensor, Tensor]] = []
        for copied, batch in replay_exactly(model, tracked(batches, f"batches of {size:,}", progress)):
            begin = batch.offset - part.offset
            own = chosen[(chosen >= begin) & (chosen < begin + size)] - begin
            if len(own):
                negatives = sampler.sample(batch, seed=seed).nodes
                found.append(coherence_of(copied, batch, negatives, own, fresh, wrt))
            if not len(chosen) or begin + size > int(chosen[-1]):
                break  # what follows was not sampled
        rows.append(_row(size, batches, profile.sizes, chosen, found, near_zero))
    return Coherence(
        **about(model, events, weights),
        events=len(part),
        fresh=fresh,
        wrt=wrt,
        samples=samples,
        near_zero=near_zero,
        seed=seed,
        rows=tuple(rows),
        minimum=min((row.minimum for row in rows if row.minimum is not None), default=None),
    )


def _sample(sizes: Tensor, samples: int, seed: int) -> Tensor:
    """Return the places `[k]`, increasing, of events drawn from those with a pending set."""
    candidates = (sizes > 0).nonzero().squeeze(1)
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randperm(len(candidates), generator=generator)[:samples]
    return torch.sort(candidates[drawn.to(candidates.device)]).values


def _row(
    size: int,
    batches: TemporalBatches,
    sizes: Tensor,
    chosen: Tensor,
    found: list[tuple[Tensor, Tensor]],
    near_zero: float,
) -> CoherenceRow:
    row = partial(
        CoherenceRow,
        batch_size=size,
        batches=len(batches),
        with_pending=float((sizes > 0).double().mean()),
        sampled=len(chosen),
        mean_pending=float(sizes[chosen].double().mean()) if len(chosen) else None,
    )
    if not found:
        return row(near_zero=0, not_positive=None, minimum=None, quantiles=None)
    inner, squares = (torch.cat(parts) for parts in zip(*found, strict=True))
    if not bool(inner.isfinite().all() and squares.isfinite().all()):
        raise DivergedError(
            f"a gradient is not finite in batches of {size:,} events. Train the model with a smaller lr."
        )
    length = squares.sqrt()
    tells = length > near_zero * length.median()
    left_out = len(tells) - int(tells.sum())
    if left_out == len(tells):
        return row(near_zero=left_out, not_positive=None, minimum=None, quantiles=None)
    mu = (inner / squares)[tells]
    shares = torch.quantile(mu, torch.tensor(QUANTILES, dtype=mu.dtype, device=mu.device)).tolist()
    return row(
        near_zero=left_out,
        not_positive=float((mu <= 0).double().mean()),
        minimum=float(mu.min()),
        quantiles={f"{share:g}": value for share, value in zip(QUANTILES, shares, strict=True)},
    )
