from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor

from pres.smoothing import batch_coherence_loss, coherence_loss, movement

PREVIOUS = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [3.0, 3.0]]).double()
UPDATED = torch.tensor([True, True, True, False])
Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def test_per_node_it_is_the_mean_cosine_over_updated_nodes_with_a_memory() -> None:
    memory = torch.tensor([[1.0, 1.0], [2.0, 0.0], [5.0, 5.0], [3.0, 3.0]]).double()
    cosines = [1 / np.sqrt(2), 0.0]  # the third had no memory, the fourth no update
    assert float(coherence_loss(PREVIOUS, memory, UPDATED)) == pytest.approx(1 - np.mean(cosines))


def test_of_a_batch_it_is_one_inner_product_over_all_its_vertices() -> None:
    memory = torch.tensor([[1.0, 1.0], [2.0, 0.0], [5.0, 5.0], [3.0, 3.0]]).double()
    old, new = np.array([1.0, 0, 0, 2, 0, 0]), np.array([1.0, 1, 2, 0, 5, 5])  # one that had no memory counts
    hand = old @ new / np.linalg.norm(old) / np.linalg.norm(new)
    assert float(batch_coherence_loss(PREVIOUS, memory, UPDATED)) == pytest.approx(1 - hand)


@pytest.mark.parametrize("loss", [coherence_loss, batch_coherence_loss])
def test_its_gradient_is_that_of_finite_differences_and_reaches_only_the_new(loss: Loss) -> None:
    memory = torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    memory.requires_grad_()
    previous = PREVIOUS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda new: loss(PREVIOUS, new, UPDATED), memory)
    torch.autograd.backward(loss(previous, memory, UPDATED))
    assert previous.grad is None and memory.grad is not None
    third = loss is batch_coherence_loss  # it has a length, which the whole is divided by
    assert (memory.grad.abs().sum(1) > 0).tolist() == [True, True, third, False]


@pytest.mark.parametrize("loss", [coherence_loss, batch_coherence_loss])
def test_without_such_a_node_there_is_nothing_to_lose(loss: Loss) -> None:
    for previous, nobody in ((PREVIOUS, torch.zeros_like(UPDATED)), (torch.zeros_like(PREVIOUS), UPDATED)):
        memory = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)
        found = loss(previous, memory, nobody)
        assert float(found.detach()) == 0
        torch.autograd.backward(found)
        assert memory.grad is not None and bool((memory.grad == 0).all())


def test_a_frozen_memory_has_the_least_loss_and_does_not_move() -> None:
    assert float(coherence_loss(PREVIOUS, PREVIOUS, UPDATED)) == pytest.approx(0)
    assert float(movement(PREVIOUS, PREVIOUS, UPDATED)) == 0
    moved = float(movement(PREVIOUS, 2 * PREVIOUS, UPDATED))
    assert moved == pytest.approx(0.5)  # half of where it is now
