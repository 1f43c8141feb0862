import pytest
import torch

from pres.errors import OptionError
from pres.paper.theory.gradients import batch_loss, flat_gradient, largest_curvature, trainable
from tests.models.conftest import KINDS, make, random_events, stream_of


@pytest.mark.parametrize("sign", [1, -1])
def test_of_a_quadratic_it_is_the_largest_absolute_eigenvalue(sign: int) -> None:
    generator = torch.Generator().manual_seed(1)
    square = torch.randn(6, 6, generator=generator, dtype=torch.float64)
    matrix = sign * (square + square.T + 2 * torch.eye(6))
    first, second = (torch.randn(n, generator=generator, dtype=torch.float64) for n in (2, 4))
    parameters = [first.requires_grad_(), second.requires_grad_()]
    x = torch.cat(parameters)
    largest = float(torch.linalg.eigvalsh(matrix).abs().max())
    found = largest_curvature(0.5 * x @ matrix @ x, parameters, iterations=300)
    assert found == pytest.approx(largest, rel=1e-6)
    few = largest_curvature(0.5 * x @ matrix @ x, parameters, iterations=3)
    assert few <= largest


def test_a_straight_loss_has_none() -> None:
    x = torch.ones(3, requires_grad=True)
    assert largest_curvature(x.sum(), [x]) == 0.0
    with pytest.raises(OptionError, match="at least one"):
        largest_curvature(x.sum(), [x], iterations=0)


@pytest.mark.parametrize("kind", KINDS)
def test_of_a_model_it_is_that_of_its_whole_hessian(kind: str) -> None:
    stream = stream_of(random_events(seed=2))
    model = make(kind, stream)
    model.update_state(stream[:20])
    batch = stream[20:40]
    negatives = (batch.dst.unsqueeze(1) + 1) % 12
    # Weights of the decoder and of the memory's updater, as finite differences see them.
    parameters = [p for p in (*model.link.parameters(), *model.updater.parameters()) if p.requires_grad]
    parameters = [p for p in parameters if p.numel() <= 36]
    step, columns = 1e-5, []
    for parameter in parameters:
        flat = parameter.data.view(-1)
        for i in range(len(flat)):
            sides = []
            for sign in (1, -1):
                flat[i] += sign * step
                sides.append(flat_gradient(batch_loss(model, batch, negatives), parameters))
                flat[i] -= sign * step
            columns.append((sides[0] - sides[1]) / (2 * step))
    hessian = torch.stack(columns)
    largest = float(torch.linalg.eigvalsh((hessian + hessian.T) / 2).abs().max())
    found = largest_curvature(batch_loss(model, batch, negatives), parameters, iterations=200)
    assert found == pytest.approx(largest, rel=1e-3)
    assert largest_curvature(batch_loss(model, batch, negatives), trainable(model), 100) >= 0.99 * largest
