"""Plain SGD at Theorem 2's step size: its steps, its loss in sequence, when it is not run."""

import dataclasses
import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

from pres.models import MDGNN
from pres.paper.theory.coherence import memory_coherence
from pres.paper.theory.convergence import Convergence, convergence_terms
from pres.paper.theory.descent import Descent
from pres.sampling import NegativeSampler
from pres.sampling.rng import derived
from pres.training.checkpoint import state_of
from tests.models.conftest import KINDS, make, random_events, stream_of

STREAM = stream_of(random_events(seed=5, n=100))
TRAIN, SIZE = 70, 16  # four whole batches and one of six events
QUICK: dict[str, Any] = {"batch_size": SIZE, "draws": 2, "curvature_batches": 1, "iterations": 3, "seed": 3}


def weights_of(model: MDGNN) -> list[Tensor]:
    return [parameter for parameter in model.parameters() if parameter.requires_grad]


def loss_of(model: MDGNN, start: int, stop: int, negatives: Tensor) -> Tensor:
    batch = STREAM[start:stop]
    subgraph = model.sample(batch, negatives)
    positive, negative = model.score(subgraph, model.updated_memory(subgraph.nodes))
    return softplus(-positive).mean() + softplus(negative).mean()


def one_by_one(model: MDGNN, seed: int) -> tuple[float, float]:
    """The loss and ‖gradient‖² of the whole batches, one event at a time, summed up as plain numbers."""
    sampler, total = NegativeSampler(STREAM), 0.0
    gradient = [torch.zeros_like(weight) for weight in weights_of(model)]
    model.reset()
    for start in range(0, TRAIN - SIZE + 1, SIZE):
        negatives = sampler.sample(STREAM[start : start + SIZE], seed=seed).nodes
        for e in range(SIZE):
            loss = loss_of(model, start + e, start + e + 1, negatives[e : e + 1])
            total += loss.item()
            parts = torch.autograd.grad(loss, weights_of(model), allow_unused=True, materialize_grads=True)
            gradient = [whole + part for whole, part in zip(gradient, parts, strict=True)]
            model.update_state(STREAM[start + e : start + e + 1])
    count = TRAIN // SIZE * SIZE
    return total / count, sum(float((part / count).square().sum()) for part in gradient)


def stepped_by_hand(model: MDGNN, eta: float, epoch: int, seed: int) -> None:
    """One epoch of θ ← θ − η ∇L̂_i; the memory that a batch measured is what it keeps."""
    sampler = NegativeSampler(STREAM)
    model.reset()
    for start in range(0, TRAIN, SIZE):
        batch = STREAM[start : min(start + SIZE, TRAIN)]
        negatives = sampler.sample(batch, seed=derived(seed, epoch)).nodes
        subgraph = model.sample(batch, negatives)
        states = model.updated_memory(subgraph.nodes)
        positive, negative = model.score(subgraph, states)
        loss = softplus(-positive).mean() + softplus(negative).mean()
        parts = torch.autograd.grad(loss, weights_of(model), allow_unused=True, materialize_grads=True)
        with torch.no_grad():
            for weight, part in zip(weights_of(model), parts, strict=True):
                weight.copy_(weight - eta * part)
        model.update_state(batch, states)


def measured(kind: str, epochs: int, **options: Any) -> Convergence:
    return convergence_terms(make(kind, STREAM), STREAM, epochs=epochs, **QUICK | options)


@pytest.mark.parametrize("kind", KINDS)
def test_its_steps_and_its_gradients_are_those_of_a_plain_loop(kind: str) -> None:
    found = measured(kind, epochs=3, mu=0.6)
    sgd = found.sgd
    assert sgd is not None and found.no_descent is None and sgd.batches == 5
    etas = [0.6 / (sgd.lipschitz * math.sqrt(5 * t)) for t in (1, 2, 3)]
    assert sgd.step_sizes == pytest.approx(etas)
    model = make(kind, STREAM)
    expected = [one_by_one(model, seed=3)]
    for epoch, eta in enumerate(etas, start=1):
        stepped_by_hand(model, eta, epoch, seed=3)
        expected.append(one_by_one(model, seed=3))
    assert sgd.losses == pytest.approx([loss for loss, _ in expected], rel=1e-9)
    assert sgd.gradients == pytest.approx([gradient for _, gradient in expected], rel=1e-9)
    assert sgd.smallest_gradient == pytest.approx(min(gradient for _, gradient in expected), rel=1e-9)
    assert len(set(sgd.losses)) == 4  # the weights moved


def test_its_constants_are_those_before_training_and_its_bound_is_made_of_them() -> None:
    one, three = (measured("jodie", epochs=epochs, mu=0.6).sgd for epochs in (1, 3))
    assert one is not None and three is not None
    assert one.lipschitz == three.lipschitz and one.losses == three.losses[:2]  # whatever follows
    for sgd in (one, three):
        epochs, gap = sgd.epochs, sgd.losses[0] - min(sgd.losses)
        variance = math.sqrt(5) * sgd.sigma2_max * (1 + math.log(epochs))
        bound = (2 * math.sqrt(5) * sgd.lipschitz * gap / 0.36 + variance) / math.sqrt(epochs)
        assert sgd.bound == pytest.approx(bound) and bound > variance / math.sqrt(epochs)
    assert three.mu_after is None and three.lipschitz_after > 0


def test_coherence_is_measured_before_and_after_it() -> None:
    coherent, incoherent = (measured(kind, epochs=1, samples=8) for kind in ("apan", "jodie"))
    untrained = memory_coherence(
        make("apan", STREAM), STREAM, [SIZE], wrt="parameters", samples=8, seed=3
    ).minimum
    assert coherent.sgd is not None and coherent.sgd.mu == coherent.mu_before == untrained
    assert coherent.sgd.mu_after is not None and coherent.sgd.mu_after != coherent.sgd.mu
    assert incoherent.mu_before is not None and incoherent.mu_before < 0 and incoherent.sgd is None


@pytest.mark.parametrize(("mu", "why"), [(-0.3, "μ > 0 fails"), (0.0, "μ > 0 fails"), (None, "not known")])
def test_without_a_positive_coherence_it_is_not_run(mu: float | None, why: str) -> None:
    found = measured("jodie", epochs=1, mu=mu)
    assert found.sgd is None and found.bound is None and found.mu_before == mu  # never clamped
    assert found.no_descent is not None and why in found.no_descent
    plain = found.to_dict()
    assert plain["sgd"] is None and why in plain["no_descent"]


def test_it_leaves_the_training_by_adam_as_it_would_have_been() -> None:
    with_it, without = make("tgn", STREAM).train(), make("tgn", STREAM).train()
    one = convergence_terms(with_it, STREAM, epochs=2, mu=0.6, **QUICK)
    other = convergence_terms(without, STREAM, epochs=2, mu=-1.0, **QUICK)
    assert one.sgd is not None and other.sgd is None
    assert (one.losses, one.gradients) == (other.losses, other.gradients)
    theirs = state_of(without)
    for name, value in state_of(with_it).items():
        assert torch.equal(value, theirs[name]), name
    assert with_it.training == without.training
    assert all(parameter.grad is None for parameter in with_it.parameters())


def test_what_it_says_of_the_bound_and_of_its_constants() -> None:
    given: dict[str, Any] = {"batches": 16, "epochs": 4, "lipschitz": 5.0, "sigma2_max": 0.2, "mu": 0.5}
    sgd = Descent(losses=(1.5, 1.2), gradients=(3.0, 0.5), lipschitz_after=4.0, mu_after=0.7, **given)
    assert sgd.holds and sgd.vacuous and sgd.constants_hold  # a bound of about 25
    flat = dataclasses.replace(sgd, losses=(1.5, 1.5))  # about 0.95
    assert flat.holds and not flat.vacuous
    assert not dataclasses.replace(flat, gradients=(3.0, 1.1)).holds
    assert not dataclasses.replace(sgd, lipschitz_after=5.1).constants_hold
    assert not dataclasses.replace(sgd, mu_after=0.4).constants_hold
    assert dataclasses.replace(sgd, mu_after=None).constants_hold
    plain = sgd.to_dict()
    assert (plain["holds"], plain["vacuous"], plain["constants_hold"]) == (True, True, True)
    assert plain["bound"] == sgd.bound and plain["mu_after"] == 0.7
