"""Time differences as vectors."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class TimeEncoding(nn.Module):
    """Encodes time differences by cosines of many frequencies, from fast to slow.

    Differences beyond ``limit``, in units of ``scale``, count as that long. It is part of the state; training
    sets it, see `limit_times`.

    The frequencies are fixed unless ``learned``. The derivative of ``cos(w Δt)`` by ``w`` is as large as
    ``Δt``, and one ordinary step of an optimiser moves a slow frequency by many times its size: learned
    encodings soon lose everything slow.

    Args:
        dim: Number of frequencies.
        scale: What to divide differences by first, so that the encoding does not depend on the
            unit of time. Frequencies then reach from 1 down to 1e-9.
        learned: Whether frequencies and phases are parameters.
    """

    def __init__(self, dim: int, scale: float = 1.0, learned: bool = False) -> None:
        super().__init__()
        self.dim, self.scale = dim, scale
        self.frequency = nn.Parameter(10.0 ** -torch.linspace(0, 9, dim), requires_grad=learned)
        self.phase = nn.Parameter(torch.zeros(dim), requires_grad=learned)
        self.register_buffer("limit", torch.tensor(math.inf))
        self.limit: Tensor

    def forward(self, difference: Tensor) -> Tensor:
        """Return `[..., dim]` for differences `[...]` of any number type."""
        scaled = (difference / self.scale).to(self.frequency.dtype).clamp(max=self.limit)
        return torch.cos(torch.addcmul(self.phase, scaled.unsqueeze(-1), self.frequency))


def limit_times(model: nn.Module, longest: float) -> None:
    """Let all time differences beyond ``longest`` count as that long wherever a model encodes them."""
    for part in model.modules():
        if isinstance(part, TimeEncoding):
            part.limit.fill_(longest / part.scale)
