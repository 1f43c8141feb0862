"""APAN by a scan, one event after another in NumPy: slow, and written from the equations alone."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.oracles.sampling import Event, history

Array = np.ndarray[Any, Any]
Entry = tuple[int, int]  # event, node


@dataclass
class Nodes:
    """What is known of every node after some events."""

    memory: dict[int, Array] = field(default_factory=dict)
    last_event: dict[int, float] = field(default_factory=dict)
    mailbox: dict[int, list[tuple[int, Array]]] = field(default_factory=dict)  # event and mail, newest last
    received: dict[int, int] = field(default_factory=dict)

    def copy(self) -> "Nodes":
        mailbox = {node: list(mails) for node, mails in self.mailbox.items()}
        return Nodes(dict(self.memory), dict(self.last_event), mailbox, dict(self.received))


@dataclass
class SlowMailScan:
    """A model's weights by name, its settings, and the state of every node at event ``position``."""

    weights: dict[str, Array]
    events: list[Event]
    x: Array  # [n, d], perhaps of width 0
    codes: Array  # [num_nodes, d], perhaps of width 0
    time_scale: float
    dim: int
    slots: int
    neighbours: int
    heads: int
    passes: int
    rescanned: int
    direction: str = "both"
    nodes: Nodes = field(default_factory=Nodes)
    position: int = 0

    def linear(self, name: str, value: Array) -> Array:
        bias = self.weights.get(f"updater.{name}.bias")
        found: Array = self.weights[f"updater.{name}.weight"] @ value + (0 if bias is None else bias)
        return found

    def phi(self, difference: float) -> Array:
        found: Array = np.cos(difference / self.time_scale * self.weights["message.time.frequency"])
        return found

    def rounded(self, age: float) -> float:
        """The age to which the attention rounds one."""
        step = round(math.log1p(age / self.time_scale) * 4)
        return math.expm1(step / 4) * self.time_scale

    def mail(self, event: int, own: int, partner: int, own_memory: Array, partner_memory: Array) -> Array:
        codes = self.codes[own], self.codes[partner]
        return self.linear("mail", np.concatenate([own_memory, partner_memory, *codes, self.x[event]]))

    def read(self, memory: Array, mails: list[tuple[int, Array]], t: float) -> Array:
        size, query, parts = self.dim // self.heads, self.linear("query", memory), []
        keys = [
            mail + self.linear("age", self.phi(self.rounded(t - self.events[event][2])))
            for event, mail in mails
        ]
        for head in range(self.heads):
            own = slice(head * size, (head + 1) * size)
            scores = np.array([query[own] @ key[own] / math.sqrt(size) for key in keys])
            weights = np.exp(scores - scores.max())
            shares = (weights / weights.sum()).tolist()
            parts.append(sum(share * mail[own] for share, (_, mail) in zip(shares, mails, strict=True)))
        return np.concatenate(parts)

    def step(self, nodes: Nodes, memories: dict[int, Array], event: int) -> dict[int, Array]:
        """Send an event's mail and move its nodes; mails and queries hold ``memories``. Returns the mails."""
        src, dst, t = self.events[event]
        partners = {src: dst, dst: src}
        mails = {
            own: self.mail(event, own, other, memories[own], memories[other])
            for own, other in partners.items()
        }
        recipients: dict[int, Array] = {}
        for own in partners:
            for other, *_ in history(self.events, own, t, direction=self.direction)[: self.neighbours]:
                recipients[other] = mails[own]
        for to, mail in (recipients | mails).items():
            nodes.mailbox[to] = [*nodes.mailbox.get(to, []), (event, mail)][-self.slots :]
            nodes.received[to] = nodes.received.get(to, 0) + 1
        for node, mail in mails.items():
            read = self.read(memories[node], nodes.mailbox[node], t)
            since = self.phi(t - nodes.last_event.get(node, self.events[0][2]))
            message = np.concatenate([mail, read, since])
            update = 1 / (1 + np.exp(-self.linear("update", message)))
            old = nodes.memory.get(node, np.zeros(self.dim))
            nodes.memory[node] = (1 - update) * old + update * np.tanh(self.linear("new", message))
            nodes.last_event[node] = t
        return mails

    def scan(
        self, memory_of: Callable[[int, int], Array], start: int, stop: int
    ) -> tuple[Nodes, dict[Entry, Array], dict[Entry, Array], dict[Entry, Array]]:
        """The nodes after events, and of each event and node the memory before and after, and the mail."""
        nodes = self.nodes.copy()
        before: dict[Entry, Array] = {}
        after: dict[Entry, Array] = {}
        mails: dict[Entry, Array] = {}
        for event in range(start, stop):
            ends = self.events[event][:2]
            memories = {node: memory_of(event, node) for node in ends}
            before |= {(event, node): nodes.memory.get(node, np.zeros(self.dim)) for node in ends}
            sent = self.step(nodes, memories, event)
            after |= {(event, node): nodes.memory[node] for node in ends}
            mails |= {(event, node): mail for node, mail in sent.items()}
        return nodes, before, after, mails

    def window(self, stop: int) -> tuple[Nodes, dict[Entry, Array], dict[Entry, Array]]:
        """The nodes after the events up to ``stop``, and of each event and node its memory and its mail."""
        begin = self.nodes.memory

        def at_beginning(event: int, node: int) -> Array:
            return begin.get(node, np.zeros(self.dim))

        nodes, before, after, mails = self.scan(at_beginning, self.position, stop)
        if self.passes == 2:
            nodes, _, after, mails = self.scan(lambda *entry: before[entry], self.position, stop)
        return nodes, after, mails

    def update_state(self, stop: int) -> None:
        """Take in the events up to ``stop``: all but the last ones, which are scanned again."""
        t = self.events[stop - 1][2]
        tied = next(i for i, event in enumerate(self.events) if event[2] == t)
        place = max(0, min(stop - self.rescanned, tied))
        self.nodes, *_ = self.window(place)
        self.position = place
