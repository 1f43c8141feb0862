"""Gradients by hand against those of autograd."""

import pytest
import torch
from torch import Tensor

from pres.nn.functional import gru_of_own_state


def make() -> tuple[torch.nn.GRUCell, Tensor, Tensor, list[Tensor]]:
    torch.manual_seed(0)
    cell = torch.nn.GRUCell(5, 3).double()
    h, rest = (torch.randn(7, n, dtype=torch.float64, requires_grad=True) for n in (3, 2))
    return cell, torch.cat([h, rest], dim=1), h, [h, rest, *cell.parameters()]


def test_the_cell_and_its_gradient_are_torchs() -> None:
    cell, x, h, inputs = make()
    found, expected = gru_of_own_state(cell, x, h), cell(x, h)
    assert torch.allclose(found, expected, atol=1e-14)
    direction = torch.randn(7, 3, dtype=torch.float64)
    for one, other in zip(
        torch.autograd.grad(found, inputs, direction, retain_graph=True),
        torch.autograd.grad(expected, inputs, direction, retain_graph=True),
        strict=True,
    ):
        assert torch.allclose(one, other, atol=1e-13)


def test_its_gradient_has_a_gradient() -> None:
    cell, x, h, inputs = make()

    def second(result: Tensor) -> tuple[Tensor, ...]:
        first = torch.autograd.grad(result.sin().sum(), inputs, create_graph=True)
        squares: Tensor = sum((g * g).sum() for g in first)  # type: ignore[assignment]
        return torch.autograd.grad(squares, inputs, retain_graph=True)

    for one, other in zip(second(gru_of_own_state(cell, x, h)), second(cell(x, h)), strict=True):
        assert torch.allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("frozen", ["x", "h"])
def test_an_input_that_needs_no_gradient_gets_none(frozen: str) -> None:
    cell, x, h, _ = make()
    x, h = (t.detach().requires_grad_(name != frozen) for name, t in (("x", x), ("h", h)))
    torch.autograd.backward(gru_of_own_state(cell, x, h).sum())
    assert (x if frozen == "x" else h).grad is None
    assert (h if frozen == "x" else x).grad is not None
    assert all(weight.grad is not None for weight in cell.parameters())
