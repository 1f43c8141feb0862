"""The frame of every memory-based dynamic graph neural network.

One step on a batch: `look` at what it needs, `measure` the memory of those nodes from their mail,
`embed` them, score pairs, and then `absorb` the batch: write the memory of its nodes and send their mail.
Mail sent by one batch moves the memory in the next (lag one), so the update is inside the next batch's loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from pres.errors import OptionError, check_choice
from pres.events import EventStream
from pres.incidence import distinct
from pres.nn.decoders import LinkDecoder
from pres.nn.embedding import Hop, IdentityEmbedding, TemporalAttention, TimeProjection
from pres.nn.gather import rows
from pres.nn.memory import Memory
from pres.nn.messages import IdentityMessage
from pres.nn.updaters import GRUUpdater, MailboxAttention, RNNUpdater
from pres.sampling import Neighbours, TemporalIndex
from pres.sampling.index import Strategy, Visibility, check_slice
from pres.summary import gaps_between_events_of_a_node

Embedding = IdentityEmbedding | TimeProjection | TemporalAttention


@dataclass(frozen=True, eq=False)
class View:
    """Everything a step looks at, prepared without the weights.

    ``src``, ``dst`` and ``negatives`` are positions among the roots; ``roots`` and the hops' nodes are
    positions among ``nodes``.
    """

    nodes: Tensor  # [u] distinct nodes, increasing
    roots: Tensor  # [r]
    t: Tensor  # [r] the time each root is asked for
    hops: list[Hop]
    src: Tensor  # [b]
    dst: Tensor  # [b]
    negatives: Tensor  # [b, count]


@dataclass(frozen=True, eq=False)
class States:
    """The memory of distinct nodes, before and after their pending mail."""

    nodes: Tensor  # [u], increasing
    previous: Tensor  # [u, d], as committed
    memory: Tensor  # [u, d], with the mail taken in; as committed for a node without mail
    previous_update: Tensor  # [u], the time ``previous`` is of
    last_update: Tensor  # [u], the time ``memory`` is of
    pending: Tensor  # [u] bool, whether there was mail
    count: Tensor  # [u] events of the node in the batch that wrote the mail, c


class MDGNN(nn.Module):
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
    """

    def __init__(
        self,
        events: EventStream,
        *,
        memory: Memory,
        message: IdentityMessage,
        updater: GRUUpdater | RNNUpdater | MailboxAttention,
        embedding: Embedding,
        neighbours: int = 10,
        aggregate: Literal["last", "mean"] = "last",
        deliver_to: Literal["endpoints", "neighbours"] = "endpoints",
        embed: Literal["event", "node"] = "event",
        visibility: Visibility = "fresh",
        strategy: Strategy = "recent",
    ) -> None:
        super().__init__()
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
        node_dim = 0 if events.node_x is None else events.node_x.shape[1]
        self.node_projection = nn.Linear(node_dim, memory.dim) if node_dim else None
        self.register_buffer("node_x", events.node_x, persistent=False)
        self.node_x: Tensor | None
        needs_index = embedding.hops > 0 or deliver_to == "neighbours"
        self.index = TemporalIndex(events) if needs_index else None
        self._t = events.t

    def look(self, batch: EventStream, negatives: Tensor, batch_start: int | None = None) -> View:
        """Return what predicting ``batch`` against ``negatives`` `[b, count]` needs to see.

        Where ``batch`` is only a part of a temporal batch, ``batch_start`` says where that began.
        """
        self._check_next(batch, batch.offset if batch_start is None else batch_start)
        b, count = negatives.shape
        nodes = torch.cat([batch.src, batch.dst, negatives.flatten()])
        t = torch.cat([batch.t, batch.t, batch.t.repeat_interleave(count)])
        place = torch.arange(len(nodes), device=nodes.device)
        if self.per_node:
            nodes, place = torch.unique(nodes, return_inverse=True)
            t = batch.t[:1].expand(len(nodes))
        hops = self._hops(batch, nodes, t, count, batch_start)
        seen, inverse = torch.unique(
            torch.cat([nodes, *(hop.node.flatten() for hop in hops)]), return_inverse=True
        )
        roots, *rest = torch.split(inverse, [len(nodes), *(hop.node.numel() for hop in hops)])
        hops = [replace(hop, node=at.view_as(hop.node)) for hop, at in zip(hops, rest, strict=True)]
        src, dst, negative = torch.split(place, [b, b, b * count])
        return View(seen, roots, t, hops, src, dst, negative.view(b, count))

    def _check_next(self, batch: EventStream, start: int) -> None:
        """Raise unless ``batch`` is of the model's stream and not in its memory yet."""
        check_slice(batch, self._t, "the model")
        if start < int(self.memory.position):
            raise OptionError(
                f"the memory has taken in {int(self.memory.position):,} events and knows event {start:,} "
                "already. Use model.memory.reset(), or restore a state from before them."
            )

    def _hops(
        self, batch: EventStream, nodes: Tensor, t: Tensor, count: int, batch_start: int | None
    ) -> list[Hop]:
        if self.embedding.hops == 0 or self.index is None:
            return []
        if self.per_node:
            cutoffs = self.index.cutoffs(batch[:1], "batch", batch_start).expand(len(nodes))
        else:
            own = self.index.cutoffs(batch, self.visibility, batch_start)
            cutoffs = torch.cat([own, own, own.repeat_interleave(count)])
        ks = [self.neighbours] * self.embedding.hops
        return _as_hops(self.index.hops(nodes, cutoffs, ks, self.strategy), t)

    def measure(self, nodes: Tensor) -> States:
        """Return the memory of distinct nodes, their pending mail taken in: ``s' = mem(s, msg(mail))``."""
        previous, previous_update = self.memory.memory[nodes], self.memory.last_update[nodes]
        mail = self.memory.mail_of(nodes)
        pending, newest = mail.pending, mail.newest_t
        # A single mail is timed by the gap it closes, the mails of a mailbox by their age.
        single = self.memory.slots == 1
        difference = mail.t - previous_update.unsqueeze(1) if single else newest.unsqueeze(1) - mail.t
        messages = self.message(mail, difference.masked_fill(~mail.mask, 0))
        updated = self.updater(previous, messages, mail.mask)
        return States(
            nodes=nodes,
            previous=previous,
            memory=torch.where(pending.unsqueeze(1), updated, previous),
            previous_update=previous_update,
            last_update=torch.where(pending, newest, previous_update),
            pending=pending,
            count=mail.count,
        )

    def embed(self, view: View, states: States) -> Tensor:
        """Return the embeddings `[r, dim]` of the view's roots."""
        memory = states.memory
        if self.node_projection is not None and self.node_x is not None:
            memory = memory + self.node_projection(self.node_x[states.nodes].to(memory.dtype))
        since_update = view.t - states.last_update[view.roots]
        embedding: Tensor = self.embedding(memory, view.roots, since_update, view.hops)
        return embedding

    def score(self, view: View, states: States) -> tuple[Tensor, Tensor]:
        """Return the logits of the events `[b]` and of their negatives `[b, count]`."""
        h = self.embed(view, states)
        src = rows(h, view.src)
        return self.link(src, rows(h, view.dst)), self.link(src.unsqueeze(1), rows(h, view.negatives))

    @torch.no_grad()
    def absorb(self, batch: EventStream, states: States | None = None) -> None:
        """Write the memory of the batch's nodes, then send the mail of its events.

        ``states`` may hold their memory (among others'); without it they are measured now.
        """
        self._check_next(batch, batch.offset)
        nodes = distinct(torch.cat([batch.src, batch.dst]))
        if states is None:
            states = self.measure(nodes)
        place = torch.searchsorted(states.nodes, nodes).clamp_(max=len(states.nodes) - 1)
        if not torch.equal(states.nodes[place], nodes):
            raise OptionError(
                "the states do not hold every node of the batch; leave them out to have them measured."
            )
        self.memory.commit(nodes, states.memory[place], states.last_update[place])
        self._send_mail(batch)
        self.memory.position.fill_(batch.offset + len(batch))

    def _send_mail(self, batch: EventStream) -> None:
        """Give every recipient of this batch one mail: of its last event, or the mean of all."""
        to, own, partner, at, order = self._letters(batch)
        event = batch.offset + at
        key, by = torch.sort(to * (4 * len(batch)) + order)
        once = torch.ones_like(key, dtype=torch.bool)
        once[1:] = key[1:] != key[:-1]  # a neighbour of several recent events gets an event's mail once
        by = by[once]
        recipients, counts = torch.unique_consecutive(to[by], return_counts=True)
        group = torch.repeat_interleave(torch.arange(len(counts), device=counts.device), counts)
        own_events = torch.zeros_like(counts).index_add_(0, group, (order[by] % 4 >= 2).long())
        last = by[counts.cumsum(0) - 1]
        needed = last if self.aggregate == "last" else by
        features = self.message.features.numeric(event[needed], self.memory.mail.dtype)
        memory = self.memory.memory
        content = torch.cat([memory[own[needed]], memory[partner[needed]], features], dim=1)
        if self.aggregate == "mean":
            total = content.new_zeros(len(counts), content.shape[1]).index_add_(0, group, content)
            content = total / counts.unsqueeze(1)
        self.memory.deliver(recipients, content, event[last], batch.t[at[last]], own_events)

    def _letters(self, batch: EventStream) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Return who gets mail, about which endpoint and its partner, of which event, and in which order.

        Later events come later; of one event a node's own mail comes after what it gets as a neighbour.
        """
        at = torch.arange(len(batch), device=batch.src.device)
        proper = (batch.src != batch.dst).nonzero().squeeze(1)  # a self-loop is one update
        own = torch.cat([batch.src, batch.dst[proper]])
        partner = torch.cat([batch.dst, batch.src[proper]])
        side = torch.cat([torch.zeros_like(at), torch.ones_like(proper)])
        at = torch.cat([at, proper])
        order = 4 * at + 2 + side
        if self.deliver_to == "endpoints" or self.index is None:
            return own, own, partner, at, order
        found = self.index.recent(own, self.index.cutoffs(batch, self.visibility)[at], self.neighbours)
        row = torch.arange(len(own), device=own.device).unsqueeze(1).expand_as(found.nodes)[found.mask]
        return (
            torch.cat([own, found.nodes[found.mask]]),
            torch.cat([own, own[row]]),
            torch.cat([partner, partner[row]]),
            torch.cat([at, at[row]]),
            torch.cat([order, order[row] - 2]),
        )


def _as_hops(found: Sequence[Neighbours], t: Tensor) -> list[Hop]:
    """Return neighbours with their age at the time of whoever asked for them."""
    hops = []
    for neighbours in found:
        age = (t.unsqueeze(1) - neighbours.t).masked_fill_(~neighbours.mask, 0)
        hops.append(Hop(neighbours.nodes, neighbours.events, age, neighbours.mask))
        t = neighbours.t.flatten()
    return hops


def time_units(events: EventStream) -> tuple[float, float]:
    """Return a millionth of the training span, and the mean gap between a node's training events.

    They make a model independent of the unit of time; both come from the first 70 % of the events.
    """
    train = events.split().train
    span = float(train.t[-1] - train.t[0])
    gaps = gaps_between_events_of_a_node(train).double()
    unit = float(gaps.mean()) if len(gaps) else 0.0
    return max(span / 1e6, 1e-9), unit or span or 1.0
