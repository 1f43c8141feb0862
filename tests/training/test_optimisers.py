"""LAMB against its formula, one weight at a time."""

import math

import pytest
import torch

from pres.training.optimisers import LAMB, optimiser_of


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
