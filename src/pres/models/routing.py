"""Who gets mail of a batch's events, and in which order."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from pres.data.incidence import sorted_keys
from pres.data.stream import EventStream
from pres.sampling import TemporalIndex

DRAWN, OF_SRC, OF_DST = range(3)  # which side of an event a raw message is about, in the order they come


@dataclass(frozen=True, eq=False)
class RawMessages:
    """Sorted by recipient; of one, messages of later events come later, and its own after its neighbours'."""

    to: Tensor  # [m]
    own: Tensor  # [m] the endpoint that the raw message is about: the recipient itself, or a neighbour
    partner: Tensor  # [m] the other endpoint
    at: Tensor  # [m] the event, counted from the batch's first
    is_own: Tensor  # [m] bool: whether the event is the recipient's own

    @classmethod
    def of(cls, batch: EventStream, keys: Tensor) -> RawMessages:
        """Return the raw messages of a batch that have some keys `[m]`, see `message_keys`."""
        bits = len(batch).bit_length()
        side, event = keys & 3, keys >> 2
        at, recipient = event & ((1 << bits) - 1), event >> bits
        to, src, dst = recipient >> 1, batch.src.index_select(0, at), batch.dst.index_select(0, at)
        drawn, by_dst = side == DRAWN, side == OF_DST
        own = torch.where(drawn, to, torch.where(by_dst, dst, src))
        return cls(to, own, torch.where(by_dst | drawn, src, dst), at, (recipient & 1).bool())

    def __getitem__(self, places: Tensor) -> RawMessages:
        fields = self.to, self.own, self.partner, self.at, self.is_own
        return RawMessages(*(field.index_select(0, places) for field in fields))


@dataclass(frozen=True, eq=False)
class MessageRouting:
    """What its events alone decide of taking in a batch: whose memory moves, and who gets which mail."""

    batch: EventStream
    endpoints: Tensor  # [v] the distinct nodes of the batch's events
    last_events: Tensor  # [v] the last event of each endpoint, counted from the batch's first
    last: RawMessages  # [r] the last of each recipient
    counts: Tensor  # [r] raw messages of each recipient
    keys: Tensor  # [m] of all raw messages

    @classmethod
    def of(cls, batch: EventStream, keys: Tensor) -> MessageRouting:
        """Return who gets what of the raw messages of a batch that have these sorted keys `[m]`.

        A neighbour's event is a node's last only if it has none of its own in the batch.
        """
        _, counts = torch.unique_consecutive(keys >> (len(batch).bit_length() + 3), return_counts=True)
        last = RawMessages.of(batch, keys.index_select(0, counts.cumsum(0) - 1))
        own = last.is_own.nonzero().squeeze(1)
        return cls(batch, last.to.index_select(0, own), last.at.index_select(0, own), last, counts, keys)

    @property
    def raw_messages(self) -> RawMessages:
        """All raw messages `[m]`."""
        return RawMessages.of(self.batch, self.keys)


def message_keys(
    batch: EventStream,
    index: TemporalIndex | None = None,
    cutoffs: Tensor | None = None,
    neighbours: int = 0,
    negatives: Tensor | None = None,
) -> Tensor:
    """Return numbers for a raw message of each event to each endpoint and, by an index, to neighbours.

    A number says all of a raw message, so sorting these sorts messages. From the highest bit down it holds
    the recipient, whether the event is its own, the event, and the side of it that the message is about.
    ``cutoffs`` `[b]` are the first events that those neighbours must not come from. ``negatives``
    `[b, count]` are drawn nodes that get a raw message of the source's, just before the event's own ones.
    """
    at = torch.arange(len(batch), device=batch.src.device)
    proper = (batch.src != batch.dst).nonzero().squeeze(1)  # a self-loop is one update
    own = torch.cat([batch.src, batch.dst[proper]])
    event = torch.cat([(at << 2) + OF_SRC, (proper << 2) + OF_DST])
    bits = len(batch).bit_length() + 2
    keys = [(((own << 1) + 1) << bits) + event]
    if index is not None and cutoffs is not None:
        found = index.recent(own, cutoffs[event >> 2], neighbours)
        filled = found.mask.flatten().nonzero().squeeze(1)
        row = torch.div(filled, neighbours, rounding_mode="floor")
        keys.append((found.nodes.flatten().index_select(0, filled) << (bits + 1)) + event[row])
    if negatives is not None:
        keys.append(((((negatives << 1) + 1) << bits) + ((at << 2) + DRAWN).unsqueeze(1)).flatten())
    if len(keys) == 1:
        return sorted_keys(keys[0])
    once: Tensor = torch.unique_consecutive(sorted_keys(torch.cat(keys)))  # a neighbour gets a message once
    return once


def one_per_event(raw_messages: RawMessages, batch_length: int) -> RawMessages:
    """Return at most one raw message of each event to each recipient, sorted by recipient and then by event.

    As if events came one at a time: of several the last counts, a recipient's own before its neighbours'.
    """
    order = torch.argsort(raw_messages.to * batch_length + raw_messages.at, stable=True)  # own ones stay last
    to, at = raw_messages.to.index_select(0, order), raw_messages.at.index_select(0, order)
    last = torch.ones_like(to, dtype=torch.bool)
    last[:-1] = (to[1:] != to[:-1]) | (at[1:] != at[:-1])
    return raw_messages[order.index_select(0, last.nonzero().squeeze(1))]
