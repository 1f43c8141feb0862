"""Scorers without weights, to hold a model against: EdgeBank and popularity."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pres.data.incidence import check_key_range, sorted_keys
from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.sampling.index import check_slice


class _Baseline:
    """How far along its stream a baseline is: it knows the first ``position`` events and no other."""

    def __init__(self, events: EventStream) -> None:
        if events.offset:
            raise OptionError("a baseline is made from the whole stream, not from a slice of it.")
        self.position = 0
        self._t, self._directed = events.t, events.directed

    def reset(self) -> None:
        """Forget everything, as before the first event."""
        self.position = 0

    def update_state(self, batch: EventStream) -> None:
        """Take in the events that follow those taken in already."""
        self._check_next(batch)
        self.position += len(batch)

    def _check_next(self, batch: EventStream) -> None:
        check_slice(batch, self._t, "the baseline")
        if batch.offset != self.position:
            raise OptionError(
                f"the baseline has taken in {self.position:,} events, but the batch starts at event "
                f"{batch.offset:,}. Give it all that lies between with update_state(), or start again with "
                "reset()."
            )


class EdgeBank(_Baseline):
    """Scores a pair 1 if it has occurred, 0 otherwise: EdgeBank of Poursafaei et al., 2022.

    It knows the batches before the one it scores, as a model does. With a ``window`` it remembers only what
    lies at most so long before the last event it knows. A pair counts in both directions unless the stream
    is directed.

    The pairs of the stream are sorted once, by pair and then by event, so that the last occurrence before any
    position is a binary search, and taking in a batch moves the position.

    Args:
        events: The whole stream.
        window: How long a pair is remembered, in the stream's unit of time; None: forever.
    """

    def __init__(self, events: EventStream, window: float | None = None) -> None:
        super().__init__(events)
        if window is not None and not (window >= 0 and math.isfinite(window)):
            raise OptionError(f"window={window}: how long a pair is remembered is a time, 0 or more.")
        self.window = window
        self._num_nodes, self._n = events.num_nodes, len(events)
        check_key_range(events.num_nodes, events.num_nodes)
        check_key_range(self._n, self._n)
        self._pairs, number = torch.unique(self._pair(events.src, events.dst), return_inverse=True)
        self._keys = sorted_keys(number * self._n + torch.arange(self._n, device=number.device))

    def score(self, batch: EventStream, negatives: Tensor) -> tuple[Tensor, Tensor]:
        """Return for the events `[b]` and for their negatives `[b, count]` whether the pair is remembered."""
        self._check_next(batch)
        source = batch.src.unsqueeze(1).expand_as(negatives)
        return self._remembered(batch.src, batch.dst), self._remembered(source, negatives)

    def _remembered(self, src: Tensor, dst: Tensor) -> Tensor:
        if self.position == 0:
            return torch.zeros(dst.shape, device=dst.device)
        wanted = self._pair(src, dst)
        number = torch.searchsorted(self._pairs, wanted).clamp_(max=len(self._pairs) - 1)
        place = torch.searchsorted(self._keys, number * self._n + self.position) - 1
        last = self._keys[place.clamp_(min=0)] - number * self._n  # negative if it is another pair's
        found: Tensor = (self._pairs[number] == wanted) & (last >= 0) & (last < self.position)
        if self.window is not None:
            age = self._t[self.position - 1] - self._t[last.clamp(0, self._n - 1)]
            # As a tensor, since a Python float would make integer times 32-bit floats.
            kind = torch.float64 if isinstance(self.window, float) else torch.int64
            found &= age <= torch.tensor(self.window, dtype=kind, device=age.device)
        return found.float()

    def _pair(self, src: Tensor, dst: Tensor) -> Tensor:
        if not self._directed:
            src, dst = torch.minimum(src, dst), torch.maximum(src, dst)
        return src * self._num_nodes + dst


class Popularity(_Baseline):
    """Scores a pair by how often its destination has occurred of late, whoever the source is.

    The score is the base-2 logarithm of a decayed count: an event counts 1 when it happens, and half as much
    after every ``half_life`` further events of the stream. The logarithm keeps the order and never runs out
    of small numbers. A destination that has not occurred has one score below all others. In a stream that
    is not directed, an event is an occurrence of both its endpoints (of one, if it is a self-loop).

    Args:
        events: The whole stream.
        half_life: After how many events of the stream an occurrence counts half. The default
            was chosen on validation: on wikipedia, uci, enron and mooc it is far above a count without decay.
    """

    def __init__(self, events: EventStream, half_life: float = 1_000) -> None:
        super().__init__(events)
        if not (half_life > 0 and math.isfinite(half_life)):
            raise OptionError(f"half_life={half_life}: it is a positive number of events.")
        self.half_life = half_life
        self._never = -len(events) / half_life - 1  # an event before the first would count for more
        self._level = torch.full(
            (events.num_nodes,), -math.inf, dtype=torch.float64, device=events.src.device
        )  # log2 of the count as of event 0, which only grows

    def reset(self) -> None:
        """Forget everything, as before the first event."""
        super().reset()
        self._level.fill_(-math.inf)

    def score(self, batch: EventStream, negatives: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logarithmic counts of the destinations `[b]` and of the negatives `[b, count]`."""
        self._check_next(batch)
        return self._popularity(batch.dst), self._popularity(negatives)

    def _popularity(self, nodes: Tensor) -> Tensor:
        as_of_now = self._level[nodes] - self.position / self.half_life
        return as_of_now.clamp_(min=self._never)

    def update_state(self, batch: EventStream) -> None:
        """Count the events that follow those taken in already."""
        start = self.position
        super().update_state(batch)
        at = torch.arange(start, self.position, dtype=torch.float64, device=batch.dst.device)
        nodes = batch.dst
        if not self._directed:
            proper = batch.src != batch.dst
            nodes, at = torch.cat([nodes, batch.src[proper]]), torch.cat([at, at[proper]])
        nodes, group = torch.unique(nodes, return_inverse=True)
        # Relative to each node's last event, so that a long stretch does not vanish in rounding.
        last = at.new_zeros(len(nodes)).scatter_reduce_(0, group, at, "amax")
        counts = at.new_zeros(len(nodes)).index_add_(
            0, group, torch.exp2((at - last[group]) / self.half_life)
        )
        self._level[nodes] = torch.logaddexp2(self._level[nodes], last / self.half_life + counts.log2())
