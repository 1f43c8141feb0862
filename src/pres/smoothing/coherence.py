"""The coherence objective (Eq. 10), and how far memory moves."""

from __future__ import annotations

import torch
from torch import Tensor


def coherence_loss(previous: Tensor, memory: Tensor, updated: Tensor, per_node: bool = True) -> Tensor:
    """Return ``1 - coherence`` of memories `[u, d]` before and after an update, with the gradient of the new.

    Per node it is the mean cosine over the nodes that were ``updated`` `[u]` and had a memory before;
    otherwise one inner product of all of them, as one long vector. Without any such node it is 0. A memory
    that never moves has the least loss: look at `movement` too.
    """
    size = previous.detach().square().sum(1)
    counted = updated & (size > 0)
    weight = counted.to(memory.dtype)
    product, new_size = (previous.detach() * memory).sum(1), memory.square().sum(1)
    if not per_node:  # as one vector
        product, size, new_size = ((weight * value).sum(0, True) for value in (product, size, new_size))
        weight = counted.any().to(memory.dtype).unsqueeze(0)
    cosine = product * (size * new_size).clamp(min=torch.finfo(memory.dtype).tiny).rsqrt()
    loss: Tensor = (weight * (1 - cosine)).sum() / weight.sum().clamp(min=1)
    return loss


@torch.no_grad()
def movement(previous: Tensor, memory: Tensor, updated: Tensor) -> Tensor:
    """Return how far an update moves memories `[u, d]`: the mean distance over the mean size after it."""
    weight = updated.to(memory.dtype)
    moved, size = (weight @ torch.linalg.vector_norm(of, dim=1) for of in (memory - previous, memory))
    share: Tensor = moved / size.clamp(min=torch.finfo(size.dtype).tiny)
    return share
