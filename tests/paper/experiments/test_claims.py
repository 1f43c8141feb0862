"""The table of claims: what agrees is said to agree, and what does not is not."""

from typing import Any

from pres.paper.experiments.claims import agreement, claims
from pres.paper.experiments.results import Results
from tests.paper.experiments.small import TINY

SGD: dict[str, Any] = {
    "smallest_gradient": 0.2,
    "gradients": [9.0, 0.2],
    "bound": 7.0,
    "holds": True,
    "vacuous": False,
    "mu": 0.5,
    "mu_after": 0.4,
    "lipschitz": 3.0,
    "lipschitz_after": 2.0,
}
ABOUT = {"dataset": "wikipedia", "variant": "featureless", "model": "TGN"}


def row(measurement: str, result: dict[str, Any], **factors: Any) -> dict[str, Any]:
    place = {"measurement": measurement, "dataset": "wikipedia", "model": "tgn"} | factors
    return {"factors": place, "measures": result}


def coherence(median: float, not_positive: float, beta: float) -> dict[str, Any]:
    of_b = {"batch_size": 200, "quantiles": {"0.5": median}, "not_positive": not_positive}
    return row("coherence", ABOUT | {"rows": [of_b]}, beta=beta)


def holds(*rows: dict[str, Any]) -> list[Any]:
    return [cells[-1] for cells in claims(Results(TINY, rows)).rows]


def test_proposition_1_holds_where_every_setting_is_nearer() -> None:
    settings = [(0, True), (0, True), (2, True), (2, False)]
    rows = [{"previous": "true", "gain": "learned", "missing": m, "holds": h} for m, h in settings]
    assert holds(row("state-space", {"rows": rows, "seeds": 2})) == [True, False]


def test_theorem_1_needs_a_falling_variance_above_its_bound() -> None:
    def result(fitted: float, epoch: float) -> dict[str, Any]:
        exponents = [{"loss": "mean", "fitted": {"epoch": fitted}, "beyond": {"epoch": fitted + 2}}]
        rows = [{"loss": "mean", "epoch_independent": epoch, "bound": 1.0}]
        return ABOUT | {"exponents": exponents, "rows": rows}

    found = (result(-2.1, 2.0), result(0.5, 2.0), result(-2.1, 0.5))
    assert holds(*(row("variance", one, model=str(i)) for i, one in enumerate(found))) == [True, False, False]


def test_theorem_2_has_no_bound_without_coherence() -> None:
    common = ABOUT | {"smallest_gradient": 0.2, "lipschitz": 3.0, "mu_samples": 5}
    good = common | {"bound": 7.0, "mu": 0.5, "sgd": SGD}
    bad = common | {"bound": None, "mu": -0.25, "mu_before": -0.25, "sgd": None}
    bad |= {"no_descent": "the assumption μ > 0 fails"}
    table = claims(Results(TINY, (row("convergence", good), row("convergence", bad, model="apan"))))
    assert [cells[-1] for cells in table.rows] == [True, False]
    assert "μ = −0.25 of 5 events: the assumption μ > 0 fails" in str(table.rows[1][3])
    assert "no SGD run" in str(table.rows[1][3]) and "says nothing" not in str(table.rows[0][3])


def test_theorem_2_rests_on_plain_sgd_and_not_on_adam() -> None:
    """Adam's terms agree in all of these; only the first has an SGD run that does."""
    runs = (SGD, SGD | {"holds": False, "bound": 0.1}, SGD | {"mu_after": -0.1}, None)
    terms: dict[str, Any] = {"smallest_gradient": 0.2, "bound": 7.0, "mu": 0.5, "mu_samples": 5}
    adam = ABOUT | terms | {"mu_before": 0.5, "no_descent": None}
    rows = [row("convergence", adam | {"sgd": run}, model=str(i)) for i, run in enumerate(runs)]
    assert holds(*rows) == [True, False, False, False]
    empty = row("convergence", adam | {"sgd": SGD | {"bound": 70.0, "vacuous": True, "mu_after": None}})
    (cells,) = claims(Results(TINY, (empty,))).rows
    assert cells[-1] is True and "before training, 9, so it says nothing" in str(cells[3])


def test_the_objective_is_held_against_training_without_it() -> None:
    assert holds(coherence(0.9, 0.0, 0.0), coherence(0.95, 0.0, 0.1)) == [True, True]
    assert holds(coherence(0.9, 0.1, 0.0), coherence(0.8, 0.0, 0.1)) == [False, False]
    assert holds(coherence(0.8, 0.0, 0.1)) == []  # nothing to hold it against
    groups = Results(TINY, (coherence(0.9, 0.1, 0.0), coherence(0.95, 0.0, 0.1)))
    assert agreement(groups) == ["1 of 2 claims agree with what was measured."]
