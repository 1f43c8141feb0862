"""What the memory of a batch's nodes follows from, at each place between its events.

A batch has one *incidence* per event and endpoint. Just before its event a incidence's node has a memory
that follows from the node's memory at its incidence before, and from the mail that reached the node since.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pres.data.incidence import incidences as incidences_of
from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.models.base import MDGNN
from pres.models.routing import RawMessages, message_keys, one_per_event
from pres.nn.memory import Memory
from pres.nn.ops import rows


@dataclass(frozen=True, eq=False)
class Versions:
    """Nodes at places of a batch, something in which has moved them, and what their memory follows from."""

    node: Tensor  # [v]
    before: Tensor  # [v] the node's incidence before; -1 if there is none
    read: Tensor  # [v, slots] the raw messages of the batch in its mailbox, the newest first; -1: none
    stored: Tensor  # [v, slots] where older mail in its mailbox is; -1: none

    def __getitem__(self, some: Tensor) -> Versions:
        return Versions(self.node[some], self.before[some], self.read[some], self.stored[some])


@dataclass(frozen=True, eq=False)
class BatchIncidences:
    """The incidences of a batch, sorted by node and then by event, and its raw messages.

    A incidence is *moved* if something in the batch came before it at its node; the others are as the batch
    found them.
    """

    num_nodes: int  # of the stream
    node: Tensor  # [h]
    event: Tensor  # [h] counted from the batch's first
    keys: Tensor  # [h] node * b + event, increasing
    other: Tensor  # [h] the other incidence of its event; itself for a self-loop
    of_src: Tensor  # [b] the incidence of each event's source,
    of_dst: Tensor  # [b] and of its destination
    raw_messages: (
        RawMessages  # [m] at most one per event and recipient, sorted by recipient and then by event
    )
    message_keys: Tensor  # [m] recipient * b + event, increasing
    about: Tensor  # [m] the incidence that each is about
    moved: Tensor  # [v] the incidences that are moved,
    versions: Versions  # [v] and what they follow from

    @property
    def last(self) -> Tensor:
        """The last incidence of each node of the batch, in the nodes' order."""
        following = torch.ones_like(self.node, dtype=torch.bool)
        following[:-1] = self.node[1:] != self.node[:-1]
        return following.nonzero().squeeze(1)

    def version(self, nodes: Tensor, places: Tensor) -> Tensor:
        """Return how many messages of the batch nodes `[q]` have before its events at ``places`` `[q]`."""
        b = len(self.of_src)
        first, end = (torch.searchsorted(self.message_keys, nodes * b + at) for at in (0, places))
        return end - first

    def state_keys(self, nodes: Tensor, version: Tensor) -> Tensor:
        """Return a number `[q]` for each node and the raw messages it has; nodes without any come first."""
        has_some = (version > 0).long()
        return (has_some * self.num_nodes + nodes) * (len(self.raw_messages.to) + 1) + version

    def of_state_keys(self, keys: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return whether there are raw messages, the nodes, and how many each has."""
        raw_messages = len(self.raw_messages.to) + 1
        state = torch.div(keys, raw_messages, rounding_mode="floor")
        has_some = state >= self.num_nodes
        return has_some, state - has_some * self.num_nodes, keys - state * raw_messages

    def follows(self, versions: Versions) -> tuple[Tensor, Tensor]:
        """Return the incidences `[v, 1 + 2 slots]` that moments follow from, and which of them there are."""
        about, there = self.about[versions.read.clamp(min=0)], versions.read >= 0
        before = versions.before.unsqueeze(1)
        return (
            torch.cat([before.clamp(min=0), about, self.other[about]], dim=1),
            torch.cat([before >= 0, there, there], dim=1),
        )

    def levels(self) -> Tensor:
        """Return the level `[v]` of each moved incidence: 1 above all that it follows from, from 1."""
        level = torch.zeros(len(self.node) + 1, dtype=torch.int64, device=self.node.device)  # the last: none
        follows, there = self.follows(self.versions)
        follows = follows.masked_fill(~there, len(self.node))
        while True:
            higher = level[follows].amax(dim=1) + 1 if len(follows) else level[:0]
            if torch.equal(higher, level[self.moved]):
                return higher
            level[self.moved] = higher

    def after(self, nodes: Tensor, version: Tensor, memory: Memory) -> Versions:
        """Return the moments of nodes `[q]` with so many raw messages of the batch.

        ``memory`` is as the batch found it.
        """
        b, slots = len(self.of_src), memory.slots
        slot, some = torch.arange(slots, device=nodes.device), version > 0
        newest = (torch.searchsorted(self.message_keys, nodes * b) + version - 1).clamp_(min=0)
        read, inside = newest.unsqueeze(1) - slot, version.clamp(max=slots).unsqueeze(1)
        before = torch.searchsorted(self.keys, nodes * b + rows(self.raw_messages.at, newest), right=True) - 1
        begun = some & (before >= 0) & (rows(self.node, before.clamp(min=0)) == nodes)
        before = torch.where(begun, before, -1)
        older = slot - inside  # counted from the newest mail in the stored mailbox
        stored = memory.received(nodes).unsqueeze(1)
        return Versions(
            node=nodes,
            before=before,
            read=torch.where(slot < inside, read, -1),
            stored=torch.where((older >= 0) & (older < stored), (stored - 1 - older) % slots, -1),
        )


def find_incidences(model: MDGNN, batch: EventStream) -> BatchIncidences:
    """Return the incidences of a batch, and what each follows from under the model's mail.

    The memory of ``model`` is as the batch finds it.
    """
    b, slots = len(batch), model.mailboxes.slots
    neighbourly = model.index if model.deliver_to == "neighbours" else None
    if neighbourly is not None and (slots == 1 or model.aggregate == "mean"):
        raise OptionError(
            "sequential memory needs a mailbox of several slots and aggregate='last' in a model that sends "
            "mail to neighbours."
        )
    # With each event a batch of its own, "batch" is "fresh".
    cutoffs = None if neighbourly is None else neighbourly.cutoffs(batch, "fresh")
    keys = message_keys(batch, neighbourly, cutoffs, model.neighbours)
    raw_messages = one_per_event(RawMessages.of(batch, keys), b)
    keys, nodes, events = incidences_of(batch.src, batch.dst, model.memory.num_nodes)
    at = torch.arange(b, device=batch.src.device)
    of_src, of_dst = (torch.searchsorted(keys, end * b + at) for end in (batch.src, batch.dst))
    other = torch.empty_like(nodes)
    other[of_src], other[of_dst] = of_dst, of_src
    none = nodes[:0]
    incidences = BatchIncidences(
        num_nodes=model.memory.num_nodes,
        node=nodes,
        event=events,
        keys=keys,
        other=other,
        of_src=of_src,
        of_dst=of_dst,
        raw_messages=raw_messages,
        message_keys=raw_messages.to * b + raw_messages.at,
        about=torch.where(
            raw_messages.own == rows(batch.src, raw_messages.at),
            rows(of_src, raw_messages.at),
            rows(of_dst, raw_messages.at),
        ),
        moved=none,
        versions=Versions(none, none, none.view(0, slots), none.view(0, slots)),
    )
    version = incidences.version(nodes, events)
    moved = version.nonzero().squeeze(1)
    return replace(
        incidences, moved=moved, versions=incidences.after(nodes[moved], version[moved], model.mailboxes)
    )
