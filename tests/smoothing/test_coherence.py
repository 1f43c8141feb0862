import numpy as np
import pytest
import torch

from pres.smoothing import coherence_loss, movement

PREVIOUS = torch.tensor([[1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [3.0, 3.0]]).double()
UPDATED = torch.tensor([True, True, True, False])


def test_per_node_it_is_the_mean_cosine_over_updated_nodes_with_a_memory() -> None:
    memory = torch.tensor([[1.0, 1.0], [2.0, 0.0], [5.0, 5.0], [3.0, 3.0]]).double()
    cosines = [1 / np.sqrt(2), 0.0]  # the third had no memory, the fourth no update
    assert float(coherence_loss(PREVIOUS, memory, UPDATED)) == pytest.approx(1 - np.mean(cosines))


def test_of_a_batch_it_is_one_inner_product() -> None:
    memory = torch.tensor([[1.0, 1.0], [2.0, 0.0], [5.0, 5.0], [3.0, 3.0]]).double()
    old, new = np.array([1.0, 0, 0, 2]), np.array([1.0, 1, 2, 0])
    hand = old @ new / np.linalg.norm(old) / np.linalg.norm(new)
    assert float(coherence_loss(PREVIOUS, memory, UPDATED, per_node=False)) == pytest.approx(1 - hand)


@pytest.mark.parametrize("per_node", [True, False])
def test_its_gradient_is_that_of_finite_differences_and_reaches_only_the_new(per_node: bool) -> None:
    memory = torch.randn(4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    memory.requires_grad_()
    previous = PREVIOUS.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda new: coherence_loss(PREVIOUS, new, UPDATED, per_node), memory)
    torch.autograd.backward(coherence_loss(previous, memory, UPDATED, per_node))
    assert previous.grad is None and memory.grad is not None
    assert (memory.grad.abs().sum(1) > 0).tolist() == [True, True, False, False]


@pytest.mark.parametrize("per_node", [True, False])
def test_without_such_a_node_there_is_nothing_to_lose(per_node: bool) -> None:
    memory = torch.ones(4, 2, dtype=torch.float64, requires_grad=True)
    loss = coherence_loss(PREVIOUS, memory, torch.zeros(4, dtype=torch.bool), per_node)
    assert float(loss.detach()) == 0
    torch.autograd.backward(loss)
    assert memory.grad is not None and bool(memory.grad.isfinite().all())


def test_a_frozen_memory_has_the_least_loss_and_does_not_move() -> None:
    assert float(coherence_loss(PREVIOUS, PREVIOUS, UPDATED)) == pytest.approx(0)
    assert float(movement(PREVIOUS, PREVIOUS, UPDATED)) == 0
    moved = float(movement(PREVIOUS, 2 * PREVIOUS, UPDATED))
    assert moved == pytest.approx(0.5)  # half of where it is now
