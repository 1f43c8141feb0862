"""PRES to the letter of the paper, by loops over nodes and events in NumPy: whole batches of training.

Two readings, which contradict each other: Eqs. 6, 7, 8 and 10, and Algorithm 2. Both on lag-one training:
mail moves a node's memory when the node is next needed, and that is kept when the node next has an event.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.oracles.models import Array, SlowModel
from tests.oracles.sampling import history

Drawn = Sequence[Sequence[int]]  # the negatives of each event of a batch
STEP = 1e-5  # of central differences


@dataclass
class Outcome:
    """What a batch is told by: means over its events."""

    loss: float = 0.0
    incoherence: float = 0.0  # one minus the inner product of Eq. 10
    objective: float = 0.0


@dataclass
class SlowPublished(SlowModel):
    """A model under PRES: what is known of the transitions of node i as (i, 0) of events, (i, 1) of draws."""

    reading: str = "equations"
    beta: float = 0.1
    theta: float = 0.0  # γ = σ(θ)
    gap: float = 1.0  # the unit of t2 - t1
    negatives_send: bool = False
    n: dict[tuple[int, int], int] = field(default_factory=dict)
    xi: dict[tuple[int, int], Array] = field(default_factory=dict)
    psi: dict[tuple[int, int], Array] = field(default_factory=dict)
    received: dict[int, int] = field(default_factory=dict)
    unrecorded: set[int] = field(default_factory=set)  # nodes whose newest mail no tracker has seen

    def reset(self) -> None:
        """An epoch begins: memory, mail and trackers are empty; weights and γ stay."""
        known: list[dict[Any, Any] | set[int]] = [self.memory, self.last_update, self.mailbox]
        known += [self.last_event, self.n, self.xi, self.psi, self.received, self.unrecorded]
        for each in known:
            each.clear()

    @property
    def gamma(self) -> float:
        return float(1 / (1 + np.exp(-self.theta)))

    def mixture(self, node: int) -> list[tuple[float, Array, Array]]:
        """Weight by counts, μ = ξ / n and Σ = ψ / n - μ² of each component that was seen (Eq. 8)."""
        seen = [(self.n[node, j], self.xi[node, j], self.psi[node, j]) for j in (0, 1) if (node, j) in self.n]
        total = sum(n for n, _, _ in seen)
        return [(n / total, xi / n, psi / n - (xi / n) ** 2) for n, xi, psi in seen]

    def mean(self, node: int) -> Array:
        return sum((weight * mu for weight, mu, _ in self.mixture(node)), np.zeros(self.dim))

    def variance(self, node: int) -> Array:
        """Within components and between them."""
        mean = self.mean(node)
        parts = (weight * (sigma + (mu - mean) ** 2) for weight, mu, sigma in self.mixture(node))
        return sum(parts, np.zeros(self.dim))

    def has_mail(self, node: int) -> bool:
        return bool(self.mailbox.get(node))

    def measured(self, node: int) -> Array:
        return super().updated_memory(node)[0]

    def predicted(self, node: int) -> Array:
        """Eq. 6: from the last update to the newest mail."""
        elapsed = (super().updated_memory(node)[1] - self.updated_at(node)) / self.gap
        predicted: Array = self.committed(node) + elapsed * self.mean(node)
        return predicted

    def corrected(self, node: int) -> Array:
        """Eq. 7."""
        if not self.has_mail(node):
            return self.committed(node)
        corrected: Array = (1 - self.gamma) * self.predicted(node) + self.gamma * self.measured(node)
        return corrected

    def updated_memory(self, node: int) -> tuple[Array, float]:
        """What embeddings see and what is written back, and the time it is of."""
        t = super().updated_memory(node)[1]
        return (self.corrected(node) if self.reading == "equations" else self.measured(node)), t

    def transition(self, node: int) -> Array:
        """Eq. 8, or δ = s̄ - s' of Algorithm 2."""
        start = self.predicted(node) if self.reading == "equations" else self.measured(node)
        transition: Array = self.corrected(node) - start
        return transition

    def vertices(self, start: int, stop: int, drawn: Drawn) -> list[int]:
        """Whose memories are coherent or not: the batch's, or under Algorithm 2 all that the step updated."""
        asked = {
            (node, t)
            for (src, dst, t), row in zip(self.events[start:stop], drawn, strict=True)
            for node in (src, dst, *row)
        }
        nodes = {node for node, _ in asked}
        if self.reading == "equations":
            return sorted(nodes)
        if self.kind == "tgn":
            for node, t in asked:
                nodes |= {other for other, *_ in history(self.events, node, t)[: self.neighbours]}
        return sorted(node for node in nodes if self.has_mail(node))

    def incoherence(self, vertices: list[int]) -> float:
        if not vertices:
            return 0.0
        old = np.concatenate([self.committed(node) for node in vertices])
        new = np.concatenate([self.corrected(node) for node in vertices])
        sizes = np.linalg.norm(old), np.linalg.norm(new)
        if 0 in sizes:
            return 0.0
        return float(1 - (old / sizes[0]) @ (new / sizes[1]))

    def scores(self, start: int, stop: int, drawn: Drawn) -> list[list[float]]:
        """Of each event, then of its negatives."""
        return [
            [self.score(src, other, t) for other in (dst, *row)]
            for (src, dst, t), row in zip(self.events[start:stop], drawn, strict=True)
        ]

    def outcome(self, start: int, stop: int, drawn: Drawn) -> Outcome:
        """Eq. 10."""
        scores = self.scores(start, stop, drawn)
        of_events = [np.log1p(np.exp(-row[0])) for row in scores]
        of_negatives = [np.log1p(np.exp(score)) for row in scores for score in row[1:]]
        loss = float(np.mean(of_events) + np.mean(of_negatives))
        incoherence = self.incoherence(self.vertices(start, stop, drawn))
        return Outcome(loss, incoherence, loss + self.beta * incoherence)

    def slope(self, start: int, stop: int, drawn: Drawn) -> float:
        """How the objective changes with θ."""
        theta = self.theta
        self.theta = theta + STEP
        above = self.outcome(start, stop, drawn).objective
        self.theta = theta - STEP
        below = self.outcome(start, stop, drawn).objective
        self.theta = theta
        return (above - below) / (2 * STEP)

    def train(self, start: int, stop: int, drawn: Drawn, rate: float, step: int | None = None) -> Outcome:
        """Descend θ, then take the batch in: with the γ before its only step, or after several."""
        length, whole, theta = step or stop - start, Outcome(), self.theta
        for first in range(start, stop, length):
            last = min(first + length, stop)
            of_step = first, last, drawn[first - start : last - start]
            found, share = self.outcome(*of_step), (last - first) / (stop - start)
            for name, value in vars(found).items():
                setattr(whole, name, getattr(whole, name) + share * value)
            self.theta -= rate * self.slope(*of_step)
        after = self.theta
        if length >= stop - start:
            self.theta = theta
        self.take_in(start, stop, drawn if self.negatives_send else (), self.roles(start, stop, drawn))
        self.theta = after
        return whole

    def evaluate(self, start: int, stop: int, drawn: Drawn, live: bool) -> list[list[float]]:
        """Score a batch and take it in; only real events send mail, and only live trackers follow them."""
        scores = self.scores(start, stop, drawn)
        self.take_in(start, stop, (), self.roles(start, stop) if live else {})
        return scores

    def roles(self, start: int, stop: int, drawn: Drawn = ()) -> dict[int, int]:
        """The component of each node: 0 with an event, 1 if it is only drawn."""
        found = {node: 1 for row in drawn for node in row}
        for src, dst, _ in self.events[start:stop]:
            found[src] = found[dst] = 0
        return found

    def take_in(self, start: int, stop: int, senders: Drawn, roles: dict[int, int]) -> None:
        """Keep memories, send mail, and record each transition the first time that its node has a role."""
        known = {node: component for node, component in roles.items() if node in self.unrecorded}
        moved = {node: self.transition(node) for node in known}
        recipients = self.update_state(start, stop, drawn=senders)
        for node, component in known.items():
            key, delta = (node, component), moved[node]
            self.n[key] = self.n.get(key, 0) + 1
            self.xi[key] = self.xi.get(key, np.zeros(self.dim)) + delta
            self.psi[key] = self.psi.get(key, np.zeros(self.dim)) + delta**2
        self.unrecorded -= known.keys()
        self.unrecorded |= recipients
        for node in recipients:
            self.received[node] = self.received.get(node, 0) + 1
