"""Mail into messages."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pres.nn.features import EdgeFeatures
from pres.nn.gather import Picked
from pres.nn.memory import Mail, Memory
from pres.nn.time_encoding import TimeEncoding


class IdentityMessage(nn.Module):
    """The message is everything: both memories, the event's features and the encoded time difference.

    Args:
        memory: Whose mail it is.
        features: The events' features.
        time: Encoding of time differences.
    """

    def __init__(self, memory: Memory, features: EdgeFeatures, time: TimeEncoding) -> None:
        super().__init__()
        self.features, self.time = features, time
        self.dim = memory.mail_dim + features.embedded_dim + time.dim

    def forward(self, mail: Mail, difference: Tensor) -> list[Picked]:
        """Return messages `[s, dim]` of mail whose time differences are `[s]`, part by part."""
        parts = [mail.content, Picked(self.time(difference))]
        if self.features.embedded_dim:
            embedded = self.features.embedded(mail.event, mail.content.table.dtype)
            parts.insert(1, Picked(embedded))
        return parts


class MLPMessage(IdentityMessage):
    """The message is a learned summary of everything."""

    def __init__(self, memory: Memory, features: EdgeFeatures, time: TimeEncoding, dim: int = 100) -> None:
        super().__init__(memory, features, time)
        self.mlp = nn.Sequential(nn.Linear(self.dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.dim = dim

    def forward(self, mail: Mail, difference: Tensor) -> list[Picked]:
        """Return messages `[s, dim]`."""
        everything = torch.cat([part.copied() for part in super().forward(mail, difference)], dim=-1)
        return [Picked(self.mlp(everything))]
