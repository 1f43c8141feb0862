import math
from pathlib import Path

import numpy as np
import pytest
import torch
from matplotlib import image

from pres.errors import OptionError
from pres.paper.theory.state_space import (
    GAPS,
    Paths,
    Previous,
    System,
    analytic_gamma,
    follow,
    learned_gamma,
    simulate,
    state_space_errors,
)

SETTINGS: tuple[Previous, Previous] = ("true", "filtered")


def followed_by_hand(paths: Paths, seed: int, gamma: float, previous: Previous) -> tuple[float, float]:
    """Mean error and surprise of one seed, node after node and step after step, from the definitions."""
    gap, state, measured = (values[:, seed].numpy() for values in (paths.gap, paths.state, paths.measured))
    errors, surprises = [], []
    for node in range(gap.shape[1]):
        rates: list[np.ndarray] = []
        estimate = state[0, node]
        for k in range(len(gap)):
            start = state[k, node] if previous == "true" else estimate
            if rates:
                moved = gap[k, node, 0] * np.mean(rates, axis=0)
                surprises.append(np.sum((estimate + moved - measured[k, node]) ** 2))
                estimate = gamma * measured[k, node] + (1 - gamma) * (start + moved)
            else:
                estimate = measured[k, node]
            reached = state[k + 1, node] if previous == "true" else estimate
            rates.append((reached - start) / gap[k, node, 0])
            errors.append(np.linalg.norm(estimate - state[k + 1, node]))
    return float(np.mean(errors)), float(np.mean(surprises))


@pytest.mark.parametrize("previous", SETTINGS)
def test_all_nodes_seeds_and_gains_at_once_equal_a_loop(previous: Previous) -> None:
    paths = simulate(System(noise=0.7, missing=2, nodes=3, dims=2, steps=6), seeds=2)
    gammas = torch.tensor([[0.3, 0.3], [0.9, 0.9], [1.0, 1.0]], dtype=torch.float64)
    error, surprise = follow(paths, gammas, previous)
    for i, gamma in enumerate((0.3, 0.9, 1.0)):
        for seed in range(2):
            expected = followed_by_hand(paths, seed, gamma, previous)
            assert (float(error[i, seed]), float(surprise[i, seed])) == pytest.approx(expected, rel=1e-12)


def test_the_simulation_is_the_system_it_says() -> None:
    system = System(noise=0.3, missing=2, drift=2.0, spread=0.5, nodes=400, dims=2, steps=50)
    paths = simulate(system, seeds=2)
    moved = paths.state[1:] - paths.state[:-1]
    lag = paths.state[1:] - paths.measured
    mean_gap, square_gap = (GAPS[0] + GAPS[1]) / 2, (GAPS[1] ** 3 - GAPS[0] ** 3) / 3 / (GAPS[1] - GAPS[0])
    assert float(paths.gap.mean()) == pytest.approx(3 * mean_gap, rel=0.01)
    assert float(moved.mean()) == pytest.approx(3 * mean_gap * 2.0, rel=0.01)
    one = square_gap * (0.5**2 + 2.0**2) - (mean_gap * 2.0) ** 2  # variance of one transition
    assert float(moved.var()) == pytest.approx(3 * one, rel=0.02)
    assert float(lag.mean()) == pytest.approx(2 * mean_gap * 2.0, rel=0.01)  # two of three are missing
    assert float(lag.var()) == pytest.approx(2 * one + 0.3**2, rel=0.02)
    assert torch.equal(simulate(system, seeds=1).measured[:, 0], paths.measured[:, 0])  # a seed is a seed


@pytest.mark.parametrize("missing", [0, 2])
@pytest.mark.parametrize("previous", SETTINGS)
def test_the_analytic_gain_is_the_best_of_all_when_the_drift_is_known(
    previous: Previous, missing: int
) -> None:
    system = System(noise=0.6, missing=missing, drift=0.8, spread=0.5, nodes=4_000, dims=1, steps=40)
    paths = simulate(system, seeds=1)
    best = analytic_gamma(system, previous)

    def squared_error(gamma: float) -> float:
        estimate, found = paths.state[0], []
        for k in range(system.steps):
            start = paths.state[k] if previous == "true" else estimate
            predicted = start + paths.gap[k] * system.drift
            estimate = gamma * paths.measured[k] + (1 - gamma) * predicted
            error = estimate - paths.state[k + 1]
            if previous == "filtered":
                error = error - error.mean()  # the mean lag is in every estimate
            found.append(float(error.square().mean()))
        return float(np.mean(found[20:]))  # in its steady state

    assert 0 < best < 1
    assert squared_error(best) < min(squared_error(best - 0.05), squared_error(min(1.0, best + 0.05)))


def test_without_missing_transitions_the_gain_is_the_textbook_one() -> None:
    system = System(noise=0.6, spread=0.5)
    square_gap = 13 / 12  # of a gap uniform between 0.5 and 1.5
    q, r = square_gap * 0.25, 0.36
    assert analytic_gamma(system, "true") == pytest.approx(q / (q + r))
    p = q
    for _ in range(200):  # the Riccati recursion of a scalar Kalman filter
        p = p * r / (p + r) + q
    assert analytic_gamma(system, "filtered") == pytest.approx(p / (p + r))


def test_proposition_1_holds_in_the_proofs_setting_over_twenty_seeds() -> None:
    found = state_space_errors(noise=(0.2, 0.5, 1.0, 2.0), missing=(0,), seeds=20)
    rows = [row for row in found.rows if row.previous == "true"]
    assert len(rows) == 8
    for row in rows:
        assert row.pres < row.standard and row.holds
        assert row.seeds_below == 20


def test_it_stops_holding_for_the_algorithm_where_measurements_lag() -> None:
    found = state_space_errors(noise=(0.2,), missing=(0, 3), seeds=20)
    algorithm = {(row.missing, row.gain): row for row in found.rows if row.previous == "filtered"}
    for gain in ("analytic", "learned"):
        assert algorithm[0, gain].holds
        assert not algorithm[3, gain].holds  # its prediction starts from a state that lags as well


def test_the_learned_gain_sees_no_truth_and_is_near_the_best_in_the_proofs_setting() -> None:
    system = System(noise=0.6, nodes=200)
    paths = simulate(system, seeds=2)
    assert learned_gamma(paths, "true").tolist() == pytest.approx(
        [analytic_gamma(system, "true")] * 2, abs=0.06
    )
    hidden = Paths(paths.gap, torch.full_like(paths.state, math.nan), paths.measured)
    hidden.state[0] = paths.state[0]  # where everything starts is known
    assert torch.equal(learned_gamma(hidden, "filtered"), learned_gamma(paths, "filtered"))


def test_the_result_is_plain_values_and_a_picture(tmp_path: Path) -> None:
    found = state_space_errors(noise=(0.5, 1.0), missing=(0, 1), seeds=2, nodes=4, steps=5)
    plain = found.to_dict()
    assert (plain["seeds"], plain["nodes"], len(plain["rows"])) == (2, 4, 2 * 2 * 4)
    assert plain["rows"][0]["holds"] == found.rows[0].holds
    alone = state_space_errors(noise=(0.5,), missing=(0,), seeds=1, nodes=4, steps=5)
    assert alone.rows[0].pres_std == 0.0
    pixels = image.imread(found.save_png(tmp_path / "errors.png"))
    assert pixels.shape[1] > 1000 and pixels[..., :3].std() > 0.05


@pytest.mark.parametrize(
    "wrong",
    [
        {"noise": (0.0,)},
        {"noise": (math.nan,)},
        {"noise": ()},
        {"missing": (-1,)},
        {"seeds": 0},
        {"steps": 1},
        {"spread": -1.0},
    ],
    ids=str,
)
def test_what_cannot_be_simulated_is_said(wrong: dict[str, float]) -> None:
    with pytest.raises(OptionError):
        state_space_errors(**wrong)  # type: ignore[arg-type]
