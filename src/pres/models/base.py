"""The frame of every memory-based dynamic graph neural network.

One step on a batch: `sample` the subgraph it needs, find the `updated_memory` of those nodes from their mail,
`embed` them, score pairs, and then `update_state`: write the memory of the batch's nodes and send their mail.

Mail sent by one batch moves the memory in the next (lag one), so the update is inside the next
batch's loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, Self

import torch
from torch import Tensor, nn

from pres.data.stream import EventStream
from pres.errors import OptionError, check_choice
from pres.models.checks import check_longer, check_next, check_stands, check_whole
from pres.models.composition import check_composition
from pres.models.routing import MessageRouting, RawMessages, message_keys
from pres.models.sample import Subgraph, SubgraphSampler
from pres.models.scanned import Scanned, Window
from pres.models.states import States, corrected
from pres.nn.decoder import LinkDecoder
from pres.nn.embedding import Embedding
from pres.nn.encoding import NodeEncoding
from pres.nn.mailbox_scan import MailboxScan
from pres.nn.memory import Mail, Memory
from pres.nn.message import EventMessage, IdentityMessage
from pres.nn.ops import rows
from pres.nn.scan_memory import ScanMemory
from pres.nn.scan_updater import ScanUpdater
from pres.nn.updater import GRUUpdater, MailboxAttention, RNNUpdater
from pres.sampling import TemporalIndex
from pres.sampling.growing import grown
from pres.sampling.index import Strategy, Visibility
from pres.smoothing import Role, Smoothing, Update


class MDGNN(SubgraphSampler):
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
        node_encoding: Who the nodes are; it goes into mail (the memory must have room) and embedding.
        options: The arguments of the model's own class, kept with its runs; None: those of `build_model`.
    """

    tgl: ClassVar[dict[str, Any]] = {}  # what differs from our defaults in TGL (its configs, memorys.py)

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
        node_encoding: NodeEncoding | None = None,
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
        self.node_encoding = NodeEncoding(events.num_nodes, 0) if node_encoding is None else node_encoding
        parts = memory, message, updater, embedding, self.node_encoding
        check_composition(events.num_nodes, *parts, aggregate, deliver_to)
        node_dim = self.node_encoding.dim + (0 if events.node_x is None else events.node_x.shape[1])
        self.node_projection = nn.Linear(node_dim, memory.dim) if node_dim else None
        self.register_buffer("node_x", events.node_x, persistent=False)
        self.node_x: Tensor | None
        needs_index = embedding.hops > 0 or deliver_to == "neighbours"
        self.index = TemporalIndex(events) if needs_index else None
        self._t = events.t
        self._events = events if isinstance(memory, ScanMemory) else None
        self.smoothing: Smoothing | None = None  # of the memory; pres.fit puts it here
        self.levels: dict[tuple[int, int], Tensor] = {}  # of batches, kept by `pres.models.sequential`

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Follow `to` and its kin: index and times move with the weights, but keep their type."""
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        device = self.memory.device
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
        """Forget every event: memory and mail, and what smoothing learned from them."""
        self.memory.reset()
        if self.smoothing is not None:
            self.smoothing.reset()

    def grow(self, events: EventStream) -> None:
        """Follow a stream that has grown: see its new events, and make room for its new nodes.

        Memory does not move: `update_state` takes the events in. Every part that keeps something of each node
        or event has a ``grow`` of its own.
        """
        check_longer(events, self._t, self.memory.num_nodes)
        events = events.to(self.memory.device)
        for part in self.modules():
            if part is not self and callable(grow := getattr(part, "grow", None)):
                grow(events)
        if self.node_x is not None and events.node_x is not None:
            self.node_x = events.node_x.to(self.node_x)
        if self.index is not None:
            self.index = grown(self.index, events)
        self._t = events.t
        if self._events is not None:
            self._events = events

    def check_stream(self, events: EventStream) -> None:
        """Raise unless ``events`` is the whole stream that the model was made from."""
        check_whole(events, self._t, self.memory.num_nodes)

    def updated_memory(self, nodes: Tensor) -> States:
        """Return the memory of distinct nodes, their pending mail taken in: ``s' = mem(s, msg(mail))``."""
        state = self.memory
        if isinstance(state, ScanMemory):
            return self.scanned(self.window(state.position, state.position)).updated_memory_all(nodes)
        stored = state.read(nodes)
        previous, previous_update, pending = stored.memory, stored.last_update, stored.received > 0
        measured, last_update, mailed = previous, previous_update, pending.nonzero().squeeze(1)
        if len(mailed):
            mail = state.read_mail(nodes[mailed])
            updated = self.updated(rows(previous, mailed), previous_update.index_select(0, mailed), mail)
            measured, last_update = updated.to(previous.dtype), mail.newest_t
            if len(mailed) < len(nodes):
                measured = previous.index_copy(0, mailed, measured)
                last_update = previous_update.index_copy(0, mailed, last_update)
        return corrected(
            self.smoothing,
            nodes=nodes,
            previous=previous,
            measured=measured,
            previous_update=previous_update,
            last_update=last_update,
            pending=pending,
            last_event=stored.last_event,
        )

    def window(self, start: int, stop: int) -> Window:
        """Return what is scanned for the batch of events from ``start`` to ``stop``."""
        assert self._events is not None
        if self.deliver_to == "neighbours" and self.index is not None:
            return Window.of(self._events, start, stop, self.index, self.neighbours)
        return Window.of(self._events, start, stop)

    def scanned(self, window: Window) -> Scanned:
        """Return the memory inside a window, which memory must stand at the beginning of."""
        assert isinstance(self.memory, ScanMemory)
        check_stands(self.memory, window.batch.offset)
        return window.scanned(self.memory, self.message, self.updater, self.node_encoding)

    def updated(self, memory: Tensor, last_update: Tensor, mail: Mail) -> Tensor:
        """Return memories `[w, d]`, which are of times ``last_update`` `[w]`, moved by their mail."""
        # A single mail is timed by the gap it closes, the mails of a mailbox by their age.
        single = self.memory.slots == 1
        difference = mail.t - last_update if single else rows(mail.newest_t, mail.slots.query) - mail.t
        moved: Tensor = self.updater(memory, self.message(mail, difference), mail.slots)
        return moved

    def embed(self, subgraph: Subgraph, states: States) -> Tensor:
        """Return the embeddings `[r, dim]` of the subgraph's roots."""
        memory = states.memory
        if self.node_projection is not None:
            static = self.node_encoding(states.nodes)
            if self.node_x is not None:
                static = torch.cat([rows(self.node_x, states.nodes), static], dim=1)
            memory = memory + self.node_projection(static.to(memory.dtype))
        since_event = subgraph.t - states.last_event.index_select(0, subgraph.roots)
        embedding: Tensor = self.embedding(memory, subgraph.roots, since_event, subgraph.hops)
        return embedding

    def score(self, subgraph: Subgraph, states: States) -> tuple[Tensor, Tensor]:
        """Return the logits of the events `[b]` and of their negatives `[b, count]`."""
        logits = self.logits(subgraph, states)
        return logits[:, 0], logits[:, 1:]

    def logits(self, subgraph: Subgraph, states: States) -> Tensor:
        """Return the same side by side `[b, 1 + count]`."""
        h = self.embed(subgraph, states)
        if subgraph.apart:
            return self.link.in_rows(h, *subgraph.to.shape)
        # Each distinct root once.
        of_src, of_to = rows(self.link.src(h), subgraph.src), rows(self.link.dst(h), subgraph.to)
        return self.link.join(of_src.unsqueeze(1), of_to)

    def route(self, batch: EventStream, negatives: Tensor | None = None) -> MessageRouting:
        """Return who gets mail of a batch, and of which events; neither weights nor memory matter to it.

        With ``negatives`` `[b, count]` these get mail too, as if the pairs were events.
        """
        index = cutoffs = None
        if self.deliver_to == "neighbours" and self.index is not None:
            index, cutoffs = self.index, self.index.cutoffs(batch, self.visibility)
        return MessageRouting.of(batch, message_keys(batch, index, cutoffs, self.neighbours, negatives))

    @torch.no_grad()
    def update_state(
        self,
        batch: EventStream,
        states: States | None = None,
        routing: MessageRouting | None = None,
    ) -> None:
        """Write the memory of the batch's nodes, then send the mail of its events.

        Each node is updated once, by its last event in the batch, as if its others had not been;
        `pres.models.sequential` takes every event in, in its order. Mail is written where `updated_memory`
        reads it: take gradients of what was measured before.

        Args:
            batch: The next events of the stream.
            states: The memory of their nodes (among others'); without it they are measured now.
            routing: What `route` says of the batch, if it was asked before.
        """
        check_next(batch, batch.offset, self._t, self.memory)
        if isinstance(self.memory, ScanMemory):
            self.scanned(self.window(batch.offset, batch.offset + len(batch))).commit()
            return
        if routing is None:
            routing = self.route(batch)
        nodes = routing.endpoints
        if self.deliver_to == "neighbours" and self.memory.slots == 1:
            # New mail takes the place of the old, so that of a neighbour must have moved its memory before.
            nodes, states = routing.last.to, None
        if states is None:
            states = self.updated_memory(nodes)
        places = states.places_of(nodes)
        self.memory.write(nodes, rows(states.kept, places), states.last_update.index_select(0, places))
        self._send_mail(batch, routing)
        self.memory.advance(batch.offset + len(batch))

    @torch.no_grad()
    def pending_update(
        self, roles: Mapping[Role, Tensor], states: States
    ) -> tuple[Update, dict[Role, Tensor]]:
        """Return what pending mail does to the memory of nodes, and where those of each role are among them.

        It is for `Smoothing.observe`, once the batch is taken in. ``roles`` are distinct nodes, all of them
        among the ``states``.
        """
        update = Update(
            states.nodes,
            states.previous,
            states.measured,
            states.corrected,
            states.last_update - states.previous_update,
            self.mailboxes.received(states.nodes),
        )
        places = {role: states.places_of(nodes) for role, nodes in roles.items()}
        return update, {role: place[states.pending[place]] for role, place in places.items()}

    def _send_mail(self, batch: EventStream, routing: MessageRouting) -> None:
        """Give every recipient of this batch one mail: of its last event, or the mean of all."""
        last, counts = routing.last, routing.counts
        needed = last if self.aggregate == "last" else routing.raw_messages
        memories = self.memory.read_memory(needed.own), self.memory.read_memory(needed.partner)
        content = torch.cat([*memories, self.about(batch, needed)], dim=1)
        if self.aggregate == "mean":
            group = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
            total = content.new_zeros(len(counts), content.shape[1]).index_add_(0, group, content)
            content = total / counts.unsqueeze(1)
        t = batch.t.index_select(0, last.at)
        self.mailboxes.write_mail(last.to, content, batch.offset + last.at, t)
        self.mailboxes.write_last_event(routing.endpoints, batch.t[routing.last_events])

    def about(self, batch: EventStream, raw_messages: RawMessages) -> Tensor:
        """Return what a raw message `[m, …]` holds beside the two memories."""
        parts = [self.node_encoding(raw_messages.own), self.node_encoding(raw_messages.partner)]
        if self.message.mailed:
            events = batch.offset + raw_messages.at
            parts.append(self.message.features.numeric(events, self.memory.dtype))
        return torch.cat(parts, dim=1)
