import pytest
import torch
from torch import Tensor

from pres.nn.cells import gru


def make() -> tuple[torch.nn.GRUCell, Tensor, Tensor, list[Tensor]]:
    torch.manual_seed(0)
    cell = torch.nn.GRUCell(5, 3).double()
    x, h = (torch.randn(7, n, dtype=torch.float64, requires_grad=True) for n in (5, 3))
    return cell, x, h, [x, h, *cell.parameters()]


def test_the_cell_and_its_gradient_are_torchs() -> None:
    cell, x, h, inputs = make()
    found, expected = gru(cell, x, h), cell(x, h)
    assert torch.allclose(found, expected, atol=1e-14)
    direction = torch.randn(7, 3, dtype=torch.float64)
    for one, other in zip(
        torch.autograd.grad(found, inputs, direction),
        torch.autograd.grad(expected, inputs, direction),
        strict=True,
    ):
        assert torch.allclose(one, other, atol=1e-13)


def test_its_gradient_has_a_gradient() -> None:
    cell, x, h, inputs = make()

    def second(result: Tensor) -> tuple[Tensor, ...]:
        first = torch.autograd.grad(result.sin().sum(), inputs, create_graph=True)
        return torch.autograd.grad(sum((g * g).sum() for g in first), inputs)  # type: ignore[arg-type]

    for one, other in zip(second(gru(cell, x, h)), second(cell(x, h)), strict=True):
        assert torch.allclose(one, other, atol=1e-12)


@pytest.mark.parametrize("frozen", ["x", "h"])
def test_an_input_that_needs_no_gradient_gets_none(frozen: str) -> None:
    cell, x, h, _ = make()
    (x if frozen == "x" else h).requires_grad_(False)
    torch.autograd.backward(gru(cell, x, h).sum())
    assert (x if frozen == "x" else h).grad is None
    assert (h if frozen == "x" else x).grad is not None
    assert all(weight.grad is not None for weight in cell.parameters())


def test_a_state_repeated_in_the_input_changes_nothing() -> None:
    torch.manual_seed(0)
    cell = torch.nn.GRUCell(5, 3).double()
    h, rest = (torch.randn(7, n, dtype=torch.float64, requires_grad=True) for n in (3, 2))
    inputs, direction = [h, rest, *cell.parameters()], torch.randn(7, 3, dtype=torch.float64)
    x = torch.cat([h, rest], dim=1)
    found, expected = gru(cell, x, h, repeated=True), cell(x, h)
    assert torch.allclose(found, expected, atol=1e-14)
    for one, other in zip(
        torch.autograd.grad(found, inputs, direction, retain_graph=True),
        torch.autograd.grad(expected, inputs, direction, retain_graph=True),
        strict=True,
    ):
        assert torch.allclose(one, other, atol=1e-13)
    (twice,) = torch.autograd.grad(found.sin().sum(), [h], create_graph=True)
    (expected_twice,) = torch.autograd.grad(expected.sin().sum(), [h], create_graph=True)
    assert torch.allclose(
        torch.autograd.grad(twice.sum(), [rest])[0], torch.autograd.grad(expected_twice.sum(), [rest])[0]
    )
