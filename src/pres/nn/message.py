"""Mail into messages."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from pres.nn.encoding import EdgeFeatures, TimeEncoding
from pres.nn.memory import Mail, Memory
from pres.nn.ops import Picked, ranking


class IdentityMessage(nn.Module):
    """The message is everything: both memories, the event's features and the encoded time difference.

    Args:
        memory: Whose mail it is.
        features: The events' features.
        time: Encoding of time differences.
        mailed: Whether mail holds the numeric features itself, as their mean over several events must be
            kept. Those of one event are looked up when the message is made, as categories are.
    """

    begins_with_memory = True  # that of the node which the mail is about

    def __init__(
        self, memory: Memory, features: EdgeFeatures, time: TimeEncoding, mailed: bool = False
    ) -> None:
        super().__init__()
        self.features, self.time, self.mailed = features, time, mailed
        self.widths = {"mail": memory.mail_dim}
        self._looked_up = features.embedded_dim + (0 if mailed else features.numeric_dim)
        self.dim = self.width = memory.mail_dim + self._looked_up + time.dim  # of everything; time comes last

    def read_by(self, updater: nn.Module) -> list[Tensor]:
        """Return the weights whose first columns read everything, as it stands here.

        There are none if it is summarised, or of an updater that tells of none; what lays it out in another
        way says so here.
        """
        return list(getattr(updater, "of_messages", [])) if self.dim == self.width else []

    def forward(self, mail: Mail, difference: Tensor) -> list[Picked]:
        """Return messages `[s, dim]` of mail whose time differences are `[s]`, part by part."""
        time = Picked(self.time(difference))
        if not self._looked_up:
            return [mail.content, time]
        look_up, dtype = self.features.embedded if self.mailed else self.features, mail.content.table.dtype
        if mail.slots.mask.shape[1] == 1:
            return [mail.content, Picked(look_up(mail.event, dtype)), time]
        events = ranking(mail.event)  # many mailboxes hold the same event
        return [mail.content, Picked(look_up(events.values, dtype), events.place, events.of_places()), time]


class MLPMessage(IdentityMessage):
    """The message is a learned summary of everything."""

    begins_with_memory = False

    def __init__(
        self,
        memory: Memory,
        features: EdgeFeatures,
        time: TimeEncoding,
        dim: int = 100,
        mailed: bool = False,
    ) -> None:
        super().__init__(memory, features, time, mailed)
        self.mlp = nn.Sequential(nn.Linear(self.dim, dim), nn.ReLU(), nn.Linear(dim, dim))
        self.dim = dim

    def read_by(self, updater: nn.Module) -> list[Tensor]:
        """Return the weight whose columns read everything: the summary's own."""
        first = self.mlp[0]
        assert isinstance(first, nn.Linear)
        return [first.weight]

    def forward(self, mail: Mail, difference: Tensor) -> list[Picked]:
        """Return messages `[s, dim]`."""
        everything = torch.cat([part.copied() for part in super().forward(mail, difference)], dim=-1)
        return [Picked(self.mlp(everything))]


class EventMessage(nn.Module):
    """What a message holds of an event beside memories: its features, and the encoded time difference.

    Args:
        features: The events' features.
        time: Encoding of time differences.
    """

    def __init__(self, features: EdgeFeatures, time: TimeEncoding) -> None:
        super().__init__()
        self.features, self.time = features, time
        self.dim = features.dim + time.dim  # time comes last

    def forward(self, events: Tensor, difference: Tensor, dtype: torch.dtype) -> tuple[Tensor, Picked]:
        """Return the features `[w, ...]` of events `[w]`, and time differences `[n]` as rows of a table.

        Clocks tick in seconds: of the differences in a batch of Wikipedia less than half are distinct.
        """
        distinct, place = torch.unique(difference, return_inverse=True)
        return self.features(events, dtype), Picked(self.time(distinct), place)
