"""Each measurement as a table for a terminal."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table

from pres.paper.theory.bound import Bound
from pres.paper.theory.coherence import Coherence
from pres.paper.theory.convergence import Convergence
from pres.paper.theory.descent import Descent
from pres.paper.theory.distance import Distance
from pres.paper.theory.state_space import StateSpace
from pres.paper.theory.variance import GradientVariance


def state_space_table(found: StateSpace) -> Table:
    """Return the errors of STANDARD and PRES, one row for each system and way to filter it."""
    table = Table(
        title=f"Mean distance to the true state (drift {found.drift:g}, spread {found.spread:g}, "
        f"{found.steps} steps, {found.seeds} seeds)",
        title_justify="left",
        caption="nearer: in how many seeds PRES is; holds: whether it is in the mean",
        caption_justify="left",
        box=None,
        pad_edge=False,
        collapse_padding=True,
    )
    for name in ("noise", "missing", "previous", "γ", "STANDARD", "PRES", "nearer", "holds"):
        table.add_column(name, justify="left" if name in ("previous", "γ") else "right")
    for row in found.rows:
        table.add_row(
            f"{row.noise:g}",
            f"{row.missing}",
            row.previous,
            f"{row.gain} {row.gamma:.3f}",
            f"{row.standard:.3f} ± {row.standard_std:.3f}",
            f"{row.pres:.3f} ± {row.pres_std:.3f}",
            f"{row.seeds_below}/{found.seeds}",
            "yes" if row.holds else "no",
        )
    return table


def variance_tables(found: GradientVariance) -> Group:
    """Return the variances at each batch size and their exponents, a table for each normalisation."""
    about = f"{found.events:,} events, {found.draws} draws of negatives, {found.parameters:,} parameters"
    tables: list[Table | str] = []
    for exponents in found.exponents:
        table = Table(title=f"{exponents.loss} loss", title_justify="left", box=None, collapse_padding=True)
        for name in ("b", "batches", "σ²_min", "σ²_max", "mean", "epoch", "Σ σ²", "bound"):
            table.add_column(name, justify="right")
        for row in found.rows:
            if row.loss == exponents.loss:
                figures = (row.smallest, row.largest, row.mean, row.epoch, row.epoch_independent, row.bound)
                cells = (f"{figure:.4g}" for figure in figures)
                table.add_row(f"{row.batch_size:,}", f"{row.batches:,}", *cells)
        for name, powers in (
            ("power of b", exponents.fitted),
            ("explained", exponents.explained),
            ("beyond", exponents.beyond),
        ):
            cells = ("–" if powers[of] is None else f"{powers[of]:+.2f}" for of in exponents.explained)
            table.add_row(name, "", *cells)
        tables += ["", table]
    return Group(f"Variance of the gradient: {found.title}", about, *tables)


def convergence_table(found: Convergence) -> Group:
    """Return the terms of the bound: what both trainings share, then those along each, one row each."""
    shared = _named(
        ("batches, K", f"{found.batches:,} of {found.batch_size:,} events"),
        ("epochs, T", f"{found.epochs:,}"),
        ("measured on", f"the first {found.measured_events:,} training events"),
    )
    parts: list[Table | str] = [f"Terms of Theorem 2: {found.title}", shared, ""]
    if found.sgd is None:
        parts += [f"Plain SGD: not run, there is no step size: {found.no_descent}", ""]
    else:
        parts += ["Plain SGD at the theorem's step size; L(θ) of the events in sequence", _descent(found.sgd)]
    none = "μ is not known" if found.mu is None else "none: the assumption μ > 0 fails"
    adam = _named(
        ("lr", f"{found.lr:g}"),
        *_along(found),
        ("L", f"at least {found.lipschitz:.4g} (power iteration, a local estimate)"),
        ("μ", _mu(found)),
        ("σ²_max", f"{found.sigma2_max:.4g}"),
        ("loss gap term", none if found.gap_term is None else f"{found.gap_term:.4g}"),
        ("variance term", f"{found.variance_term:.4g}"),
        ("bound", none if found.bound is None else f"{found.bound:.4g}"),
    )
    parts += ["", "Adam, which the theorem does not cover; L(θ) of the batches", adam, ""]
    note = "The variance term has 1 + log T, which is at least Σ 1/t; the paper has log T."
    return Group(*parts, note)


def _descent(found: Descent) -> Table:
    """Return the terms along plain SGD, one row each."""
    steps, mu_after = found.step_sizes or (), found.mu_after
    against = "holds" if found.holds else "does not hold"
    empty = "; it is above ‖∇L‖² before training, so it says nothing" if found.vacuous else ""
    after = "" if mu_after is None else f", {mu_after:.4g} after training"
    return _named(
        ("η", f"{steps[0]:.3g} in epoch 1, {steps[-1]:.3g} in the last"),
        *_along(found),
        ("L", f"{found.lipschitz:.4g} before training, {found.lipschitz_after:.4g} after it"),
        ("μ", f"{found.mu:.4g}{after}"),
        ("σ²_max", f"{found.sigma2_max:.4g}"),
        ("loss gap term", f"{found.gap_term:.4g}"),
        ("variance term", f"{found.variance_term:.4g}"),
        ("bound", f"{found.bound:.4g} {against}{empty}"),
    )


def _along(found: Bound) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the rows of loss and gradient."""
    losses, gradients = found.losses, found.gradients
    return (
        ("loss", f"{losses[0]:.4f} before training, {min(losses):.4f} the smallest seen"),
        ("‖∇L‖²", f"{gradients[0]:.4g} before training, {found.smallest_gradient:.4g} the smallest seen"),
    )


def _named(*rows: tuple[str, str]) -> Table:
    """Return a table of names and values."""
    table = Table(show_header=False, box=None)
    table.add_column(style="dim", min_width=13)
    table.add_column()
    for row in rows:
        table.add_row(*row)
    return table


def _mu(found: Convergence) -> str:
    if found.mu is None:
        return "not given" if not found.mu_samples else "no sampled event has one"
    measured = f" (the smallest of {found.mu_samples:,} sampled events, before and after training)"
    return f"{found.mu:.4g}{measured if found.mu_samples else ''}"


def coherence_table(found: Coherence) -> Group:
    """Return the quantiles of memory coherence, one row for each batch size."""
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    shares = ("0.05", "0.25", "0.5", "0.75", "0.95")
    names = ("b", "pending", "events", "μ ≤ 0", "least", *(f"{float(share):.0%}" for share in shares))
    for name in (*names, "≈ 0"):
        table.add_column(name, justify="right")
    for row in found.rows:
        quantiles = row.quantiles or {}
        cells = (row.minimum, *(quantiles.get(share) for share in shares))
        table.add_row(
            f"{row.batch_size:,}",
            "–" if row.mean_pending is None else f"{row.mean_pending:.1f}",
            f"{row.sampled:,}",
            "–" if row.not_positive is None else f"{row.not_positive:.1%}",
            *("–" if cell is None else f"{cell:.3g}" for cell in cells),
            f"{row.near_zero:,}",
        )
    about = f"fresh memory {found.fresh} the event, gradients by {found.wrt}, {found.events:,} events"
    note = "pending: mean size of a pending set; ≈ 0: events whose fresh gradient is next to nothing"
    return Group(f"Memory coherence μ: {found.title}", about, "", table, note)


def distance_table(found: Distance) -> Group:
    """Return the distances to the exact memory, one row for each batch size and way."""
    table = Table(box=None, pad_edge=False, collapse_padding=True)
    for name in ("b", "way", "mean", "median", "overall", "repeated"):
        table.add_column(name, justify="left" if name == "way" else "right")
    for row in found.rows:
        way: str = row.way
        if row.filter is not None:  # a discount is part of its name
            kind = "" if row.way == "discounted filter" else f"{row.way.removesuffix(' filter')}: "
            way = f"{kind}{row.filter}"
        figures = (row.mean, row.median, row.overall, row.repeated)
        table.add_row(
            f"{row.batch_size:,}",
            way,
            *("–" if figure is None else f"{figure:.4f}" for figure in figures),
        )
    how = "each way carried along by itself" if found.carried else "each batch begun with the exact memory"
    note = "0: exact; 1: as far off as the exact memory moved; repeated: nodes with several events in a batch"
    return Group(f"Distance to the exact memory: {found.title}", how, "", table, note)
