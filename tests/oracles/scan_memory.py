"""Memory that a linear cell moves, event after event over dictionaries: from the equations alone."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from tests.oracles.sampling import Event


@dataclass
class OnePass:
    """What one pass over some events found."""

    events: Sequence[Event]  # of the whole stream
    first: int  # of these events, counted from the stream's beginning
    begin: dict[int, Tensor]  # the memory before them
    begun: dict[int, float]  # the time of the last event before them
    start: float
    zero: Tensor
    after: dict[tuple[int, int], Tensor]  # the memory of a node after an event of its own: (event, node)
    own: dict[int, list[int]]  # the events of each node

    def at(self, node: int, place: int) -> tuple[Tensor, float]:
        """The memory of a node after all events before ``place``, and the time of its last one."""
        for event in reversed(self.own.get(node, [])):
            if event < place:
                return self.after[event, node], self.events[event][2]
        return self.begin.get(node, self.zero), self.begun.get(node, self.start)


@dataclass
class SlowScan:
    """The weights of a cell, its settings, and the memory of every node before the events to pass again.

    ``update`` and ``new`` read own memory, own code, partner's memory, partner's code, features, and time.
    """

    events: Sequence[Event]
    x: Tensor  # [n, f] what is known of each event
    codes: Tensor  # [nodes, c]
    update: tuple[Tensor, Tensor]  # weight and bias
    new: tuple[Tensor, Tensor]
    frequency: Tensor
    phase: Tensor
    scale: float
    passes: int
    again: int = 200  # events that are passed again with the next
    memory: dict[int, Tensor] = field(default_factory=dict)
    last_event: dict[int, float] = field(default_factory=dict)

    @property
    def zero(self) -> Tensor:
        return torch.zeros(len(self.update[1]), dtype=torch.float64)

    def held(self, position: int) -> int:
        """How many events memory holds when the first ``position`` are in."""
        if position == 0:
            return 0
        last = self.events[position - 1][2]
        tied = min(event for event in range(position) if self.events[event][2] == last)
        return max(0, min(position - self.again, tied))

    def gates(self, event: int, own: int, partner: int, of_partner: Tensor, gap: float) -> Tensor:
        """How much is updated and what is new, [2, d]."""
        message = torch.cat(
            [
                self.memory.get(own, self.zero),
                self.codes[own],
                of_partner,
                self.codes[partner],
                self.x[event],
                torch.cos(gap / self.scale * self.frequency + self.phase),
            ]
        )
        updated = 1 / (1 + torch.exp(-(self.update[0] @ message + self.update[1])))
        return torch.stack([updated, torch.tanh(self.new[0] @ message + self.new[1])])

    def once(self, first: int, stop: int, earlier: OnePass | None) -> OnePass:
        """One pass; partners' memory is that before all these events, or just before each in ``earlier``."""
        start = self.events[0][2]
        memory, t_of = dict(self.memory), dict(self.last_event)
        begin = dict(memory), dict(t_of)
        found = OnePass(self.events, first, *begin, start, self.zero, {}, {})
        for event in range(first, stop):
            src, dst, t = self.events[event]
            moved = {}
            for own, partner in {src: dst, dst: src}.items():
                of_partner = self.memory.get(partner, self.zero)
                if earlier is not None:
                    of_partner = earlier.at(partner, event)[0].detach()
                updated, new = self.gates(event, own, partner, of_partner, t - t_of.get(own, start))
                moved[own] = (1 - updated) * memory.get(own, self.zero) + updated * new
            for own, value in moved.items():  # both ends at once
                memory[own], t_of[own] = value, t
                found.after[event, own] = value
                found.own.setdefault(own, []).append(event)
        return found

    def scan(self, start: int, stop: int) -> OnePass:
        """All passes over the events of a batch, and those before it that are passed again."""
        found = self.once(self.held(start), stop, None)
        return found if self.passes == 1 else self.once(self.held(start), stop, found)

    def take_in(self, start: int, stop: int) -> OnePass:
        """Scan a batch, and let memory hold what it is to hold after it."""
        found, place = self.scan(start, stop), self.held(stop)
        for node in {node for event, node in found.after if event < place}:
            memory, self.last_event[node] = found.at(node, place)
            self.memory[node] = memory.detach()
        return found
