"""Who gets mail of a batch's events, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.nn.ops import Parts
from pres.sampling import TemporalIndex


@dataclass(frozen=True, eq=False)
class RawMessages:
    """Sorted by recipient; of one, messages of later events come later, and its own after its neighbours'."""

    to: Tensor  # [m]
    own: Tensor  # [m] the endpoint that the raw message is about: the recipient itself, or a neighbour
    partner: Tensor  # [m] the other endpoint
    at: Tensor  # [m] the event, counted from the batch's first
    is_own: Tensor  # [m] bool: whether the event is the recipient's own

    def __getitem__(self, places: Tensor) -> RawMessages:
        return RawMessages(*(field.index_select(0, places) for field in self._fields()))

    def and_also(self, others: RawMessages) -> RawMessages:
        """Return these and others, not sorted any more."""
        return RawMessages(*map(torch.cat, zip(self._fields(), others._fields(), strict=True)))

    def split(self, parts: Parts) -> list[RawMessages]:
        """Return each part of them."""
        return [RawMessages(*those) for those in zip(*map(parts.split, self._fields()), strict=True)]

    def _fields(self) -> tuple[Tensor, ...]:
        return self.to, self.own, self.partner, self.at, self.is_own


@dataclass(frozen=True, eq=False)
class MessageRouting:
    """What its events alone decide of taking in a batch: whose memory moves, and who gets which mail."""

    endpoints: Tensor  # [v] the distinct nodes of the batch's events
    raw_messages: RawMessages  # [m]
    counts: Tensor  # [r] raw messages of each recipient
    last: RawMessages  # [r] the last of them
    last_events: Tensor  # [v] the last event of each endpoint, counted from the batch's first


def routings_of(raw_messages: RawMessages, num_nodes: int, b: int, num_batches: int) -> list[MessageRouting]:
    """Return who gets what of the raw messages of several batches of ``b`` events, see `raw_messages_of`.

    A neighbour's event is a node's last only if it has none of its own in the batch.
    """
    batch_number = torch.div(raw_messages.at, max(b, 1), rounding_mode="floor")
    number = batch_number * num_nodes  # a node has another number in each batch
    _, counts = torch.unique_consecutive(number + raw_messages.to, return_counts=True)
    ends = counts.cumsum(0)
    raw_messages = replace(raw_messages, at=raw_messages.at - batch_number * b)
    last, turn_of_each = raw_messages[ends - 1], batch_number[ends - 1]
    endpoints, last_events = last.to[last.is_own], last.at[last.is_own]
    if num_batches == 1:
        return [MessageRouting(endpoints, raw_messages, counts, last, last_events)]
    of_letters, of_recipients, of_endpoints = (
        Parts.of_numbers(those, num_batches)
        for those in (batch_number, turn_of_each, turn_of_each[last.is_own])
    )
    fields = (
        of_endpoints.split(endpoints),
        raw_messages.split(of_letters),
        of_recipients.split(counts),
        last.split(of_recipients),
        of_endpoints.split(last_events),
    )
    return [MessageRouting(*those) for those in zip(*fields, strict=True)]


def raw_messages_of(
    batch: EventStream,
    index: TemporalIndex | None = None,
    cutoffs: Tensor | None = None,
    neighbours: int = 0,
    num_batches: int = 1,
    negatives: Tensor | None = None,
) -> RawMessages:
    """Return one raw message of each event to each endpoint and, with an index, to the endpoints' neighbours.

    ``cutoffs`` `[b]` are the first events that those neighbours must not come from. If the events are those
    of several batches of equal length (``num_batches``), the messages are sorted by batch first.
    ``negatives`` `[b, count]` are drawn nodes that get a raw message of the source's, just before the
    event's own raw messages.
    """
    at = torch.arange(len(batch), device=batch.src.device)
    proper = (batch.src != batch.dst).nonzero().squeeze(1)  # a self-loop is one update
    own = torch.cat([batch.src, batch.dst[proper]])
    partner = torch.cat([batch.dst, batch.src[proper]])
    side = torch.cat([torch.ones_like(at), torch.full_like(proper, 2)])
    at = torch.cat([at, proper])
    sent = RawMessages(own, own, partner, at, torch.ones_like(at, dtype=torch.bool))
    order = 3 * at + side
    if index is not None and cutoffs is not None:
        found = index.recent(own, cutoffs[at], neighbours)
        filled = found.mask.flatten().nonzero().squeeze(1)
        row = torch.div(filled, neighbours, rounding_mode="floor")
        to = found.nodes.flatten().index_select(0, filled)
        sent = sent.and_also(replace(sent[row], to=to, is_own=torch.zeros_like(to, dtype=torch.bool)))
        order = torch.cat([order, order.index_select(0, row)])
    if negatives is not None:
        of_each = torch.arange(len(batch), device=at.device).repeat_interleave(negatives.shape[1])
        drawn, own_letter = negatives.flatten(), torch.ones_like(of_each, dtype=torch.bool)
        sent = sent.and_also(RawMessages(drawn, drawn, batch.src[of_each], of_each, own_letter))
        order = torch.cat([order, 3 * of_each])
    span, to = 3 * len(batch), sent.to
    if num_batches > 1:
        to = to + torch.div(sent.at, len(batch) // num_batches, rounding_mode="floor") * batch.num_nodes
    key, by = torch.sort(to * (2 * span) + sent.is_own * span + order)
    once = torch.ones_like(key, dtype=torch.bool)
    once[1:] = key[1:] != key[:-1]  # a neighbour by several events gets a raw message once
    return sent[by.index_select(0, once.nonzero().squeeze(1))]


def one_per_event(raw_messages: RawMessages, batch_length: int) -> RawMessages:
    """Return at most one raw message of each event to each recipient, sorted by recipient and then by event.

    As if events came one at a time: of several the last counts, a recipient's own before its neighbours'.
    """
    order = torch.argsort(raw_messages.to * batch_length + raw_messages.at, stable=True)  # own ones stay last
    to, at = raw_messages.to.index_select(0, order), raw_messages.at.index_select(0, order)
    last = torch.ones_like(to, dtype=torch.bool)
    last[:-1] = (to[1:] != to[:-1]) | (at[1:] != at[:-1])
    return raw_messages[order.index_select(0, last.nonzero().squeeze(1))]
