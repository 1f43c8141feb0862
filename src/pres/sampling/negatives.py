"""Negative destinations: uniform over what is allowed, exactly, without rejection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pres.data.incidence import check_key_range, distinct, first_of_equal, occurring, sorted_keys
from pres.data.stream import EventStream
from pres.errors import NoNegativeError, OptionError, check_choice
from pres.sampling.batches import TemporalBatches
from pres.sampling.index import check_slice
from pres.sampling.rng import below, uniform

NegativeStrategy = Literal["random", "historical", "inductive"]
DRAWN_AT_ONCE = 8_192


@dataclass(frozen=True, eq=False)
class Negatives:
    """Negative destinations of the events of a batch."""

    nodes: Tensor  # [b, count] int64
    fallback: Tensor  # [b, count] bool: drawn from the pool, because the source's history had none left


class NegativeSampler:
    """Draws, for each event of a batch, destinations that its source does not meet in that batch (or window).

    ``"random"`` draws from the pool. ``"historical"`` draws from the distinct destinations the source met
    before the batch (and before the event's time), ``"inductive"`` from those of them it met first
    after training; where none is left they fall back on the pool, and say so.

    Draws are with replacement, and a function of seed, event and column: the same for any order of
    batches and after any restart. Only where a draw's first choice occurs in the batch does it depend
    on the batch too. Pairs count in both directions unless the stream is directed.

    Args:
        events: The whole stream.
        strategy: One of the three above.
        pool: Candidate nodes of ``"random"``: ``"destinations"`` (every node that is a destination anywhere
            in the stream), ``"train"`` (only in the first ``train_end`` events), ``"nodes"`` (all), or
            a tensor of nodes.
        train_end: Number of training events; needed by ``"inductive"`` and by the pool ``"train"``.
    """

    def __init__(
        self,
        events: EventStream,
        strategy: NegativeStrategy = "random",
        *,
        pool: Literal["destinations", "train", "nodes"] | Tensor = "destinations",
        train_end: int | None = None,
    ) -> None:
        check_choice("strategy", strategy, ("random", "historical", "inductive"))
        if events.offset:
            raise OptionError("a NegativeSampler is made from the whole stream, not from a slice of it.")
        if train_end is None and (strategy == "inductive" or (isinstance(pool, str) and pool == "train")):
            raise OptionError("say with train_end= how many events are training events.")
        if train_end is not None and not 0 < train_end <= len(events):
            raise OptionError(f"train_end={train_end:,} is not between 1 and {len(events):,} events.")
        self.strategy = strategy
        self.pool = _pool(events, pool, train_end)
        self._t = events.t
        self._directed = events.directed
        self._num_nodes = events.num_nodes
        check_key_range(events.num_nodes, max(len(self.pool), events.num_nodes))
        self._history = None if strategy == "random" else _History(events)
        self._train_end = train_end if strategy == "inductive" and train_end is not None else 0
        self._drawn: _Drawn | None = None

    def sample(
        self,
        batch: EventStream,
        count: int = 1,
        seed: int = 0,
        num_batches: int = 1,
        window: int | None = None,
    ) -> Negatives:
        """Return ``count`` negatives for each event of ``batch`` (a slice of the stream).

        Args:
            batch: The events.
            count: Negatives of each.
            seed: Of the draws.
            num_batches: The slice is so many batches of equal length, and the result that of each, in turn.
            window: Instead of the whole batch, a negative avoids whom its source meets among so many events:
                the first ones of the batch, the next, …. Where a batch is large, whom a source does not meet
                in all of it says much of whom it will meet: that would be learned, and help nobody.
        """
        if count < 1:
            raise OptionError(f"count={count}: ask for at least one negative.")
        check_slice(batch, self._t, "the sampler")
        if num_batches < 1 or len(batch) % num_batches:
            raise OptionError(f"{len(batch):,} events are not {num_batches:,} batches of equal length.")
        sources, partners = batch.src, batch.dst
        if not self._directed:
            sources, partners = torch.cat([sources, partners]), torch.cat([partners, sources])
        b = len(batch) // num_batches
        if window is not None and window < 1:
            raise OptionError(f"window={window}: at least one event.")
        window = b if window is None else min(window, b)
        windows = num_batches * -(-b // max(window, 1))
        fits = windows * self._num_nodes * len(self.pool) <= torch.iinfo(torch.int64).max
        if windows > 1 and (self._history is not None or not fits):
            parts = (part for turn in TemporalBatches(batch, b) for part in TemporalBatches(turn, window))
            each = [self.sample(part, count, seed) for part in parts]
            return Negatives(*(torch.cat([getattr(n, f) for n in each]) for f in ("nodes", "fallback")))
        u = self._uniform(batch, count, seed)
        if self._history is None:
            which = None
            if windows > 1:
                at = torch.arange(len(batch), device=sources.device)
                which = at // b * (windows // num_batches) + at % b // window
            nodes = self._from_pool(batch, sources, partners, u, window=which)
            return Negatives(nodes, torch.zeros_like(nodes, dtype=torch.bool))
        low, high = self._history.slots(batch, self._train_end)
        forbidden = self._history.slots_of_pairs(sources, partners)
        slots, left = _uniform_outside(low.unsqueeze(1), high.unsqueeze(1), forbidden, u)
        nodes = self._history.destination[slots.clamp(max=len(self._history.destination) - 1)]
        fallback = (left <= 0).expand_as(nodes)
        if bool(fallback.any()):
            lost = fallback[:, 0]
            nodes[lost] = self._from_pool(batch, sources, partners, u, lost)
        return Negatives(nodes, fallback)

    def _uniform(self, batch: EventStream, count: int, seed: int) -> Tensor:
        """Return two numbers `[b, count, 2]` for each negative: for a first choice, and for a second one.

        Where one batch follows another they are drawn for many events at once, and kept for the next batches.
        """
        begin, end, purpose = batch.offset, batch.offset + len(batch), (count, seed, batch.src.device)
        drawn = self._drawn if self._drawn is not None and self._drawn.purpose == purpose else None
        if drawn is None or not drawn.begin <= begin <= end <= drawn.end:
            follows = drawn is not None and begin == drawn.end
            ahead = begin + max(len(batch), DRAWN_AT_ONCE // count) if follows else end
            event = torch.arange(begin, min(ahead, len(self._t)), device=batch.src.device)
            column = torch.arange(2 * count, device=event.device)
            u = uniform(seed, event.unsqueeze(1), column).view(len(event), count, 2)
            self._drawn = drawn = _Drawn(purpose, begin, u)
        return drawn.numbers[begin - drawn.begin : end - drawn.begin]

    def check(self, batches: TemporalBatches, window: int | None = None) -> None:
        """Raise if some source of these batches would be left without a negative."""
        largest = int(torch.diff(batches.edges).max()) if len(batches) else 0
        if len(self.pool) <= 2 * min(largest, window or largest):  # otherwise none can hold them all
            for batch in batches:
                self.sample(batch, window=window)

    def _from_pool(
        self,
        batch: EventStream,
        sources: Tensor,
        partners: Tensor,
        u: Tensor,
        rows: Tensor | None = None,
        window: Tensor | None = None,
    ) -> Tensor:
        size, source = len(self.pool), batch.src
        if window is not None:  # a source has another number in each
            number = window * self._num_nodes
            source = source + number
            sources = sources + number.repeat(len(sources) // len(batch))
        place = torch.searchsorted(self.pool, partners).clamp_(max=size - 1)
        inside = self.pool[place] == partners
        forbidden = distinct(sources[inside] * size + place[inside])
        source = source if rows is None else source[rows]
        low = (source * size).unsqueeze(1)
        slots, left = _uniform_outside(low, low + size, forbidden, u if rows is None else u[rows])
        if bool((left <= 0).any()):
            row = int((left <= 0).nonzero()[0, 0])
            name = batch.ids.decode(source[row] % self._num_nodes)[0]
            raise NoNegativeError(
                f"source {name!r} meets all {size:,} destinations of the pool within one batch or window of "
                f"{_longest(len(batch), window):,} events, so no negative is left. Use smaller ones "
                "(negative_window in training, eval_batch_size in evaluation)."
            )
        return self.pool[slots - low]


@dataclass(frozen=True, eq=False)
class _Drawn:
    """Random numbers of successive events."""

    purpose: tuple[int, int, torch.device]  # how many negatives, by which seed, where
    begin: int
    numbers: Tensor  # [events, count, 2]

    @property
    def end(self) -> int:
        return self.begin + len(self.numbers)


class _History:
    """The distinct destinations of every source, in the order in which it first met them."""

    def __init__(self, events: EventStream) -> None:
        n = len(events)
        check_key_range(events.num_nodes, max(n, events.num_nodes))
        self._n, self._num_nodes = n, events.num_nodes
        self._first_of_equal = first_of_equal(events.t)
        pairs, order = torch.sort(events.src * events.num_nodes + events.dst, stable=True)
        new = torch.ones_like(pairs, dtype=torch.bool)
        new[1:] = pairs[1:] != pairs[:-1]
        first_events = order[new]  # a stable sort keeps the earliest event of a pair in front
        self._keys = sorted_keys(events.src[first_events] * n + first_events)
        at = self._keys % max(n, 1)
        self.destination = events.dst[at]
        own_pairs, slots = torch.sort(events.src[at] * events.num_nodes + self.destination)
        self._pairs, self._slot_of_pair = own_pairs, slots

    def slots(self, batch: EventStream, since: int) -> tuple[Tensor, Tensor]:
        """Return ranges of slots `[b]`: what each source first met since an event, before the batch."""
        # What a source first meets inside the batch is forbidden anyway, so the event's time is bound enough.
        until = self._first_of_equal[batch.offset : batch.offset + len(batch)]
        base = batch.src * self._n
        low = torch.searchsorted(self._keys, base + since)
        high = torch.searchsorted(self._keys, base + until)
        return low, torch.maximum(low, high)

    def slots_of_pairs(self, sources: Tensor, partners: Tensor) -> Tensor:
        """Return the sorted distinct slots of those pairs that occur in the stream."""
        wanted = sources * self._num_nodes + partners
        place = torch.searchsorted(self._pairs, wanted).clamp_(max=len(self._pairs) - 1)
        return distinct(self._slot_of_pair[place[self._pairs[place] == wanted]])


def _longest(events: int, window: Tensor | None) -> int:
    """Return the length of the longest window, if there are several."""
    return events if window is None else int(torch.bincount(window).max())


def _pool(events: EventStream, pool: str | Tensor, train_end: int | None) -> Tensor:
    if isinstance(pool, Tensor):
        if pool.is_floating_point() or pool.dtype == torch.bool:
            raise OptionError(f"the pool of negatives must hold integer nodes, not {pool.dtype}.")
        nodes = distinct(pool.to(events.dst.device, torch.int64))
    else:
        check_choice("pool", pool, ("destinations", "train", "nodes"))
        if pool == "nodes":
            nodes = torch.arange(events.num_nodes, device=events.dst.device)
        else:
            destinations = events.dst[:train_end] if pool == "train" else events.dst
            nodes = occurring(events.num_nodes, destinations).nonzero().squeeze(1)
    if len(nodes) == 0 or int(nodes[0]) < 0 or int(nodes[-1]) >= events.num_nodes:
        raise OptionError(f"the pool of negatives must hold nodes below {events.num_nodes:,}.")
    return nodes


def _uniform_outside(low: Tensor, high: Tensor, forbidden: Tensor, u: Tensor) -> tuple[Tensor, Tensor]:
    """Return uniform integers `[b, count]` in [low, high) outside ``forbidden``, and how many there were.

    ``u`` `[b, count, 2]` makes a first choice among all, and a second one among the allowed where the
    first is forbidden; together they are uniform over the allowed. ``forbidden`` is sorted and distinct: the
    r-th allowed integer is ``low + r`` plus the number of forbidden ones in between, and ``forbidden[j] - j``
    never decreases, so that number is one binary search.
    """
    first = low + below(high - low, u[..., 0])
    before = torch.searchsorted(forbidden, low)
    left = (high - low) - (torch.searchsorted(forbidden, high) - before)
    allowed_below = forbidden - torch.arange(len(forbidden), device=forbidden.device)
    position = low - before + below(left, u[..., 1])
    second = position + torch.searchsorted(allowed_below, position, right=True)
    if not len(forbidden):
        return first, left
    at = torch.searchsorted(forbidden, first).clamp_(max=len(forbidden) - 1)
    return torch.where(forbidden[at] == first, second, first), left
