"""Muon against its formula, one matrix at a time."""

import copy
import pickle

import pytest
import torch
from torch import Tensor, nn

from pres.optim import Adam
from pres.optim.muon import ITERATIONS, LEAST, Muon, orthogonal


def orthogonal_plainly(matrix: Tensor) -> Tensor:
    """The iteration of Newton and Schulz on the matrix itself."""
    found: Tensor = matrix / matrix.norm()
    for a, b, c in ITERATIONS:
        product = found @ found.T
        found = a * found + (b * product + c * product @ product) @ found
    return found


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_matrices_together_become_what_each_becomes_alone() -> None:
    matrices = [numbers(4, 4), numbers(3, 8, seed=1), numbers(4, 9, seed=2), 1e-6 * numbers(3, 5, seed=3)]
    for found, matrix in zip(orthogonal(matrices), matrices, strict=True):
        assert torch.allclose(found, orthogonal_plainly(matrix), atol=1e-10)


def test_all_directions_become_about_equally_long() -> None:
    matrix = numbers(50, 80) @ torch.diag(torch.logspace(0, -1.5, 80, dtype=torch.float64))
    assert torch.linalg.cond(matrix) > 20
    lengths = torch.linalg.svdvals(orthogonal([matrix])[0])
    assert lengths.min() > 0.3 and lengths.max() < 1.3
    u, _, v = torch.linalg.svd(matrix, full_matrices=False)
    assert torch.dist(orthogonal([matrix])[0], u @ v) < 0.4 * torch.dist(torch.zeros_like(matrix), u @ v)


def test_single_precision_is_enough_and_nothing_stays_nothing() -> None:
    matrix = numbers(100, 300) @ torch.diag(torch.logspace(0, -3, 300, dtype=torch.float64))
    assert torch.dist(orthogonal([matrix.float()])[0].double(), orthogonal_plainly(matrix)) < 1e-2
    assert not orthogonal([torch.zeros(5, 7)])[0].any()


class Everything(nn.Module):
    """A matrix, a high one, a cell of three gates, a table, and what is too small to be a matrix."""

    def __init__(self) -> None:
        super().__init__()
        self.wide, self.high = nn.Linear(LEAST + 4, LEAST), nn.Linear(LEAST, LEAST + 8)
        self.cell = nn.GRUCell(LEAST + 2, LEAST)
        self.table, self.small = nn.Embedding(2 * LEAST, LEAST), nn.Linear(LEAST, LEAST - 1)


def gradients(model: nn.Module, seed: int) -> None:
    for i, weight in enumerate(model.parameters()):
        weight.grad = numbers(*weight.shape, seed=100 * seed + i).to(weight.dtype)


def test_matrices_and_gates_move_as_the_formula_says_and_the_rest_as_by_adam() -> None:
    torch.manual_seed(0)
    model = Everything().double()
    plain = copy.deepcopy(model)
    still = {"wide.weight": slice(3, 7), "cell.weight_ih": slice(LEAST - 4, LEAST + 2)}
    stay: dict[Tensor, slice] = {model.get_parameter(name): columns for name, columns in still.items()}
    optimiser = Muon(model, lr=0.01, length=0.3, rest=2.0, weight_decay=5.0, still=stay)
    matrices = ["wide.weight"], ["high.weight"], ["cell.weight_ih", "cell.weight_hh"]
    names = [name for matrix in matrices for name in matrix]
    rest = [weight for name, weight in plain.named_parameters() if name not in names]
    adam = torch.optim.Adam(rest, lr=0.02)
    momenta = {name: torch.zeros_like(plain.get_parameter(name)) for name in names}
    for step in range(3):
        gradients(model, step)
        gradients(plain, step)
        optimiser.step()
        adam.step()
        ahead = {}
        for name in names:
            gradient = plain.get_parameter(name).grad
            assert gradient is not None
            momenta[name] = 0.95 * momenta[name] + 0.05 * gradient
            ahead[name] = 0.05 * gradient + 0.95 * momenta[name]
        for matrix in matrices:
            gates = 3 if len(matrix) == 2 else 1
            moving = {name: torch.ones(ahead[name].shape[1], dtype=torch.bool) for name in matrix}
            for name in still.keys() & moving.keys():
                moving[name][still[name]] = False
            side_by_side = torch.cat([ahead[name][:, moving[name]] for name in matrix], dim=1)
            moves = []
            for gate in side_by_side.chunk(gates):
                high = gate.shape[0] > gate.shape[1]
                move = orthogonal_plainly(gate.T).T if high else orthogonal_plainly(gate)
                moves.append(0.01 * 0.3 * max(gate.shape) ** 0.5 * move)
            begin = 0
            for name in matrix:
                weight, width = plain.get_parameter(name).detach(), int(moving[name].sum())
                weight *= 1 - 0.01 * 5.0
                weight[:, moving[name]] -= torch.cat(moves)[:, begin : begin + width]
                begin += width
    for mine, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-9)


def test_it_goes_on_from_its_state_to_the_bit() -> None:
    torch.manual_seed(0)
    model = Everything()
    optimiser = Muon(model, 0.01)
    for step in range(2):
        gradients(model, step)
        optimiser.step()
    other = copy.deepcopy(model)
    resumed = Muon(other, 0.01)
    resumed.load_state_dict(copy.deepcopy(optimiser.state_dict()))
    for one, by in ((model, optimiser), (other, resumed)):
        gradients(one, 2)
        by.step()
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        assert torch.equal(mine, theirs)


@pytest.mark.parametrize("frozen", ["wide.weight", "small.bias"])
def test_what_has_no_gradient_stays(frozen: str) -> None:
    torch.manual_seed(0)
    model = Everything()
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    optimiser = Muon(model, lr=0.1)
    gradients(model, 0)
    model.get_parameter(frozen).grad = None
    optimiser.step()
    for name, weight in model.named_parameters():
        assert torch.equal(weight, before[name]) == (name == frozen)


def test_a_copy_and_a_pickle_go_on_as_the_optimiser_does() -> None:
    torch.manual_seed(0)
    model = Everything()
    optimiser = Muon(model, lr=0.01)
    gradients(model, 0)
    optimiser.step()
    copies = [copy.deepcopy((model, optimiser)), pickle.loads(pickle.dumps((model, optimiser)))]
    for one, by in ((model, optimiser), *copies):
        gradients(one, 1)
        by.step()
    for one, _ in copies:
        for mine, theirs in zip(model.parameters(), one.parameters(), strict=True):
            assert torch.equal(mine, theirs)


def test_small_cells_and_halves_of_cells_are_no_matrices() -> None:
    small, half = nn.GRUCell(LEAST + 4, LEAST - 8), nn.GRUCell(LEAST, LEAST)
    half.weight_ih.requires_grad_(False)
    for cell in (small, half):
        before = cell.weight_ih.detach().clone()
        optimiser = Muon(cell, lr=0.01)
        assert not optimiser.matrices
        gradients(cell, 0)
        optimiser.step()
        assert torch.equal(cell.weight_ih, before) == (cell is half)


def test_weights_of_several_types_move_each_in_its_own() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(LEAST, LEAST), nn.Linear(LEAST, LEAST).double())
    gradients(model, 0)
    alone = [copy.deepcopy(part) for part in model]
    Muon(model, lr=0.01).step()
    for part, own in zip(model, alone, strict=True):
        for weight, gradient in zip(own.parameters(), part.parameters(), strict=True):
            weight.grad = gradient.grad
        Muon(own, lr=0.01).step()
        for mine, theirs in zip(part.parameters(), own.parameters(), strict=True):
            assert torch.equal(mine, theirs)


@pytest.mark.parametrize("name", ["muon", "adam"])
def test_a_closure_has_gradients(name: str) -> None:
    layer = nn.Linear(LEAST, LEAST)
    before = layer.weight.detach().clone()
    optimiser = Muon(layer, 0.01) if name == "muon" else Adam(layer.parameters(), 0.01)

    def closure() -> float:
        optimiser.zero_grad()
        loss = layer(torch.ones(1, LEAST)).square().sum()
        torch.autograd.backward(loss)
        return float(loss.detach())

    found = optimiser.step(closure)
    assert found is not None and found > 0
    assert not torch.equal(layer.weight, before)
