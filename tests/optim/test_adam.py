"""Adam against torch's, and against its formula where a weight has no gradient."""

import copy

import torch

from pres.optim import Adam


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


def test_it_moves_weights_as_torchs_does_and_goes_on_from_its_state() -> None:
    model, other = twins()
    optimiser, plain = Adam(model.parameters(), 0.01), torch.optim.Adam(other.parameters(), lr=0.01)
    learn(model, optimiser, 5)
    learn(other, plain, 5)
    assert_same_weights(model, other)
    assert not torch.equal(next(model.parameters()), next(twins()[0].parameters()))
    again = copy.deepcopy(model)
    resumed = Adam(again.parameters(), 0.01)
    resumed.load_state_dict(copy.deepcopy(plain.state_dict()))
    learn(model, optimiser, 3)
    learn(again, resumed, 3)
    assert_same_weights(model, again)


def test_a_weight_without_a_gradient_goes_on_by_momentum() -> None:
    weight = torch.nn.Parameter(torch.tensor([1.0, -2.0], dtype=torch.float64))
    optimiser = Adam([weight], 0.1)
    expected, first, second = weight.detach().clone(), 0.0, 0.0
    for step, gradient in enumerate((None, 3.0, None, -1.0, None), start=1):
        optimiser.zero_grad()
        if gradient is not None:
            torch.autograd.backward((gradient * weight).sum())
        optimiser.step()
        first = 0.9 * first + 0.1 * (gradient or 0.0)
        second = 0.999 * second + 0.001 * (gradient or 0.0) ** 2
        expected -= 0.1 * (first / (1 - 0.9**step)) / ((second / (1 - 0.999**step)) ** 0.5 + 1e-8)
        assert torch.allclose(weight.detach(), expected, atol=1e-12)
