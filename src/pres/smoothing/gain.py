"""Gains: how much of the measurement goes into the corrected memory, γ of Eq. 7."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn


@dataclass(frozen=True, eq=False)
class Evidence:
    """What a gain may look at, for nodes `[u]`."""

    count: Tensor  # [u] events of the node in the batch that wrote its mail, c
    partner_count: Tensor  # [u] and of its partner
    observations: Tensor  # [u] transitions seen
    variance: Tensor  # [u, d] of the predictions; what a gain with ``needs_variance`` gets


class FixedGain(nn.Module):
    """γ as it is given."""

    needs_variance = False

    def __init__(self, gamma: float) -> None:
        super().__init__()
        self.register_buffer("gamma", torch.tensor(gamma))
        self.gamma: Tensor

    def forward(self, evidence: Evidence) -> Tensor:
        """Return γ `[]`."""
        return self.gamma


class LearnedGain(nn.Module):
    """γ = σ(θ): one number, or one per dimension."""

    needs_variance = False

    def __init__(self, gamma: float, dim: int | None = None) -> None:
        super().__init__()
        self.theta = nn.Parameter(torch.full(() if dim is None else (dim,), math.log(gamma / (1 - gamma))))

    def forward(self, evidence: Evidence) -> Tensor:
        """Return γ `[]` or `[d]`."""
        return self.theta.sigmoid()


class PendingGain(nn.Module):
    """γ = P / (P + R), as a Kalman filter's: P is how far predictions may be off, R how far measurements.

    A measurement is worse the more updates its batch lost: ``R = r + r_own (c - 1) + r_partner (c' - 1)``,
    with learned positive numbers. ``P`` is the tracked variance and, while observations ``n`` are few, a
    learned uncertainty of their mean: ``Σ + p / n``.

    Args:
        per_dimension: Whether each dimension has its own γ from its own variance.
    """

    needs_variance = True

    def __init__(self, per_dimension: bool = False) -> None:
        super().__init__()
        self.per_dimension = per_dimension
        self.noise = nn.Parameter(torch.full((3,), math.log(0.01)))  # of r, r_own and r_partner
        self.prior = nn.Parameter(torch.tensor(math.log(0.05)))

    def forward(self, evidence: Evidence) -> Tensor:
        """Return γ `[u, 1]` or `[u, d]`."""
        variance = evidence.variance if self.per_dimension else evidence.variance.mean(1, keepdim=True)
        off = variance + self.prior.exp() / evidence.observations.clamp(min=1).unsqueeze(1)
        lost = torch.stack([evidence.count, evidence.partner_count], 1).sub(1).clamp(min=0).to(off.dtype)
        base, own, partner = self.noise.exp()
        noise = base + (lost * torch.stack([own, partner])).sum(1, keepdim=True)
        gain: Tensor = off / (off + noise)
        return gain
