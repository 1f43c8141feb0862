"""A memory carried on in time, by hand and as autograd has it."""

import torch
from torch import Tensor

from pres.nn.projection import projected, projected_plainly


def inputs() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    memory = torch.randn(5, 3, generator=generator, dtype=torch.float64).requires_grad_()
    weight = torch.randn(3, generator=generator, dtype=torch.float64).requires_grad_()
    elapsed = torch.rand(9, generator=generator, dtype=torch.float64)
    return memory, torch.tensor([0, 4, 4, 1, 0, 2, 2, 2, 0]), elapsed, weight


def test_results_and_gradients_are_those_of_autograd() -> None:
    memory, roots, elapsed, weight = inputs()
    found, expected = (way(memory, roots, elapsed, weight) for way in (projected, projected_plainly))
    assert torch.allclose(found, expected, atol=1e-14)
    direction = torch.randn(9, 3, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    by_hand, plain = (
        torch.autograd.grad(result, (memory, weight), direction) for result in (found, expected)
    )
    for one, other in zip(by_hand, plain, strict=True):
        assert torch.allclose(one, other, atol=1e-13)


def test_the_gradient_has_a_gradient_also_of_memory_that_is_given() -> None:
    memory, roots, elapsed, weight = inputs()
    assert torch.autograd.gradgradcheck(lambda m, w: projected(m, roots, elapsed, w), (memory, weight))
    given = memory.detach()
    (first,) = torch.autograd.grad(
        projected(given, roots, elapsed, weight).square().sum(), weight, create_graph=True
    )
    (second,) = torch.autograd.grad(first.sum(), weight)
    expected = 2 * (elapsed.unsqueeze(1) * given[roots]).square().sum(0)  # of (1 + e w)² s² twice by w
    assert torch.allclose(second, expected, atol=1e-12)
