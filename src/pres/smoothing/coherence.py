"""The coherence objective (Eq. 10), and how far memory moves."""

from __future__ import annotations

import torch
from torch import Tensor


def coherence_loss(previous: Tensor, memory: Tensor, updated: Tensor) -> Tensor:
    """Return one minus the mean cosine of memories `[u, d]` before and after an update (ours).

    The mean is over the nodes that were ``updated`` `[u]` and had a memory before; without any it is 0.
    Gradients go to the new memory. A memory that never moves has the least loss: look at `movement` too.
    """
    size = previous.detach().square().sum(1)
    weight = (updated & (size > 0)).to(memory.dtype)
    product, new_size = (previous.detach() * memory).sum(1), memory.square().sum(1)
    cosine = product * (size * new_size).clamp(min=torch.finfo(memory.dtype).tiny).rsqrt()
    loss: Tensor = (weight * (1 - cosine)).sum() / weight.sum().clamp(min=1)
    return loss


def batch_coherence_loss(previous: Tensor, memory: Tensor, vertices: Tensor) -> Tensor:
    """Return one minus the inner product of normalised memories `[u, d]` before and after (Eq. 10).

    The memories of the ``vertices`` `[u]` (bool) are one vector before and one after. Where one of the two is
    zero, as in the first batches of a stream, it is 0. Gradients go to the new memory.
    """
    chosen = vertices.unsqueeze(1)
    old, new = (values.masked_fill(~chosen, 0) for values in (previous.detach(), memory))
    sizes = old.square().sum() * new.square().sum()
    cosine = (old * new).sum() * sizes.clamp(min=torch.finfo(memory.dtype).tiny).rsqrt()
    loss: Tensor = torch.where(sizes > 0, 1 - cosine, 0)
    return loss


@torch.no_grad()
def movement(previous: Tensor, memory: Tensor, updated: Tensor) -> Tensor:
    """Return how far an update moves memories `[u, d]`: the mean distance over the mean size after it."""
    weight = updated.to(memory.dtype)
    moved, size = (weight @ torch.linalg.vector_norm(of, dim=1) for of in (memory - previous, memory))
    share: Tensor = moved / size.clamp(min=torch.finfo(size.dtype).tiny)
    return share
