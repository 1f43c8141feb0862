"""Memory inside a batch that moves block after block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from pres.errors import OptionError
from pres.events import EventStream
from pres.incidence import check_key_range, distinct
from pres.models.half_events import HalfEvents, Moments
from pres.models.reading import Contents, beside_memories
from pres.models.states import States
from pres.nn.gather import Picked, rows
from pres.nn.memory import Mail
from pres.nn.slots import Slots
from pres.nn.updaters import InTurns, in_turns
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
        of_each = (parts.split(getattr(self, field.name)) for field in fields(self))
        return [Rows(*those) for those in zip(*of_each, strict=True)]


@dataclass(frozen=True, eq=False)
class Sight:
    """What a view sees of a batch that moves by blocks, and what the blocks that begin in it take from it."""

    rows: Rows  # of the view's nodes, in the order of their stages, see `HalfEvents.state_keys`
    ends: list[int]  # how many are of each stage, or of one before it
    blocks: range  # those that begin before the view's last event, and in no view before
    places: list[Tensor]  # of each block and its half-events, which row each of them has


class Beginnings(NamedTuple):
    """Nodes at the beginning of blocks, and the view `[f]` that each block begins in."""

    node: Tensor
    received: Tensor  # letters of the batch
    view: Tensor


class BlockContents(Contents):
    """What mail holds inside a batch that moves by blocks; what was there before the batch comes behind."""

    def __init__(self, model: MDGNN, batch: EventStream, halves: HalfEvents) -> None:
        self.dim, self.other, self.state = model.mailboxes.dim, halves.other, model.mailboxes
        self._beside = beside_memories(model, batch, halves)
        self.memory, self.table = (self._beside.new_empty(0, d) for d in (self.dim, model.mailboxes.mail_dim))

    def append(self, nodes: Tensor) -> tuple[int, int]:
        """Put memory and mails of nodes `[n]` behind all others, and return where each begin."""
        state, (h, n) = self.state, (len(self._beside), len(nodes))
        begin = max(len(self.memory), h), max(len(self.table), h)
        memory = self.memory.new_empty(begin[0] + n, self.dim)
        table = self.table.new_empty(begin[1] + n * state.slots, state.mail_dim)
        if len(self.memory):
            memory[: begin[0]], table[: begin[1]] = self.memory, self.table
        else:  # memories come block by block
            table[:h, 2 * self.dim :] = self._beside
        torch.index_select(state.memory, 0, nodes, out=memory[begin[0] :])
        mails = table[begin[1] :].view(n, state.slots * state.mail_dim)
        torch.index_select(state.mail.flatten(1), 0, nodes, out=mails)
        self.memory, self.table = memory, table
        return begin


class ByBlock:
    """Moves memory inside a batch block after block, as standard batches of a block each would.

    What does not depend on weights is found for many steps together (`look`); then steps are measured one
    after another, and blocks take from each what they need.

    Args:
        model: The model, its memory as the batch found it.
        batch: The events.
        halves: Their half-events.
        size: Events of a block.
    """

    def __init__(self, model: MDGNN, batch: EventStream, halves: HalfEvents, size: int) -> None:
        self.model, self.batch, self.halves, self.size = model, batch, halves, size
        self.contents = BlockContents(model, batch, halves)
        self.done = self.planned = 0  # blocks
        number = torch.div(halves.event, size, rounding_mode="floor")
        # A node's half-events of one block are alike: they are neighbours here, and the first stands for all.
        begins = torch.ones_like(number, dtype=torch.bool)
        begins[1:] = (halves.node[1:] != halves.node[:-1]) | (number[1:] != number[:-1])
        first, self._stands_for = begins.nonzero().squeeze(1), begins.cumsum(0) - 1
        self._node, self._block = halves.node[first], number[first]
        self._received = halves.received(self._node, self._block * size)
        self._keys = halves.state_keys(self._node, self._received)
        self._count = int(number.max()) + 1 if len(number) else 0
        of_block = torch.bincount(number, minlength=self._count).tolist()
        self._half_events = torch.split(torch.argsort(number, stable=True), of_block)
        moments = halves.after(self._node, self._received, model.mailboxes)
        self.last_update = self._times(moments)[2][self._stands_for]  # [h] what each memory is of

    def beginnings(self, stops: Sequence[int]) -> Beginnings:
        """Return whom the blocks need that begin in views with these ``stops``: the places behind each view.

        The views are the next ones, and must look at these nodes too.
        """
        view = self._view_of(self._blocks_of(stops))[self._block]
        mine = (view >= 0).nonzero().squeeze(1)
        return Beginnings(self._node[mine], self._received[mine], view[mine])

    @torch.no_grad()
    def look(self, nodes: Sequence[Tensor], received: Sequence[Tensor], stops: Sequence[int]) -> list[Sight]:
        """Return what each of the next views sees, its nodes and letters in the order of their keys."""
        halves, blocks, stages = self.halves, self._blocks_of(stops), self._count + 2
        views, everyone = Parts([len(of_view) for of_view in nodes], self._keys.device), torch.cat([*nodes])
        keys = halves.state_keys(everyone, torch.cat([*received]))
        stage = views.number * stages + halves.of_state_keys(keys)[0]
        ends = torch.bincount(stage, minlength=len(views) * stages).view(-1, stages).cumsum(1).tolist()
        # Where the first half-events of blocks are among the rows of the view that those begin in.
        letters = len(halves.letters.to) + 1
        check_key_range(stages * halves.num_nodes, letters * len(views))
        stride = stages * halves.num_nodes * letters
        view = self._view_of(blocks)[self._block].clamp_(min=0)
        place = torch.searchsorted(views.number * stride + keys, view * stride + self._keys)
        place = (place - views.starts[view])[self._stands_for]
        parts = self._rows(everyone, torch.cat([*received])).split(views)
        self.planned = blocks[-1].stop
        return [
            Sight(own, until, begun, [place[self._half_events[block]] for block in begun])
            for own, until, begun in zip(parts, ends, blocks, strict=True)
        ]

    def _blocks_of(self, stops: Sequence[int]) -> list[range]:
        """Return the blocks that begin before each stop, and in no view before."""
        ends = [self.planned, *(min(-(-stop // self.size), self._count) for stop in stops)]
        return [range(begin, max(begin, end)) for begin, end in pairwise(accumulate(ends, max))]

    def _view_of(self, blocks: Sequence[range]) -> Tensor:
        """Return which of the views each block begins in; -1 for none."""
        found = torch.full((self._count,), -1)
        for i, begun in enumerate(blocks):
            found[begun.start : begun.stop] = i
        return found.to(self._keys.device)

    def measure(self, sight: Sight) -> States:
        """Return the memory of a view's nodes, and go on with the blocks that begin in it."""
        correction, seen, bare = self.model.correction, sight.rows, sight.ends[0]
        turns = None  # a correction follows each turn with a gradient of its own
        if correction is None and torch.is_grad_enabled():
            turns = in_turns(self.model.updater, seen.node.device)
        parts = zip(*self._stages(sight, turns), strict=True)
        previous, measured, kept = (list(of_stages) for of_stages in parts)
        if turns is not None and bare < len(seen.node):  # those without mail come first
            measured = kept = [previous[0][:bare], turns.all().to(previous[0].dtype)]
        before, found, to_keep = (
            part[0] if len(part) == 1 else torch.cat(part) for part in (previous, measured, kept)
        )
        to_keep = to_keep if correction is not None else found  # one tensor stays one
        return States(
            nodes=seen.node,
            previous=before,
            measured=found,
            corrected=to_keep,
            kept=to_keep,
            memory=found if correction is None or not correction.embedded else to_keep,
            previous_update=seen.previous_update,
            last_update=seen.last_update,
            pending=seen.pending,
            count=seen.count,
            last_event=seen.last_event,
        )

    @torch.no_grad()
    def finish(self) -> None:
        """Go on with all blocks that are left, whatever a view will see."""
        stops = [len(self.batch)]
        node, received, _ = self.beginnings(stops)
        order = torch.argsort(self.halves.state_keys(node, received))
        (sight,) = self.look([node[order]], [received[order]], stops)
        for _ in self._stages(sight):
            pass

    def _stages(self, sight: Sight, turns: InTurns | None = None) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Yield the memory of a view's nodes before, measured and to be kept, stage after stage.

        With ``turns`` it is those that have the gradients.
        """
        if self.done < sight.blocks.start:
            raise OptionError("the steps of a batch with blocks are measured one after another, all of them.")
        u, begin = len(sight.rows.node), 0
        memory = self.contents.memory.new_empty(u, self.contents.memory.shape[1])
        for block, place in zip(sight.blocks, sight.places, strict=True):
            if begin < sight.ends[block + 1]:  # what the blocks before this one have moved
                yield self._measured(sight, begin, sight.ends[block + 1], memory, turns)
                begin = sight.ends[block + 1]
            if block == self.done:
                self.contents.write(self._half_events[block], rows(memory, place))
                self.done += 1
        if begin < u:
            yield self._measured(sight, begin, u, memory, turns)

    def _measured(
        self, sight: Sight, begin: int, end: int, memory: Tensor, turns: InTurns | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the memory of some rows, and write to ``memory`` what their blocks are to have."""
        model, seen, some = self.model, sight.rows, slice(begin, end)
        bare, still = (min(max(until, begin), end) for until in sight.ends[:2])
        previous = measured = rows(self.contents.memory, seen.before[some])
        if bare < end:
            mailed, mask = slice(bare, end), seen.mask[bare:end]
            one = model.mailboxes.slots == 1
            slots = Slots.one_each(len(mask), mask.device) if one else Slots.of(mask)
            content, event, t = (slots.pack(part[mailed]) for part in (seen.content, seen.event, seen.t))
            mail = Mail(Picked(self.contents.table, content), event, t, seen.last_update[mailed], slots)
            moved = previous[bare - begin :]
            measured = model.updated(moved, seen.previous_update[mailed], mail, turns).to(previous.dtype)
            if bare > begin:
                measured = torch.cat([previous[: bare - begin], measured])
        kept = measured
        if model.correction is not None:
            elapsed = seen.last_update[some] - seen.previous_update[some]
            told = elapsed, seen.count[some], seen.partner_count[some]
            found = model.correction(seen.node[some], previous, measured, *told)
            kept = torch.where(seen.pending[some].unsqueeze(1), found, previous)
        memory[begin:end] = measured.detach()  # as sweeps have it, but for what the batch found:
        if kept is not measured:
            memory[begin:still] = kept[: still - begin].detach()
        return previous, measured, kept

    def _times(self, moments: Moments) -> tuple[Tensor, Tensor, Tensor]:
        """Return the events and times `[u, slots]` of moments' mails, and the time `[u]` of memory then."""
        state, letters, batch = self.model.mailboxes, self.halves.letters, self.batch
        at, inside = rows(letters.at, moments.read.clamp(min=0)), moments.read >= 0
        stored = (moments.node * state.slots).unsqueeze(1) + moments.stored.clamp(min=0)
        t = torch.where(inside, rows(batch.t, at), rows(state.mail_t.view(-1), stored))
        event = torch.where(inside, batch.offset + at, rows(state.mail_event.view(-1), stored))
        mailed = inside[:, 0] | (moments.stored[:, 0] >= 0)
        return event, t, torch.where(mailed, t[:, 0], rows(state.last_update, moments.node))

    def _rows(self, nodes: Tensor, received: Tensor) -> Rows:
        """Return rows of nodes `[u]` with so many letters `[u]` of the batch."""
        state, halves = self.model.mailboxes, self.halves
        moments = halves.after(nodes, received, state)
        still, begun = received == 0, moments.before >= 0
        # Whose memory or mail is as the batch found it has both behind those of the half-events.
        found = distinct(nodes[still]) if state.slots == 1 else distinct(nodes)
        at = torch.searchsorted(found, nodes)
        first_memory, first_mail = self.contents.append(found)
        inside = moments.read >= 0
        about = rows(halves.about, moments.read.clamp(min=0))
        stored = first_mail + (at * state.slots).unsqueeze(1) + moments.stored.clamp(min=0)
        event, t, last_update = self._times(moments)
        before = moments.before.clamp(min=0)
        own = rows(halves.letters.is_own, moments.read[:, 0].clamp(min=0)).long()
        last_known, last_event = rows(state.last_update, nodes), rows(state.last_event, nodes)
        return Rows(
            node=nodes,
            before=torch.where(begun, moments.before, first_memory + at),
            content=torch.where(inside, about, stored),
            mask=inside | (moments.stored >= 0),
            event=event,
            t=t,
            previous_update=torch.where(begun, rows(self.last_update, before), last_known),
            last_update=last_update,
            pending=~still | (rows(state.mails_received, nodes) > 0),
            count=torch.where(still, rows(state.count, nodes), own),
            partner_count=torch.where(still, rows(state.partner_count, nodes), 1),
            last_event=torch.where(begun, rows(self.batch.t, halves.event[before]), last_event),
        )
