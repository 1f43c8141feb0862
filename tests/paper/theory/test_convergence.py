import math
from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib import image

import pres
from pres.errors import OptionError
from pres.models.registry import build_model
from pres.paper.theory.convergence import Convergence, convergence_terms
from pres.paper.theory.variance import gradient_variance
from pres.sampling import NegativeSampler
from pres.training.checkpoint import state_of

EVENTS = pres.load("synthetic", num_events=1_500)
SMALL = {"memory_dim": 8, "time_dim": 4}


def terms(**changed: Any) -> Convergence:
    given: dict[str, Any] = {
        "dataset": "d",
        "variant": None,
        "model": "TGN",
        "weights": "w",
        "batch_size": 10,
        "batches": 16,
        "epochs": 4,
        "measured_events": 160,
        "lr": 0.001,
        "losses": (1.5, 1.2, 1.3),
        "gradients": (3.0, 0.5, 0.7),
        "lipschitz": 5.0,
        "sigma2_max": 0.2,
        "mu": 0.5,
    }
    return Convergence(**given | changed)


def test_the_bound_is_the_theorems() -> None:
    found = terms()
    gap = 1.5 - 1.2
    expected = (2 * 4 * 5.0 * gap / 0.25 + 4 * 0.2 * (1 + math.log(4))) * (1 / 2)
    assert found.bound == pytest.approx(expected)
    assert found.gap_term == pytest.approx(expected - found.variance_term)
    assert found.smallest_gradient == 0.5 and found.loss_gap == pytest.approx(gap)
    assert found.assumption_holds is True
    assert found.step_sizes == pytest.approx([0.5 / (5.0 * math.sqrt(16 * t)) for t in (1, 2, 3, 4)])


@pytest.mark.parametrize("epochs", [1, 2, 3, 10, 50])
def test_the_bound_is_no_less_than_what_the_proof_sums(epochs: int) -> None:
    """The last line before the proof puts the step size in; with log T alone it would be less."""
    found = terms(epochs=epochs, losses=(1.5, 1.5))  # no loss gap: the variance term alone
    etas = [0.5 / (5.0 * math.sqrt(16 * t)) for t in range(1, epochs + 1)]
    squares, total = sum(eta**2 for eta in etas), sum(etas)
    proof = 16 * 0.2 * 5.0 * squares / (total * 0.5)
    assert found.bound is not None and found.bound >= proof * (1 - 1e-12)
    assert found.bound == pytest.approx(4 * 0.2 * (1 + math.log(epochs)) / math.sqrt(epochs))
    if epochs == 1:
        assert found.bound == pytest.approx(proof)  # Σ 1/t = 1 there, and log 1 = 0


@pytest.mark.parametrize(("mu", "holds"), [(0.0, False), (-0.3, False), (None, None)])
def test_without_a_positive_coherence_there_is_no_bound_and_no_step_size(
    mu: float | None, holds: bool | None, tmp_path: Path
) -> None:
    found = terms(mu=mu)
    assert found.mu == mu and found.assumption_holds is holds  # said, not clamped
    assert found.bound is None and found.step_sizes is None and found.gap_term is None
    assert found.variance_term == terms().variance_term  # needs none
    assert found.to_dict()["bound"] is None
    assert found.save_png(tmp_path / "terms.png").stat().st_size > 10_000


def test_the_terms_are_measured_at_the_weights_of_the_training() -> None:
    settings: dict[str, Any] = {"batch_size": 100, "epochs": 2, "lr": 0.002, "seed": 1}
    made = build_model("jodie", EVENTS, SMALL, seed=1)
    found = convergence_terms(made, EVENTS, mu=0.2, draws=3, limit=450, weights="new", **settings)

    model = build_model("jodie", EVENTS, SMALL, seed=1)
    sampler, part = NegativeSampler(EVENTS), EVENTS[:400]  # whole batches of 450 events

    def loss() -> float:
        model.eval().memory.reset()
        total = 0.0
        for start in range(0, 400, 100):
            batch = part[start : start + 100]
            subgraph = model.sample(batch, sampler.sample(batch, seed=1).nodes)
            positive, negative = model.score(subgraph, model.updated_memory(subgraph.nodes))
            total += (torch.log1p((-positive).exp()) + torch.log1p(negative.exp())[:, 0]).mean().item()
            model.update_state(batch)
        return total / 4

    untrained = loss()
    before = gradient_variance(model, EVENTS, [100], draws=3, limit=450, seed=1).rows[0].largest
    pres.fit(model, EVENTS, patience=2, lr_decay="none", **settings)
    trained = state_of(model)
    after = gradient_variance(model, EVENTS, [100], draws=3, limit=450, seed=1).rows[0].largest
    assert found.losses[0] == pytest.approx(untrained, rel=1e-5)
    assert loss() == pytest.approx(min(found.losses[1:], key=lambda one: abs(one - loss())), rel=1e-5)
    assert len(found.losses) == len(found.gradients) == 3
    assert found.sigma2_max == pytest.approx(max(before, after), rel=1e-5)
    assert found.lipschitz > 0
    assert found.batches == math.ceil(len(EVENTS.split().train) / 100)
    assert (found.measured_events, found.lr, found.weights) == (400, 0.002, "new")
    for name, value in made.state_dict().items():
        assert torch.equal(trained[name], value)  # measuring does not disturb training


def test_the_curvature_is_the_largest_of_the_batches_and_the_picture_is_drawn(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"batch_size": 150, "epochs": 1, "draws": 2, "mu": 0.5}
    one, more = (
        convergence_terms(
            build_model("jodie", EVENTS, SMALL), EVENTS, curvature_batches=count, limit=600, **settings
        )
        for count in (1, 4)
    )
    assert more.lipschitz >= one.lipschitz
    assert more.variance_term == pytest.approx(math.sqrt(more.batches) * more.sigma2_max)  # 1 + log 1
    pixels = image.imread(more.save_png(tmp_path / "terms.png"))
    assert pixels.shape[1] > 1000 and pixels[..., :3].std() > 0.05


def test_what_cannot_be_measured_is_said() -> None:
    model = build_model("jodie", EVENTS, SMALL)
    with pytest.raises(OptionError, match="mu=nan"):
        convergence_terms(model, EVENTS, mu=math.nan)
    with pytest.raises(OptionError, match="curvature_batches=0"):
        convergence_terms(model, EVENTS, curvature_batches=0)
    for mu in (None, 0.2):
        with pytest.raises(OptionError, match="epochs=0"):
            convergence_terms(model, EVENTS, epochs=0, mu=mu)
