"""The frame of every memory-based dynamic graph neural network.

One step on a batch: `look` at what it needs, `measure` the memory of those nodes from their mail,
`embed` them, score pairs, and then `absorb` the batch: write the memory of its nodes and send their mail.
Mail sent by one batch moves the memory in the next (lag one), so the update is inside the next batch's loss.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, Self

import torch
from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.errors import OptionError, check_choice
from pres.models.checks import check_next, check_parts, check_room, check_stands, check_whole, turns_of
from pres.models.mailed import MailWindow
from pres.models.routing import Delivery, Letters, deliveries_of, letters_of
from pres.models.sample import Embedding, Looking
from pres.models.scanned import Scanned, Window
from pres.models.sequential import SequentialMemory, SequentialPass
from pres.models.states import Correction, States, corrected
from pres.models.subgraph import View
from pres.nn.decoder import LinkDecoder
from pres.nn.gather import rows
from pres.nn.mailbox_scan import MailboxScan
from pres.nn.memory import Mail, Memory
from pres.nn.message import EventMessage, IdentityMessage
from pres.nn.node_encoding import NodeCodes
from pres.nn.scan_memory import ScanMemory
from pres.nn.scan_updater import ScanUpdater
from pres.nn.updater import GRUUpdater, MailboxAttention, RNNUpdater
from pres.sampling import TemporalIndex
from pres.sampling.index import Strategy, Visibility


class MDGNN(Looking):
    """A memory, how mail moves it, how it becomes an embedding, and how pairs are scored.

    Args:
        events: The whole stream; the model keeps its features and an index of it.
        memory: State of all nodes.
        message: Mail into messages.
        updater: Messages into new memories.
        embedding: Memories into embeddings.
        neighbours: Neighbours per hop, for the embedding or for delivery.
        aggregate: Which mail a node of several events in one batch gets: the ``"last"``, or their ``"mean"``.
        deliver_to: Whether mail goes to the ``"endpoints"`` or also to their ``"neighbours"``.
        embed: Each root at its own ``"event"``, or each distinct ``"node"`` once per batch.
        visibility: Which events neighbours come from, see `TemporalIndex.cutoffs`.
        strategy: Which of them: the most ``"recent"`` or ``"uniform"`` ones.
        codes: Who the nodes are; their codes go into mail (the memory must have room) and embedding.
        options: The arguments of the model's own class, kept with its runs; None for a model of one's own.
    """

    def __init__(
        self,
        events: EventStream,
        *,
        memory: Memory | ScanMemory,
        message: IdentityMessage | EventMessage,
        updater: GRUUpdater | RNNUpdater | MailboxAttention | ScanUpdater | MailboxScan,
        embedding: Embedding,
        neighbours: int = 10,
        aggregate: Literal["last", "mean"] = "last",
        deliver_to: Literal["endpoints", "neighbours"] = "endpoints",
        embed: Literal["event", "node"] = "event",
        visibility: Visibility = "fresh",
        strategy: Strategy = "recent",
        codes: NodeCodes | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.options = options
        check_choice("aggregate", aggregate, ("last", "mean"))
        check_choice("deliver_to", deliver_to, ("endpoints", "neighbours"))
        check_choice("embed", embed, ("event", "node"))
        check_choice("visibility", visibility, ("fresh", "batch"))
        check_choice("strategy", strategy, ("recent", "uniform"))
        if neighbours < 1:
            raise OptionError(f"neighbours={neighbours}: a model looks at one or more.")
        self.memory, self.message, self.updater, self.embedding = memory, message, updater, embedding
        self.link = LinkDecoder(embedding.dim)
        self.neighbours, self.aggregate, self.deliver_to = neighbours, aggregate, deliver_to
        self.per_node, self.visibility, self.strategy = embed == "node", visibility, strategy
        self.codes = NodeCodes(events.num_nodes, 0) if codes is None else codes
        check_parts(memory, message, updater, deliver_to)
        if isinstance(memory, Memory) and isinstance(message, IdentityMessage):
            check_room(memory, message, self.codes, aggregate)
        node_dim = self.codes.dim + (0 if events.node_x is None else events.node_x.shape[1])
        self.node_projection = nn.Linear(node_dim, memory.dim) if node_dim else None
        self.register_buffer("node_x", events.node_x, persistent=False)
        self.node_x: Tensor | None
        needs_index = embedding.hops > 0 or deliver_to == "neighbours"
        self.index = TemporalIndex(events) if needs_index else None
        self._t = events.t
        self._events = events if isinstance(memory, ScanMemory) else None
        self.correction: Correction | None = None  # of measured memories; pres.fit puts one here if asked to
        self.sequential = SequentialPass()

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Follow `to` and its kin: index and times move with the weights, but keep their type."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = self.memory.memory.device
        if self.index is not None:
            self.index = self.index.to(device)
        self._t = self._t.to(device)
        if self._events is not None:
            self._events = self._events.to(device)
        return self

    @property
    def scans(self) -> bool:
        """Whether memory is moved by a scan, and not by mail."""
        return isinstance(self.memory, ScanMemory)

    @property
    def title(self) -> str:
        """What tables call the model: a scan is another cell, so it never goes by the published name."""
        return f"{type(self).__name__}{'-scan' if self.scans else ''}"

    @property
    def mailboxes(self) -> Memory:
        """The memory of a model with mail."""
        if not isinstance(self.memory, Memory):
            raise OptionError("this is about memory that mail moves; a model with cell='scan' has no mail.")
        return self.memory

    def reset(self) -> None:
        """Forget every event: memory and mail, and what a correction learned from them."""
        self.memory.reset()
        if self.correction is not None:
            self.correction.reset()

    def compile_parts(self) -> None:
        """Let `torch.compile` make the parts with arithmetic faster, for batches of any size.

        Not a scan: how often it halves its rows follows from their number, so each number would be compiled.
        """
        for part in (self.message, self.updater, self.embedding):
            if not isinstance(part, ScanUpdater):
                part.compile(dynamic=True)

    def check_stream(self, events: EventStream) -> None:
        """Raise unless ``events`` is the whole stream that the model was made from."""
        check_whole(events, self._t, len(self.memory.memory))

    def measure(self, nodes: Tensor) -> States:
        """Return the memory of distinct nodes, their pending mail taken in: ``s' = mem(s, msg(mail))``."""
        state = self.memory
        if isinstance(state, ScanMemory):
            return self.scanned(self.window(int(state.position), int(state.position))).measure_all(nodes)
        previous, previous_update = rows(state.memory, nodes), state.last_update.index_select(0, nodes)
        pending = state.mails_received.index_select(0, nodes) > 0
        measured, last_update, mailed = previous, previous_update, pending.nonzero().squeeze(1)
        if len(mailed):
            mail = state.mail_of(nodes[mailed])
            updated = self.updated(rows(previous, mailed), previous_update.index_select(0, mailed), mail)
            measured, last_update = updated.to(previous.dtype), mail.newest_t
            if len(mailed) < len(nodes):
                measured = previous.index_copy(0, mailed, measured)
                last_update = previous_update.index_copy(0, mailed, last_update)
        return corrected(
            self.correction,
            nodes=nodes,
            previous=previous,
            measured=measured,
            previous_update=previous_update,
            last_update=last_update,
            pending=pending,
            count=state.count.index_select(0, nodes),
            partner_count=None if self.correction is None else state.partner_count[nodes],
            last_event=state.last_event.index_select(0, nodes),
        )

    def window(self, start: int, stop: int) -> Window:
        """Return what is scanned for the batch of events from ``start`` to ``stop``."""
        assert self._events is not None
        if self.deliver_to == "neighbours" and self.index is not None:
            return MailWindow.sending(self._events, start, stop, self.index, self.neighbours)
        return Window.of(self._events, start, stop)

    def scanned(self, window: Window) -> Scanned:
        """Return the memory inside a window, which memory must stand at the beginning of."""
        assert isinstance(self.memory, ScanMemory)
        check_stands(self.memory, window.batch.offset)
        return window.scanned(self.memory, self.message, self.updater, self.codes)

    def updated(self, memory: Tensor, last_update: Tensor, mail: Mail) -> Tensor:
        """Return memories `[w, d]`, which are of times ``last_update`` `[w]`, moved by their mail."""
        # A single mail is timed by the gap it closes, the mails of a mailbox by their age.
        single = self.memory.slots == 1
        difference = mail.t - last_update if single else rows(mail.newest_t, mail.slots.query) - mail.t
        moved: Tensor = self.updater(memory, self.message(mail, difference), mail.slots)
        return moved

    def states_of(self, view: View, inside: SequentialMemory | None = None) -> States:
        """Return the memory of a view's nodes as it sees them."""
        if inside is None or view.received is None:
            return self.measure(view.nodes)
        return inside.measure(view.nodes, view.received)

    def embed(self, view: View, states: States) -> Tensor:
        """Return the embeddings `[r, dim]` of the view's roots."""
        memory = states.memory
        if self.node_projection is not None:
            memory = memory + self.node_projection(self._static(states.nodes).to(memory.dtype))
        since_event = view.t - states.last_event.index_select(0, view.roots)
        given = (view.hops,) if view.prepared is None else (view.hops, view.prepared)
        embedding: Tensor = self.embedding(memory, view.roots, since_event, *given)
        return embedding

    def _static(self, nodes: Tensor) -> Tensor:
        """Return what is known of nodes `[u]` apart from events: their features and their code."""
        codes: Tensor = self.codes(nodes)
        return codes if self.node_x is None else torch.cat([rows(self.node_x, nodes), codes], dim=1)

    def score(self, view: View, states: States) -> tuple[Tensor, Tensor]:
        """Return the logits of the events `[b]` and of their negatives `[b, count]`."""
        logits = self.logits(view, states)
        return logits[:, 0], logits[:, 1:]

    def logits(self, view: View, states: States) -> Tensor:
        """Return the same side by side `[b, 1 + count]`."""
        h = self.embed(view, states)
        if view.apart:
            return self.link.in_rows(h, *view.to.shape)
        # Each distinct root once.
        of_src, of_to = rows(self.link.src(h), view.src), rows(self.link.dst(h), view.to)
        return self.link.join(of_src.unsqueeze(1), of_to)

    def address(self, batch: EventStream) -> Delivery:
        """Return who gets mail of a batch, and of which events; neither weights nor memory matter to it."""
        return self.address_ahead(batch, len(batch))[0]

    def address_ahead(self, batches: EventStream, b: int, negatives: Tensor | None = None) -> list[Delivery]:
        """Return the same for each of several batches of ``b`` events, found together.

        With ``negatives`` `[n, count]` these get mail too, as if the pairs were events.
        """
        neighbourly, turns, cutoffs = None, turns_of(batches, b), None
        if self.deliver_to == "neighbours" and self.index is not None:
            neighbourly, cutoffs = self.index, self.index.cutoffs(batches)
            if self.visibility == "batch":
                starts = batches.offset + b * torch.arange(turns, device=cutoffs.device)
                cutoffs = torch.minimum(cutoffs, starts.repeat_interleave(b))
        letters = letters_of(batches, neighbourly, cutoffs, self.neighbours, turns, negatives)
        return deliveries_of(letters, batches.num_nodes, b, turns)

    @torch.no_grad()
    def absorb(
        self,
        batch: EventStream,
        states: States | None = None,
        sequential: bool = False,
        delivery: Delivery | None = None,
        inside: SequentialMemory | None = None,
        places: Tensor | None = None,
    ) -> None:
        """Write the memory of the batch's nodes, then send the mail of its events.

        Mail is written where `measure` reads it: take gradients of what was measured before.

        Args:
            batch: The next events of the stream.
            states: The memory of their nodes (among others'); without it they are measured now.
            sequential: Whether every event is applied in its order, as if they came one at a time. By default
                each node of the batch is updated once, by its last event, as if its others had not been.
            delivery: What `address` says of the batch, if it was asked before.
            inside: The sequential memory inside the batch, if that is known already.
            places: Where the batch's distinct nodes are among ``states``, if that is known already.
        """
        check_next(batch, batch.offset, self._t, self.memory)
        if isinstance(self.memory, ScanMemory):
            self.scanned(self.window(batch.offset, batch.offset + len(batch))).commit()
            return
        if sequential:
            self.sequential.absorb(inside or self.sequential.memory(self, batch, states))
            self.memory.position.fill_(batch.offset + len(batch))
            return
        if delivery is None:
            delivery = self.address(batch)
        nodes = delivery.endpoints
        if self.deliver_to == "neighbours" and self.memory.slots == 1:
            # New mail takes the place of the old, so that of a neighbour must have moved its memory before.
            nodes, states = delivery.last.to, None
        if states is None:
            states, places = self.measure(nodes), None
        if places is None:
            places = states.places_of(nodes)
        self.memory.commit(nodes, rows(states.kept, places), states.last_update.index_select(0, places))
        self._send_mail(batch, delivery)
        self.memory.position.fill_(batch.offset + len(batch))

    def _send_mail(self, batch: EventStream, delivery: Delivery) -> None:
        """Give every recipient of this batch one mail: of its last event, or the mean of all."""
        last, counts = delivery.last, delivery.counts
        needed = last if self.aggregate == "last" else delivery.letters
        memories = rows(self.memory.memory, needed.own), rows(self.memory.memory, needed.partner)
        content = torch.cat([*memories, self.about(batch, needed)], dim=1)
        if self.aggregate == "mean":
            group = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
            total = content.new_zeros(len(counts), content.shape[1]).index_add_(0, group, content)
            content = total / counts.unsqueeze(1)
        t = batch.t.index_select(0, last.at)
        self.mailboxes.deliver(last.to, content, batch.offset + last.at, t)
        self.mailboxes.tally(last.to, delivery.own_events, delivery.partner_events, t)

    def about(self, batch: EventStream, letters: Letters) -> Tensor:
        """Return what a letter `[m, …]` holds beside the two memories: codes, and features if it must."""
        parts = [self.codes(letters.own), self.codes(letters.partner)]
        if self.message.mailed:
            events = batch.offset + letters.at
            parts.append(self.message.features.numeric(events, self.mailboxes.mail.dtype))
        return torch.cat(parts, dim=1)
