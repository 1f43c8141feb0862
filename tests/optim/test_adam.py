"""LAMB against its formula, one weight at a time; Adam of all weights in one tensor against torch's."""

import copy
import math
import pickle

import pytest
import torch

from pres.errors import OptionError
from pres.optim.adam import LAMB, FlatAdam, optimiser_of


def test_lamb_moves_as_its_formula_says() -> None:
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(3, 2, generator=generator, dtype=torch.float64)
    gradients = [torch.randn(3, 2, generator=generator, dtype=torch.float64) for _ in range(4)]
    weight = torch.nn.Parameter(start.clone())
    optimiser = LAMB([weight], lr=0.1)
    expected, first, second = start.tolist(), [[0.0] * 2 for _ in range(3)], [[0.0] * 2 for _ in range(3)]
    for step, gradient in enumerate(gradients, start=1):
        weight.grad = gradient.clone()
        optimiser.step()
        move = [[0.0] * 2 for _ in range(3)]
        for i in range(3):
            for j in range(2):
                g = float(gradient[i, j])
                first[i][j] = 0.9 * first[i][j] + 0.1 * g
                second[i][j] = 0.999 * second[i][j] + 0.001 * g * g
                corrected = second[i][j] / (1 - 0.999**step)
                move[i][j] = first[i][j] / (1 - 0.9**step) / (math.sqrt(corrected) + 1e-8)
        length = math.sqrt(sum(v * v for row in expected for v in row))
        of_move = math.sqrt(sum(v * v for row in move for v in row))
        expected = [
            [expected[i][j] - 0.1 * length / of_move * move[i][j] for j in range(2)] for i in range(3)
        ]
        assert torch.allclose(weight.detach(), torch.tensor(expected, dtype=torch.float64), atol=1e-12)


def test_a_weight_of_zeros_leaves_zero() -> None:
    weight = torch.nn.Parameter(torch.zeros(4))
    weight.grad = torch.ones(4)
    LAMB([weight], lr=0.5).step()
    assert torch.allclose(weight.detach(), torch.full((4,), -0.5))


@pytest.mark.parametrize("name", ["adam", "lamb"])
def test_only_weights_that_learn_are_moved(name: str) -> None:
    layer = torch.nn.Linear(2, 2)
    layer.bias.requires_grad_(False)
    before = layer.bias.clone(), layer.weight.detach().clone()
    optimiser = optimiser_of(layer, name, 0.1)
    layer(torch.ones(1, 2)).sum().backward()
    optimiser.step()
    assert torch.equal(layer.bias, before[0]) and not torch.equal(layer.weight.detach(), before[1])


def twins() -> tuple[torch.nn.Sequential, torch.nn.Sequential]:
    torch.manual_seed(0)
    one = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    return one, copy.deepcopy(one)


def learn(model: torch.nn.Module, optimiser: torch.optim.Optimizer, steps: int) -> None:
    generator = torch.Generator().manual_seed(1)
    for _ in range(steps):
        optimiser.zero_grad()
        model(torch.randn(8, 3, generator=generator)).square().sum().backward()
        optimiser.step()


def assert_same_weights(one: torch.nn.Module, other: torch.nn.Module) -> None:
    for mine, theirs in zip(one.parameters(), other.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-7)


def test_weights_in_one_tensor_move_as_one_by_one() -> None:
    model, other = twins()
    flat, plain = FlatAdam(model.parameters(), 0.01), torch.optim.Adam(other.parameters(), lr=0.01)
    learn(model, flat, 5)
    learn(other, plain, 5)
    assert_same_weights(model, other)
    assert not torch.equal(next(model.parameters()), next(twins()[0].parameters()))


def test_the_state_of_weights_in_one_tensor_is_that_of_each() -> None:
    model, other = twins()
    flat, plain = FlatAdam(model.parameters(), 0.01), torch.optim.Adam(other.parameters(), lr=0.01)
    assert flat.state_dict()["state"] == {}
    learn(model, flat, 3)
    plain.load_state_dict(copy.deepcopy(flat.state_dict()))
    other.load_state_dict(model.state_dict())
    for i, weight in enumerate(model.parameters()):
        assert flat.state_dict()["state"][i]["exp_avg"].shape == weight.shape
    learn(model, flat, 3)
    learn(other, plain, 3)
    assert_same_weights(model, other)
    again = twins()[0]
    third = FlatAdam(again.parameters(), 0.01)
    third.load_state_dict(copy.deepcopy(plain.state_dict()))
    again.load_state_dict(other.state_dict())
    learn(again, third, 3)
    learn(model, flat, 3)
    assert_same_weights(model, again)


def test_a_model_that_was_moved_goes_on_learning() -> None:
    model, other = twins()
    flat, plain = FlatAdam(model.parameters(), 0.01), torch.optim.Adam(other.parameters(), lr=0.01)
    learn(model, flat, 3)
    learn(other, plain, 3)
    for moved in (model, other):
        moved.double()
    flat.zero_grad()
    assert flat.state_dict()["state"][0]["exp_avg"].dtype == torch.float64
    for moved in (model, other):
        moved.float()
    learn(model, flat, 3)
    learn(other, plain, 3)
    assert_same_weights(model, other)


def test_weights_of_several_types_have_an_optimiser_but_are_not_put_together() -> None:
    model = twins()[0]
    model[2].double()
    assert not isinstance(optimiser_of(model, "adam", 0.1), FlatAdam)
    flat = FlatAdam(twins()[0].parameters(), 0.1)
    flat.weights[0].data = flat.weights[0].data.double()
    with pytest.raises(OptionError, match="several types"):
        flat.zero_grad()


def test_gradients_that_lie_elsewhere_are_taken_all_the_same() -> None:
    model, other = twins()
    flat, plain = FlatAdam(model.parameters(), 0.01), torch.optim.Adam(other.parameters(), lr=0.01)
    for _ in range(3):
        for learner, optimiser in ((model, flat), (other, plain)):
            learner.zero_grad(set_to_none=True)
            learner(torch.ones(2, 3)).square().sum().backward()
            optimiser.step()
    assert_same_weights(model, other)


def test_a_weight_without_a_gradient_has_one_of_zero() -> None:
    model, other = twins()
    flat, plain = FlatAdam(model.parameters(), 0.01), torch.optim.Adam(other.parameters(), lr=0.01)
    for _ in range(2):
        for learner, optimiser in ((model, flat), (other, plain)):
            optimiser.zero_grad()
            learner[0](torch.ones(2, 3)).square().sum().backward()
            optimiser.step()
    assert_same_weights(model, other)
    saved = copy.deepcopy(plain.state_dict())
    assert set(saved["state"]) == {0, 1}
    flat.load_state_dict(saved)
    learn(model, flat, 2)
    of_all = FlatAdam(twins()[1].parameters(), 0.01)
    of_all.load_state_dict({**saved, "state": {1: saved["state"][1]}})
    assert of_all.state_dict()["state"][0]["exp_avg"].count_nonzero() == 0
    assert float(of_all.state_dict()["state"][1]["step"]) == 2


def test_a_state_of_other_weights_is_refused() -> None:
    model, other = twins()
    few = torch.optim.Adam(list(other.parameters())[:2], lr=0.01)
    with pytest.raises(OptionError, match="2 weights is none of 4"):
        FlatAdam(model.parameters(), 0.01).load_state_dict(few.state_dict())


def test_a_copy_learns_by_itself() -> None:
    model, _ = twins()
    flat = FlatAdam(model.parameters(), 0.01)
    learn(model, flat, 2)
    copied, of_copy = copy.deepcopy((model, flat))
    learn(copied, of_copy, 3)
    assert not torch.equal(next(copied.parameters()), next(model.parameters()))
    learn(model, flat, 3)
    assert_same_weights(model, copied)


def test_released_weights_are_tensors_of_their_own() -> None:
    model, _ = twins()
    before = len(pickle.dumps(model))
    flat = FlatAdam(model.parameters(), 0.01)
    assert len(pickle.dumps(model)) == before
    learn(model, flat, 2)
    values = [weight.detach().clone() for weight in model.parameters()]
    flat.release()
    assert all(torch.equal(one, other) for one, other in zip(values, model.parameters(), strict=True))
    assert {weight.untyped_storage().nbytes() for weight in model.parameters()} == {12 * 4, 4 * 4, 4}
    assert len(pickle.dumps(model)) == before


def test_gradients_that_were_thrown_away_are_found_again() -> None:
    model, other = twins()
    flat, plain = FlatAdam(model.parameters(), 0.01), torch.optim.Adam(other.parameters(), lr=0.01)
    learn(model, flat, 1)
    model.zero_grad(set_to_none=True)
    learn(model, flat, 2)
    learn(other, plain, 1)
    learn(other, plain, 2)
    assert_same_weights(model, other)
