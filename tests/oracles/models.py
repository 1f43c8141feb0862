"""TGN, JODIE and APAN by loops over nodes in NumPy: slow, and written from the equations alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.oracles.sampling import Event, history

Array = np.ndarray[Any, Any]


@dataclass
class Letter:
    own: int
    partner: int
    own_memory: Array
    partner_memory: Array
    event: int
    t: float


@dataclass
class SlowModel:
    """A model's weights by name, its settings, and the state of every node."""

    kind: str  # tgn, jodie or apan
    weights: dict[str, Array]
    events: list[Event]
    x: Array  # [n, d], perhaps of width 0
    time_scale: float
    unit: float
    dim: int
    slots: int
    neighbours: int
    heads: int
    codes: Array  # [num_nodes, d], perhaps of width 0
    cell: str = "gru"  # of jodie and apan; otherwise the published one
    memory: dict[int, Array] = field(default_factory=dict)
    last_update: dict[int, float] = field(default_factory=dict)
    mailbox: dict[int, list[Letter]] = field(default_factory=dict)
    last_event: dict[int, float] = field(default_factory=dict)

    def linear(self, name: str, value: Array) -> Array:
        bias = self.weights.get(f"{name}.bias")
        result: Array = self.weights[f"{name}.weight"] @ value + (0 if bias is None else bias)
        return result

    def norm(self, name: str, value: Array) -> Array:
        scaled = (value - value.mean()) / np.sqrt(value.var() + 1e-5)
        result: Array = scaled * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]
        return result

    def phi(self, difference: float) -> Array:
        frequency, phase = self.weights["message.time.frequency"], self.weights["message.time.phase"]
        return np.cos(difference / self.time_scale * frequency + phase)

    def committed(self, node: int) -> Array:
        return self.memory.get(node, np.zeros(self.dim))

    def updated_at(self, node: int) -> float:
        return self.last_update.get(node, self.events[0][2])

    def updated_memory(self, node: int) -> tuple[Array, float]:
        """The memory with its mail taken in, and the time it is of."""
        mails = self.mailbox.get(node, [])
        old = self.committed(node)
        if not mails:
            return old, self.updated_at(node)
        newest = max(mail.t for mail in mails)
        differences = [
            mail.t - self.updated_at(node) if self.slots == 1 else newest - mail.t for mail in mails
        ]
        messages = [
            np.concatenate(
                [
                    mail.own_memory,
                    mail.partner_memory,
                    self.codes[mail.own],
                    self.codes[mail.partner],
                    self.x[mail.event],
                    self.phi(difference),
                ]
            )
            for mail, difference in zip(mails, differences, strict=True)
        ]
        return self.update(old, messages), newest

    def update(self, old: Array, messages: list[Array]) -> Array:
        if self.kind == "tgn" or (self.kind == "jodie" and self.cell == "gru"):
            return self.gru(old, messages[0])
        if self.kind == "jodie":
            of_message = self.weights["updater.cell.weight_ih"] @ messages[0]
            of_memory = self.weights["updater.cell.weight_hh"] @ old
            biases = self.weights["updater.cell.bias_ih"] + self.weights["updater.cell.bias_hh"]
            moved: Array = np.tanh(of_message + of_memory + biases)
            return moved
        query = self.linear("updater.query", old)
        read = self.attend(
            query,
            [self.linear("updater.key", message) for message in messages],
            [self.linear("updater.value", message) for message in messages],
        )
        if self.cell == "gru":
            return self.gru(old, read)
        return np.maximum(self.linear("updater.out", self.norm("updater.norm", read + old)), 0)

    def gru(self, old: Array, message: Array) -> Array:
        gates_in = self.weights["updater.cell.weight_ih"] @ message + self.weights["updater.cell.bias_ih"]
        gates_old = self.weights["updater.cell.weight_hh"] @ old + self.weights["updater.cell.bias_hh"]
        (r_in, z_in, n_in), (r_old, z_old, n_old) = np.split(gates_in, 3), np.split(gates_old, 3)
        reset, keep = 1 / (1 + np.exp(-(r_in + r_old))), 1 / (1 + np.exp(-(z_in + z_old)))
        new = np.tanh(n_in + reset * n_old)
        result: Array = (1 - keep) * new + keep * old
        return result

    def attend(self, query: Array, keys: list[Array], values: list[Array]) -> Array:
        parts = []
        for head in range(self.heads):
            size = len(query) // self.heads
            own = slice(head * size, (head + 1) * size)
            scores = np.array([query[own] @ key[own] / np.sqrt(size) for key in keys])
            weights = np.exp(scores - scores.max())
            weights = weights / weights.sum()
            parts.append(sum(w * value[own] for w, value in zip(weights, values, strict=True)))
        return np.concatenate(parts)

    def known(self, node: int) -> Array:
        """The memory, and who the node is."""
        memory = self.updated_memory(node)[0]
        return memory + self.linear("node_projection", self.codes[node]) if self.codes.size else memory

    def embed(self, node: int, t: float, before: int | None) -> Array:
        memory = self.known(node)
        if self.kind in ("jodie", "apan"):
            if self.cell != "gru":
                memory = self.norm("embedding.norm", memory)
            elapsed = np.log1p(max(t - self.last_event.get(node, self.events[0][2]), 0) / self.unit)
            projected: Array = memory * (1 + elapsed * self.weights["embedding.weight"])
            return projected
        found = history(self.events, node, t, before)[: self.neighbours]
        query = self.linear("embedding.layers.0.query", np.concatenate([memory, self.phi(0)]))
        read = np.zeros(self.dim)
        if found:
            inputs = [
                np.concatenate([self.known(other), self.x[event], self.phi(t - at)])
                for other, event, at in found
            ]
            read = self.attend(
                query,
                [self.linear("embedding.layers.0.key", value) for value in inputs],
                [self.linear("embedding.layers.0.value", value) for value in inputs],
            )
        out = np.maximum(self.linear("embedding.layers.0.out", np.concatenate([read, memory])), 0)
        return self.norm("embedding.layers.0.norm", out)

    def score(self, src: int, dst: int, t: float, before: int | None = None) -> float:
        hidden = self.linear("link.src", self.embed(src, t, before))
        hidden = hidden + self.linear("link.dst", self.embed(dst, t, before))
        return float(self.linear("link.out", np.maximum(hidden, 0))[0])

    def update_state(
        self, start: int, stop: int, visibility: str = "fresh", drawn: Sequence[Sequence[int]] = ()
    ) -> set[int]:
        """Take in the events of one batch: commit, then send the last mail, of own events first.

        ``drawn`` are nodes to which the source of each event sends too, just before the event, as if they had
        met. Returns who got mail.
        """
        nodes = {node for src, dst, _ in self.events[start:stop] for node in (src, dst)}
        nodes |= {node for row in drawn for node in row}
        measured = {node: self.updated_memory(node) for node in nodes}
        for node, (memory, t) in measured.items():
            self.memory[node], self.last_update[node] = memory, t
        sent: dict[int, list[tuple[tuple[int, int, int], Letter]]] = {}
        for event in range(start, stop):
            src, dst, t = self.events[event]
            for node in dict.fromkeys(drawn[event - start] if drawn else ()):
                memories = self.committed(node), self.committed(src)
                sent.setdefault(node, []).append(((1, event, -1), Letter(node, src, *memories, event, t)))
                self.last_event[node] = t
            ends = [(src, dst)] if src == dst else [(src, dst), (dst, src)]
            for side, (own, partner) in enumerate(ends):
                memories = self.committed(own), self.committed(partner)
                raw_message = Letter(own, partner, *memories, event, t)
                sent.setdefault(own, []).append(((1, event, side), raw_message))
                self.last_event[own] = t
                if self.kind == "apan":
                    before = start if visibility == "batch" else None
                    for other, *_ in history(self.events, own, t, before)[: self.neighbours]:
                        sent.setdefault(other, []).append(((0, event, side), raw_message))
        for node, raw_messages in sent.items():
            _, last = max(raw_messages, key=lambda entry: entry[0])
            self.mailbox[node] = [*self.mailbox.get(node, []), last][-self.slots :]
        return set(sent)
