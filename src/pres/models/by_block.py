"""Memory inside a batch that moves block after block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pres.errors import OptionError
from pres.events import EventStream
from pres.incidence import distinct
from pres.models.half_events import HalfEvents, Moments
from pres.models.reading import Contents
from pres.models.states import States, corrected, joined
from pres.nn.gather import Picked, rows
from pres.nn.memory import Mail
from pres.nn.slots import Slots
from pres.parts import Parts

if TYPE_CHECKING:
    from pres.models.mdgnn import MDGNN


@dataclass(frozen=True, eq=False)
class Rows:
    """Nodes at places of a batch, and all that their memory follows from but weights and memories."""

    node: Tensor  # [u]
    before: Tensor  # [u] whose memory is moved: a place in `Contents.memory`
    content: Tensor  # [u, slots] where the mails are in `Contents.table`,
    mask: Tensor  # [u, slots] bool: which of them there are,
    event: Tensor  # [u, slots] of which events,
    t: Tensor  # [u, slots] and when those were
    previous_update: Tensor  # [u] the time that the memory before is of,
    last_update: Tensor  # [u] and the one after
    pending: Tensor  # [u] bool: whether there is mail
    count: Tensor  # [u]
    partner_count: Tensor  # [u]
    last_event: Tensor  # [u]

    def split(self, parts: Parts) -> list[Rows]:
        """Return each part of them."""
        return [Rows(*those) for those in zip(*(parts.split(field) for field in self._all()), strict=True)]

    def __getitem__(self, some: slice) -> Rows:
        return Rows(*(field[some] for field in self._all()))

    def _all(self) -> list[Tensor]:
        return [getattr(self, field.name) for field in fields(self)]


@dataclass(frozen=True, eq=False)
class Staged:
    """Rows in the order of their stages, see `HalfEvents.state_keys`."""

    rows: Rows
    ends: list[int]  # how many are of each stage, or of one before it


@dataclass(frozen=True, eq=False)
class Sight:
    """What a view sees of a batch that moves by blocks, and what the blocks that begin in it take from it."""

    seen: Staged  # the view's nodes
    blocks: range  # those that begin before the view's last event, and in no view before
    unseen: list[Staged]  # of each block, what it needs beside
    places: list[Tensor]  # of each block and its half-events, where their memory is among both


class ByBlock:
    """Moves memory inside a batch block after block, as standard batches of a block each would.

    What does not depend on weights is found for many steps together (`look`); then steps are measured one
    after another, and blocks take from each what they need.

    Args:
        model: The model, its memory as the batch found it.
        batch: The events.
        halves: Their half-events.
        contents: Where the memory just before each block is written, for all of its half-events.
        size: Events of a block.
    """

    def __init__(
        self, model: MDGNN, batch: EventStream, halves: HalfEvents, contents: Contents, size: int
    ) -> None:
        self.model, self.batch, self.halves, self.contents, self.size = model, batch, halves, contents, size
        self.done = self.planned = 0  # blocks
        number = torch.div(halves.event, size, rounding_mode="floor")
        # A node's half-events of one block are alike: they are neighbours here, and the first stands for all.
        begins = torch.ones_like(number, dtype=torch.bool)
        begins[1:] = (halves.node[1:] != halves.node[:-1]) | (number[1:] != number[:-1])
        first, stands_for = begins.nonzero().squeeze(1), begins.cumsum(0) - 1
        self._node, self._block = halves.node[first], number[first]
        self._received = halves.received(self._node, self._block * size)
        self._keys = halves.state_keys(self._node, self._received)
        self._stands_for = stands_for
        self._count = int(number.max()) + 1 if len(number) else 0
        of_block = torch.bincount(number, minlength=self._count).tolist()
        self._order, self._everyone = torch.argsort(number, stable=True), of_block
        moments = halves.after(self._node, self._received, model.memory)
        self.last_update = self._times(moments)[2][stands_for]  # [h] what each memory is of

    @torch.no_grad()
    def look(self, nodes: Sequence[Tensor], received: Sequence[Tensor], stops: Sequence[int]) -> list[Sight]:
        """Return what each of several views sees, the nodes and letters of each in the order of their keys.

        ``stops`` are the places after the last event of each.
        """
        halves, stages = self.halves, self._count + 2
        blocks = []
        for stop in stops:
            end = max(self.planned, min(-(-stop // self.size), self._count))
            blocks.append(range(self.planned, end))
            self.planned = end
        views = Parts([len(of_view) for of_view in nodes], self._keys.device)
        seen_keys = halves.state_keys(torch.cat([*nodes]), torch.cat([*received]))
        # Which view a block begins in, and which of its rows its half-events have.
        view_of = torch.full((self._count,), -1, device=self._keys.device)
        for i, begun in enumerate(blocks):
            view_of[begun.start : begun.stop] = i
        view = view_of[self._block]
        mine = (view >= 0).nonzero().squeeze(1)
        stride = stages * halves.num_nodes * (len(halves.letters.to) + 1)
        known, wanted = views.number * stride + seen_keys, view[mine] * stride + self._keys[mine]
        place = torch.searchsorted(known, wanted)
        there = torch.cat([known, known.new_full((1,), -1)])[place] == wanted
        place = place - views.starts[view[mine]]
        # The others are further rows, block after block, behind those of their view.
        other = mine[~there]
        other = other[torch.argsort(self._block[other] * stride + self._keys[other])]
        first_block = blocks[0].start
        unseen = Parts.of_numbers(self._block[other] - first_block, sum(map(len, blocks)))
        everything = Parts([*views.lengths, *unseen.lengths], self._keys.device)
        all_rows = self._rows(
            torch.cat([*nodes, self._node[other]]), torch.cat([*received, self._received[other]])
        )
        keys = torch.cat([seen_keys, self._keys[other]])
        stage = everything.number * stages + halves.of_state_keys(keys)[0]
        ends = torch.bincount(stage, minlength=len(everything) * stages).view(-1, stages).cumsum(1).tolist()
        staged = [Staged(*those) for those in zip(all_rows.split(everything), ends, strict=True)]
        view_start = torch.tensor([sum(unseen.lengths[: b.start - first_block]) for b in blocks])
        behind = torch.arange(len(other), device=place.device) - view_start.to(place.device)[view[other]]
        at = torch.zeros_like(self._block)
        at[mine] = place
        at[other] = behind + torch.tensor(views.lengths, device=place.device)[view[other]]
        places = torch.split(at[self._stands_for][self._order], self._everyone)
        return [
            Sight(
                staged[i],
                begun,
                staged[len(views) + begun.start - first_block : len(views) + begun.stop - first_block],
                list(places[begun.start : begun.stop]),
            )
            for i, begun in enumerate(blocks)
        ]

    def measure(self, sight: Sight) -> States:
        """Return the memory of a view's nodes, and go on with the blocks that begin in it."""
        return joined(self._stages(sight))

    def _stages(self, sight: Sight) -> Iterator[States]:
        seen, begin = sight.seen, 0
        u, needed = len(seen.rows.node), [len(others.rows.node) for others in sight.unseen]
        if self.done < sight.blocks.start:
            raise OptionError("the steps of a batch with blocks are measured one after another, all of them.")
        memory = self.contents.memory.new_empty(u + sum(needed), self.contents.memory.shape[1])
        behind = u
        for block, others, place in zip(sight.blocks, sight.unseen, sight.places, strict=True):
            if begin < seen.ends[block + 1]:  # what the blocks before this one have moved
                yield self._measured(seen, begin, seen.ends[block + 1], memory)
                begin = seen.ends[block + 1]
            if block < self.done:
                continue
            if len(others.rows.node):
                end = behind + len(others.rows.node)
                with torch.no_grad():
                    self._measured(others, 0, len(others.rows.node), memory[behind:end])
                behind = end
            self.contents.write(self._half_events(block), rows(memory, place))
            self.done += 1
        if begin < u:
            yield self._measured(seen, begin, u, memory)

    @torch.no_grad()
    def finish(self) -> None:
        """Go on with all blocks that are left, whatever a view will see."""
        none = self._keys[:0]
        (sight,) = self.look([none], [none], [len(self.batch)])
        for _ in self._stages(sight):
            pass

    def _half_events(self, block: int) -> Tensor:
        start = sum(self._everyone[:block])
        return self._order[start : start + self._everyone[block]]

    def _measured(self, staged: Staged, begin: int, end: int, memory: Tensor) -> States:
        """Return the states of some rows, and write to ``memory`` what their blocks are to have."""
        model, some = self.model, staged.rows[begin:end]
        bare, still = (min(max(stage - begin, 0), end - begin) for stage in staged.ends[:2])
        previous = rows(self.contents.memory, some.before)
        measured = previous
        if bare < end - begin:
            mailed = some[bare:]
            one = model.memory.slots == 1
            slots = Slots.one_each(len(mailed.mask), mailed.mask.device) if one else Slots.of(mailed.mask)
            content, event, t = (slots.pack(part) for part in (mailed.content, mailed.event, mailed.t))
            mail = Mail(Picked(self.contents.table, content), event, t, mailed.last_update, slots)
            measured = model.updated(previous[bare:], mailed.previous_update, mail).to(previous.dtype)
            if bare:
                measured = torch.cat([previous[:bare], measured])
        states = corrected(
            model.correction,
            nodes=some.node,
            previous=previous,
            measured=measured,
            previous_update=some.previous_update,
            last_update=some.last_update,
            pending=some.pending,
            count=some.count,
            partner_count=some.partner_count,
            last_event=some.last_event,
        )
        memory[begin:end] = states.measured.detach()  # as sweeps have it, but for what the batch found:
        if states.kept is not states.measured:
            memory[begin : begin + still] = states.kept[:still].detach()
        return states

    def _times(self, moments: Moments) -> tuple[Tensor, Tensor, Tensor]:
        """Return the events and times `[u, slots]` of moments' mails, and the time `[u]` of memory then."""
        state, letters, batch = self.model.memory, self.halves.letters, self.batch
        at, inside = letters.at[moments.read.clamp(min=0)], moments.read >= 0
        node, slot = moments.node.unsqueeze(1), moments.stored.clamp(min=0)
        t = torch.where(inside, batch.t[at], state.mail_t[node, slot])
        event = torch.where(inside, batch.offset + at, state.mail_event[node, slot])
        mailed = inside[:, 0] | (moments.stored[:, 0] >= 0)
        return event, t, torch.where(mailed, t[:, 0], state.last_update[moments.node])

    def _rows(self, nodes: Tensor, received: Tensor) -> Rows:
        """Return rows of nodes `[u]` with so many letters `[u]` of the batch."""
        state, halves = self.model.memory, self.halves
        moments = halves.after(nodes, received, state)
        still, begun = received == 0, moments.before >= 0
        # Whose memory or mail is as the batch found it has both behind those of the half-events.
        found = distinct(nodes[still]) if state.slots == 1 else distinct(nodes)
        at = torch.searchsorted(found, nodes)
        first_memory, first_mail = self.contents.append(found, state)
        inside = moments.read >= 0
        about = halves.about[moments.read.clamp(min=0)]
        stored = first_mail + (at * state.slots).unsqueeze(1) + moments.stored.clamp(min=0)
        event, t, last_update = self._times(moments)
        before = moments.before.clamp(min=0)
        own = halves.letters.is_own[moments.read[:, 0].clamp(min=0)].long()
        return Rows(
            node=nodes,
            before=torch.where(begun, moments.before, first_memory + at),
            content=torch.where(inside, about, stored),
            mask=inside | (moments.stored >= 0),
            event=event,
            t=t,
            previous_update=torch.where(begun, self.last_update[before], state.last_update[nodes]),
            last_update=last_update,
            pending=~still | (state.mails_received[nodes] > 0),
            count=torch.where(still, state.count[nodes], own),
            partner_count=torch.where(still, state.partner_count[nodes], 1),
            last_event=torch.where(begun, self.batch.t[halves.event[before]], state.last_event[nodes]),
        )
