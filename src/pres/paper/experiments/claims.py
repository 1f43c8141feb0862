"""The theory as a table of claims: what the paper says, what was measured, and whether that agrees."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pres.paper.experiments.results import Results
from pres.paper.experiments.table import Cell, Heading, Table

MEASUREMENTS = [("variance", 0.0), ("convergence", 0.0), ("coherence", 0.0), ("coherence", 0.1)]  # with β
HEADINGS = (
    Heading("claim", "claim"),
    Heading("on", "measured on"),
    Heading("paper", "the paper"),
    Heading("measured", "measured"),
    Heading("holds", "agrees"),
)


def claims(results: Results) -> Table:
    """Return one row per claim and model."""
    rows: list[tuple[Cell, ...]] = []
    without: dict[str, dict[str, Any]] = {}  # coherence after training without the objective, by model
    for row in results.rows:
        factors, of = row["factors"], row["measures"]
        if factors["measurement"] == "coherence":
            rows += _coherence(of, factors["beta"], without.get(_on(of)))
            without |= {} if factors["beta"] else {_on(of): of}
        else:
            rows += _ROWS[factors["measurement"]](of)
    return Table(HEADINGS, tuple(rows))


def _state_space(of: dict[str, Any]) -> Iterator[tuple[Cell, ...]]:
    settings = dict.fromkeys((row["previous"], row["gain"]) for row in of["rows"])
    for previous, gain in settings:
        own = [row for row in of["rows"] if (row["previous"], row["gain"]) == (previous, gain)]
        for name, some in (
            ("no transition missing", [row for row in own if row["missing"] == 0]),
            ("transitions missing", [row for row in own if row["missing"] > 0]),
        ):
            nearer = sum(row["holds"] for row in some)
            yield (
                f"Proposition 1: previous state {previous}, γ {gain}, {name}",
                f"a simulated linear system, {of['seeds']} seeds",
                "PRES is nearer to the true state than STANDARD",
                f"nearer at {nearer} of {len(some)} settings of noise and missing transitions",
                nearer == len(some),
            )


def _variance(of: dict[str, Any]) -> Iterator[tuple[Cell, ...]]:
    mean = next(found for found in of["exponents"] if found["loss"] == "mean")
    fitted = mean["fitted"]["epoch"]
    rows = [row for row in of["rows"] if row["loss"] == "mean"]
    above = sum(row["epoch_independent"] >= row["bound"] for row in rows)
    slope = "no fit" if fitted is None else f"b to the {fitted:.2f}, of which −2 by the mean itself"
    yield (
        "Theorem 1: the gradient of an epoch varies more at small batches",
        _on(of),
        "its variance is at least |E|/b · σ²_min, and grows as b falls",
        _minus(f"variance goes with {slope}; at or above the bound at {above} of {len(rows)} sizes"),
        above == len(rows) and fitted is not None and fitted < 0,
    )


def _convergence(of: dict[str, Any]) -> Iterator[tuple[Cell, ...]]:
    sgd = of["sgd"]
    if sgd is None:
        mu = "" if of["mu_before"] is None else f"μ = {of['mu_before']:.3g} of {of['mu_samples']} events: "
        measured = f"{mu}{of['no_descent']}; no step size, no bound, no SGD run"
    else:
        smallest, bound = sgd["smallest_gradient"], sgd["bound"]
        after = "" if sgd["mu_after"] is None else f"μ = {sgd['mu_after']:.3g}, "
        after = f"{after}L = {sgd['lipschitz_after']:.3g} after training"
        constants = f"μ = {sgd['mu']:.3g}, L = {sgd['lipschitz']:.3g} ({after})"
        measured = f"‖∇L‖² falls to {smallest:.3g}; the bound is {bound:.3g} at {constants}"
        if sgd["vacuous"]:
            measured += f"; it is above ‖∇L‖² before training, {sgd['gradients'][0]:.3g}, so it says nothing"
    yield (
        "Theorem 2: the smallest gradient is bounded by terms in K, L, σ², 1/μ²",
        f"{_on(of)}, plain SGD at the theorem’s step size",
        "min ‖∇L‖² ≤ bound (with 1 + log T), where memory coherence μ > 0",
        _minus(measured),
        sgd is not None and sgd["holds"] and (sgd["mu_after"] is None or sgd["mu_after"] > 0),
    )


def _coherence(of: dict[str, Any], beta: float, without: dict[str, Any] | None) -> Iterator[tuple[Cell, ...]]:
    rows = {row["batch_size"]: row for row in of["rows"] if row["quantiles"] is not None}
    medians = {size: row["quantiles"]["0.5"] for size, row in rows.items()}
    if not beta:
        said = "; ".join(
            f"b = {size:,}: median μ {medians[size]:.2f}, {row['not_positive']:.0%} ≤ 0"
            for size, row in rows.items()
        )
        yield (
            "Definition 3: memory coherence is above 0, also in large batches",
            _on(of),
            "μ > 0 is what Theorem 2 rests on",
            _minus(said),
            bool(rows) and all(row["not_positive"] == 0 for row in rows.values()),
        )
    elif without is not None:
        bare = {row["batch_size"]: row["quantiles"]["0.5"] for row in without["rows"] if row["quantiles"]}
        pairs = [(size, bare[size], median) for size, median in medians.items() if size in bare]
        raised = sum(median > before for _, before, median in pairs)
        said = "; ".join(
            f"b = {size:,}: median μ {before:.2f} → {median:.2f}" for size, before, median in pairs
        )
        yield (
            f"Eq. 10: the objective (β = {beta:g}) raises memory coherence",
            _on(of),
            "smoothing memory raises μ",
            _minus(f"raised at {raised} of {len(pairs)} sizes ({said})"),
            bool(pairs) and raised == len(pairs),
        )


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _on(of: dict[str, Any]) -> str:
    variant = "" if of["variant"] is None else f" ({of['variant']})"
    return f"{of['model']} on {of['dataset']}{variant}"


_ROWS = {
    "state-space": _state_space,
    "variance": _variance,
    "convergence": _convergence,
}


def agreement(results: Results) -> list[str]:
    """Return how many of the claims agree with what was measured."""
    rows = claims(results).rows
    return [f"{sum(row[-1] is True for row in rows)} of {len(rows)} claims agree with what was measured."]
