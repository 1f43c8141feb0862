"""The embedded stream: users whose tastes drift over a ring of topics, in bursts whose order matters.

Items belong to topics, and the topics form a ring. A user acts in *bursts*, which walk along the ring
one topic at a time, in a direction drawn for that burst. Where a burst ends the user's taste stays, and
drifts a little until the next one. So the next item depends on the last topic *and* on the direction,
which only the order of events inside the burst tells: the topics {4, 5, 6} are followed by 7 if they
came as 4, 5, 6 and by 3 if they came as 6, 5, 4. A model that folds a burst into one update sees the
set; a model that takes its events one by one sees the walk.

About a hundred events of other users lie between two events of a burst. A temporal batch of 200 events
therefore holds one or two of them, a batch of 3,200 the whole burst.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from pres.data.incidence import run_starts, sorted_keys
from pres.data.info import StreamInfo
from pres.data.stream import EventStream
from pres.errors import OptionError

MEAN_BURST = 6  # events
MEAN_PAUSE = 100  # seconds between two events of a burst; the whole stream has one event a second
REPEAT = 0.2  # chance that an event repeats the item before it in its burst
DRIFT = 0.3  # chance that a taste moves by one topic between two bursts
ACTIVITY = 0.9  # exponents of the power laws of how often users act,
POPULARITY = 1.0  # and of how often the items of a topic are taken
# The bursts of a user never overlap, so nobody may have too many: this flattens the head of the first law.
ACTIVITY_SHIFT = 40
FEATURE_NOISE = 0.1
_MOST = 10**10  # of anything


def synthetic_stream(
    num_events: int = 50_000,
    *,
    num_users: int | None = None,
    num_items: int | None = None,
    num_topics: int = 16,
    features: int = 4,
    labels: bool = True,
    seed: int = 0,
) -> EventStream:
    """Return a bipartite stream of bursts along a ring of topics; times are whole seconds.

    Args:
        num_events: Events to make.
        num_users: Users; by default one per 25 events, at least 10.
        num_items: Items; by default one per 100 events, at least 2 per topic.
        num_topics: Topics on the ring.
        features: Dimensions of the edge features, the place of the topic on the ring with noise; 0 for none.
        labels: Whether to label events: 1 at a user's last event if its last burst went backwards.
        seed: The same seed gives the same stream.
    """
    plan = SyntheticPlan(num_events, num_users, num_items, num_topics, features, seed)
    (part,) = plan.parts()
    order = sorted_keys(part.t * num_events + torch.arange(num_events)) % num_events
    (noise,) = plan.noise()
    return EventStream(
        src=part.src[order],
        dst=part.dst[order],
        t=part.t[order],
        x=noise.add_(plan.places()[part.topic[order]]) if features else None,
        label=part.label[order] if labels else None,
        num_nodes=plan.num_users + plan.num_items,
        num_src=plan.num_users,
        info=plan.info,
    )


class SyntheticPart(NamedTuple):
    """The events of some bursts, burst by burst."""

    src: Tensor
    dst: Tensor
    t: Tensor
    label: Tensor
    topic: Tensor


class SyntheticPlan:
    """All bursts of a stream, and where in the sequence of random numbers the draws for its events begin.

    So the events can be made some at a time: the numbers are the same, however many at once.

    Args:
        num_events: Events to make.
        num_users: Users, or None for as many as usual.
        num_items: Items, or None.
        num_topics: Topics on the ring.
        features: Dimensions of the edge features.
        seed: The same seed gives the same stream.
        at_once: Events in memory at a time; None for all.
    """

    def __init__(
        self,
        num_events: int,
        num_users: int | None,
        num_items: int | None,
        num_topics: int,
        features: int,
        seed: int,
        at_once: int | None = None,
    ) -> None:
        self.num_users = max(10, num_events // 25) if num_users is None else num_users
        self.num_items = max(2 * num_topics, num_events // 100) if num_items is None else num_items
        _check(num_events, self.num_users, self.num_items, num_topics, features)
        self.num_events, self.num_topics, self.features = num_events, num_topics, features
        self.at_once = num_events if at_once is None else at_once
        generator = torch.Generator().manual_seed(seed)

        # Bursts: whose, how long, in which direction. Their numbers follow the order of their starts.
        self._lengths = _burst_lengths(num_events, generator)
        count = len(self._lengths)
        user = _power_law(torch.tensor(self.num_users), ACTIVITY, _uniform(count, generator), ACTIVITY_SHIFT)
        self._user = torch.randperm(self.num_users, generator=generator)[user]
        self._direction = torch.randint(0, 2, (count,), generator=generator) * 2 - 1

        # Events: each moves on by one topic or repeats the item before it; first only what bursts depend on.
        self._draws_of_moves = _copy(generator)
        walked = torch.cat([_walk(burst, generator)[1][burst.last] for burst in self._pieces()])
        self._taste = _tastes(self._user, walked * self._direction, self.num_users, num_topics, generator)
        self._draws_of_items = _copy(generator)
        for burst in self._pieces():
            _uniform(len(burst.of), generator)
        self._item_names = torch.randperm(self.num_items, generator=generator)
        self._draws_of_pauses = _copy(generator)
        lasting = torch.cat([_pauses(burst, generator)[burst.last] for burst in self._pieces()])
        self._start = _starts(self._user, lasting, num_events, generator)
        self._draws_of_noise = generator
        self._left_backwards = _backward_leavers(self._user, self._direction, self.num_users)

    def _pieces(self) -> Iterator[_Piece]:
        """Yield the bursts, as many at a time as there may be events in memory, but at least one."""
        ends = self._lengths.cumsum(0)
        first, done = 0, 0
        while first < len(ends):
            last = max(first + 1, int(torch.searchsorted(ends, done + self.at_once, right=True)))
            yield _Piece.of_bursts(first, self._lengths[first:last])
            first, done = last, int(ends[last - 1])

    def parts(self) -> Iterator[SyntheticPart]:
        """Yield all events, burst by burst, some at a time; times are whole seconds, and not in order."""
        draws = [_copy(each) for each in (self._draws_of_moves, self._draws_of_items, self._draws_of_pauses)]
        for piece in self._pieces():
            burst = piece.start + piece.of
            moves, walked = _walk(piece, draws[0])
            topic = (self._taste[burst] + walked * self._direction[burst]) % self.num_topics
            item = _items(topic, moves | piece.first, self._item_names, self.num_topics, draws[1])
            label = torch.zeros_like(topic)
            label[piece.last] = self._left_backwards[piece.start : piece.start + len(piece.last)].long()
            t = self._start[burst] + _pauses(piece, draws[2])
            yield SyntheticPart(self._user[burst], self.num_users + item, t, label, topic)

    def noise(self) -> Iterator[Tensor]:
        """Yield the noise `[n, features]` of the features of events in time order, some at a time."""
        draws, done = _copy(self._draws_of_noise), 0
        rows = max(16, self.at_once // 16 * 16)  # normal numbers are drawn 16 at a time
        while done < self.num_events:
            left = self.num_events - done
            count = left if left < rows + 16 else rows
            yield torch.randn(count, self.features, generator=draws).mul_(FEATURE_NOISE)
            done += count

    def places(self) -> Tensor:
        """Return `[num_topics, features]`: cosine and sine of each topic's angle, then of its multiples."""
        angle = torch.arange(self.num_topics) * (2 * math.pi / self.num_topics)
        feature = torch.arange(self.features)
        multiples = angle.unsqueeze(1) * (feature // 2 + 1)
        return torch.where(feature % 2 == 0, multiples.cos(), multiples.sin())

    @property
    def info(self) -> StreamInfo:
        """What the stream and its features are called."""
        names = tuple(f"f{i}" for i in range(self.features))
        return StreamInfo(name="synthetic", time_unit="s", feature_names=names)


class _Piece(NamedTuple):
    """The events of consecutive bursts."""

    start: int  # the number of the first burst
    of: Tensor  # [n] which of the bursts each event is of, counted from 0
    first: Tensor  # [n] bool: the first event of its burst
    last: Tensor  # [bursts] the place of the last event of each

    @classmethod
    def of_bursts(cls, start: int, lengths: Tensor) -> _Piece:
        last = lengths.cumsum(0) - 1
        of = torch.repeat_interleave(torch.arange(len(lengths)), lengths)
        first = torch.zeros(len(of), dtype=torch.bool)
        first[last - lengths + 1] = True
        return cls(start, of, first, last)


def _copy(generator: torch.Generator) -> torch.Generator:
    return torch.Generator().set_state(generator.get_state())


def _walk(piece: _Piece, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Return whether each event moves on, and how many of its burst have up to it."""
    moves = (torch.rand(len(piece.of), generator=generator) >= REPEAT) & ~piece.first
    return moves, _cumulative(moves, piece.first)


def _pauses(piece: _Piece, generator: torch.Generator) -> Tensor:
    """Return the seconds since the start of each event's burst."""
    pause = torch.log1p(-torch.rand(len(piece.of), generator=generator)) * -(MEAN_PAUSE - 1)
    return _cumulative((1 + pause.long()).masked_fill_(piece.first, 0), piece.first)


def _check(num_events: int, num_users: int, num_items: int, num_topics: int, features: int) -> None:
    for name, value, least in (
        ("num_events", num_events, 2),
        ("num_users", num_users, 1),
        ("num_topics", num_topics, 3),
        ("num_items", num_items, num_topics),
        ("features", features, 0),
    ):
        if value < least:
            raise OptionError(f"{name}={value}: a synthetic stream needs at least {least}.")
        if value > _MOST:
            raise OptionError(f"{name}={value}: a synthetic stream has at most {_MOST:,}.")


def _uniform(count: int, generator: torch.Generator) -> Tensor:
    return torch.rand(count, generator=generator, dtype=torch.float64)


def _burst_lengths(num_events: int, generator: torch.Generator) -> Tensor:
    """Return geometric lengths that add up to ``num_events``."""
    enough = math.ceil(1.5 * num_events / MEAN_BURST) + 50
    lengths = torch.log1p(-_uniform(enough, generator)) / math.log1p(-1 / MEAN_BURST)
    lengths = lengths.ceil().clamp(min=1).long()
    last = int(torch.searchsorted(lengths.cumsum(0), num_events))
    lengths = lengths[: last + 1]
    lengths[last] -= lengths.sum() - num_events
    return lengths


def _power_law(size: Tensor, exponent: float, u: Tensor, shift: int = 0) -> Tensor:
    """Return ranks below ``size``, rank k with a chance that falls like ``(k + 1 + shift) ** -exponent``."""
    low, high = 1 + shift, size.double() + 1 + shift
    rest = 1 - exponent
    if rest:
        value = (low**rest + u * (high**rest - low**rest)) ** (1 / rest)
    else:
        value = low * (high / low) ** u
    return torch.minimum((value - low).long(), size - 1)


def _cumulative(values: Tensor, first: Tensor) -> Tensor:
    """Return running sums of integer ``values`` that start anew wherever ``first`` is True."""
    total = values.long().cumsum(0)
    start = run_starts(first)
    return total - (total - values.long())[start]


def _by_user(user: Tensor) -> tuple[Tensor, Tensor]:
    """Return bursts sorted by user, each user's in order of start, and where each user begins."""
    order = torch.argsort(user, stable=True)
    first = torch.ones_like(user, dtype=torch.bool)
    first[1:] = user[order][1:] != user[order][:-1]
    return order, first


def _tastes(
    user: Tensor, distance: Tensor, num_users: int, num_topics: int, generator: torch.Generator
) -> Tensor:
    """Return the topic at which each burst starts: where the user's last one ended, and a little drift."""
    wander = torch.randint(0, 2, user.shape, generator=generator) * 2 - 1
    moved = distance + wander * (_uniform(len(user), generator) < DRIFT)
    order, first = _by_user(user)
    before = _cumulative(moved[order], first) - moved[order]
    taste = torch.randint(0, num_topics, (num_users,), generator=generator)[user]
    taste[order] += before
    return taste


def _items(
    topic: Tensor, changes: Tensor, names: Tensor, num_topics: int, generator: torch.Generator
) -> Tensor:
    """Return an item of each event's topic, popular ones more often; the last one where nothing changes."""
    size = torch.div(len(names) - topic + num_topics - 1, num_topics, rounding_mode="floor")
    rank = _power_law(size, POPULARITY, _uniform(len(topic), generator))
    return names[topic + rank * num_topics][run_starts(changes)]


def _starts(user: Tensor, lasting: Tensor, num_events: int, generator: torch.Generator) -> Tensor:
    """Return the second at which each burst starts; the bursts of one user never overlap."""
    start = torch.sort(torch.randint(0, num_events, user.shape, generator=generator)).values
    # A burst starts when drawn, or MEAN_PAUSE after the end of the user's last one if that is later. With
    # `busy` the time spent before it, start - busy must never fall: a running maximum, user by user.
    order, begins = _by_user(user)
    duration = lasting[order] + MEAN_PAUSE
    busy = _cumulative(duration, begins) - duration
    apart = 2 * (num_events + int(duration.sum()))  # more than any start: keeps the users' maxima apart
    rank = begins.long().cumsum(0) * apart
    latest = torch.cummax(start[order] - busy + rank, dim=0).values - rank
    start[order] = latest + busy
    return start


def _backward_leavers(user: Tensor, direction: Tensor, num_users: int) -> Tensor:
    """Return whether each burst is its user's last, and went backwards."""
    final = torch.zeros(num_users, dtype=torch.int64)
    final.scatter_reduce_(0, user, torch.arange(len(user)), "amax")
    final = final[torch.zeros(num_users, dtype=torch.bool).index_fill_(0, user, True)]
    return torch.zeros_like(user, dtype=torch.bool).index_fill_(0, final[direction[final] < 0], True)
