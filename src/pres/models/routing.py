"""Who gets mail of a batch's events, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.nn.parts import Parts
from pres.sampling import TemporalIndex


@dataclass(frozen=True, eq=False)
class Letters:
    """Letters sorted by recipient; of one, later events come later, and its own after its neighbours'."""

    to: Tensor  # [m]
    own: Tensor  # [m] the endpoint that the letter is about: the recipient itself, or a neighbour
    partner: Tensor  # [m] the other endpoint
    at: Tensor  # [m] the event, counted from the batch's first
    is_own: Tensor  # [m] bool: whether the event is the recipient's own

    def __getitem__(self, places: Tensor) -> Letters:
        return Letters(*(field.index_select(0, places) for field in self._fields()))

    def and_also(self, others: Letters) -> Letters:
        """Return these and others, not sorted any more."""
        return Letters(*map(torch.cat, zip(self._fields(), others._fields(), strict=True)))

    def split(self, parts: Parts) -> list[Letters]:
        """Return each part of them."""
        return [Letters(*those) for those in zip(*map(parts.split, self._fields()), strict=True)]

    def _fields(self) -> tuple[Tensor, ...]:
        return self.to, self.own, self.partner, self.at, self.is_own


@dataclass(frozen=True, eq=False)
class Delivery:
    """What its events alone decide of absorbing a batch: whose memory moves, and who gets which mail."""

    endpoints: Tensor  # [v] the distinct nodes of the batch's events
    letters: Letters  # [m]
    counts: Tensor  # [r] letters of each recipient
    last: Letters  # [r] the last of them
    own_events: Tensor  # [r] the recipient's own events in the batch
    partner_events: Tensor  # [r] those of the partner in its last letter


def deliveries_of(letters: Letters, num_nodes: int, b: int, turns: int) -> list[Delivery]:
    """Return who gets what of the letters of several batches of ``b`` events, see `letters_of`.

    A neighbour's event is a node's last only if it has none of its own in the batch.
    """
    turn = torch.div(letters.at, max(b, 1), rounding_mode="floor")
    number = turn * num_nodes  # a node has another number in each batch
    recipients, counts = torch.unique_consecutive(number + letters.to, return_counts=True)
    ends = counts.cumsum(0)
    own = torch.zeros(len(letters.to) + 1, dtype=torch.int64, device=counts.device)
    torch.cumsum(letters.is_own, 0, out=own[1:])
    own_events = own[ends] - own[ends - counts]
    letters = replace(letters, at=letters.at - turn * b)
    last, number, turn_of_each = letters[ends - 1], number[ends - 1], turn[ends - 1]
    partner_events = own_events[torch.searchsorted(recipients, number + last.partner)]
    is_endpoint = own_events > 0
    endpoints = last.to[is_endpoint]
    if turns == 1:
        return [Delivery(endpoints, letters, counts, last, own_events, partner_events)]
    of_letters, of_recipients, of_endpoints = (
        Parts.of_numbers(those, turns) for those in (turn, turn_of_each, turn_of_each[is_endpoint])
    )
    fields = (
        of_endpoints.split(endpoints),
        letters.split(of_letters),
        of_recipients.split(counts),
        last.split(of_recipients),
        of_recipients.split(own_events),
        of_recipients.split(partner_events),
    )
    return [Delivery(*those) for those in zip(*fields, strict=True)]


def letters_of(
    batch: EventStream,
    index: TemporalIndex | None = None,
    cutoffs: Tensor | None = None,
    neighbours: int = 0,
    turns: int = 1,
    negatives: Tensor | None = None,
) -> Letters:
    """Return one letter of each event to each endpoint and, with an index, to the endpoints' neighbours.

    ``cutoffs`` `[b]` are the first events that those neighbours must not come from. If the events are those
    of several batches of equal length (``turns``), the letters are sorted by batch first. ``negatives``
    `[b, count]` are drawn nodes that get a letter of the source's, just before the event's own letters.
    """
    at = torch.arange(len(batch), device=batch.src.device)
    proper = (batch.src != batch.dst).nonzero().squeeze(1)  # a self-loop is one update
    own = torch.cat([batch.src, batch.dst[proper]])
    partner = torch.cat([batch.dst, batch.src[proper]])
    side = torch.cat([torch.ones_like(at), torch.full_like(proper, 2)])
    at = torch.cat([at, proper])
    sent = Letters(own, own, partner, at, torch.ones_like(at, dtype=torch.bool))
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
        sent = sent.and_also(Letters(drawn, drawn, batch.src[of_each], of_each, own_letter))
        order = torch.cat([order, 3 * of_each])
    span, to = 3 * len(batch), sent.to
    if turns > 1:
        to = to + torch.div(sent.at, len(batch) // turns, rounding_mode="floor") * batch.num_nodes
    key, by = torch.sort(to * (2 * span) + sent.is_own * span + order)
    once = torch.ones_like(key, dtype=torch.bool)
    once[1:] = key[1:] != key[:-1]  # a neighbour by several events gets a letter once
    return sent[by.index_select(0, once.nonzero().squeeze(1))]


def one_per_event(letters: Letters, batch_length: int) -> Letters:
    """Return at most one letter of each event to each recipient, sorted by recipient and then by event.

    As if events came one at a time: of several the last counts, a recipient's own before its neighbours'.
    """
    order = torch.argsort(letters.to * batch_length + letters.at, stable=True)  # own ones stay last
    to, at = letters.to.index_select(0, order), letters.at.index_select(0, order)
    last = torch.ones_like(to, dtype=torch.bool)
    last[:-1] = (to[1:] != to[:-1]) | (at[1:] != at[:-1])
    return letters[order.index_select(0, last.nonzero().squeeze(1))]
