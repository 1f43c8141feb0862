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

import torch
from torch import Tensor

from pres.errors import OptionError
from pres.events import EventStream, StreamInfo
from pres.incidence import run_starts, sorted_keys

MEAN_BURST = 6  # events
MEAN_PAUSE = 100  # seconds between two events of a burst; the whole stream has one event a second
REPEAT = 0.2  # chance that an event repeats the item before it in its burst
DRIFT = 0.3  # chance that a taste moves by one topic between two bursts
ACTIVITY = 0.9  # exponents of the power laws of how often users act,
POPULARITY = 1.0  # and of how often the items of a topic are taken
# The bursts of a user never overlap, so nobody may have too many: this flattens the head of the first law.
ACTIVITY_SHIFT = 40
FEATURE_NOISE = 0.1


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
    num_users = max(10, num_events // 25) if num_users is None else num_users
    num_items = max(2 * num_topics, num_events // 100) if num_items is None else num_items
    _check(num_events, num_users, num_items, num_topics, features)
    generator = torch.Generator().manual_seed(seed)

    # Bursts: whose, how long, in which direction. Their numbers follow the order of their starts.
    lengths = _burst_lengths(num_events, generator)
    count = len(lengths)
    user = _power_law(torch.tensor(num_users), ACTIVITY, _uniform(count, generator), ACTIVITY_SHIFT)
    user = torch.randperm(num_users, generator=generator)[user]
    direction = torch.randint(0, 2, (count,), generator=generator) * 2 - 1

    # Events: each belongs to a burst, and moves on by one topic or repeats the item before it.
    burst = torch.repeat_interleave(torch.arange(count), lengths)
    first = torch.zeros(num_events, dtype=torch.bool)
    first[lengths.cumsum(0) - lengths] = True
    moves = (torch.rand(num_events, generator=generator) >= REPEAT) & ~first
    walked = _cumulative(moves, first)
    last = lengths.cumsum(0) - 1
    taste = _tastes(user, walked[last] * direction, num_users, num_topics, generator)
    topic = (taste[burst] + walked * direction[burst]) % num_topics
    item = _items(topic, moves | first, num_items, num_topics, generator)
    t = _times(user, burst, first, last, num_users, generator)
    label = _backward_leavers(user, direction, last, num_users, num_events) if labels else None

    order = sorted_keys(t * num_events + torch.arange(num_events)) % num_events
    return EventStream(
        src=user[burst][order],
        dst=num_users + item[order],
        t=t[order],
        x=_place_on_ring(topic[order], num_topics, features, generator) if features else None,
        label=None if label is None else label[order],
        num_nodes=num_users + num_items,
        num_src=num_users,
        info=StreamInfo(
            name="synthetic", time_unit="s", feature_names=tuple(f"f{i}" for i in range(features))
        ),
    )


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
    topic: Tensor, changes: Tensor, num_items: int, num_topics: int, generator: torch.Generator
) -> Tensor:
    """Return an item of each event's topic, popular ones more often; the last one where nothing changes."""
    size = torch.div(num_items - topic + num_topics - 1, num_topics, rounding_mode="floor")
    rank = _power_law(size, POPULARITY, _uniform(len(topic), generator))
    item = torch.randperm(num_items, generator=generator)[topic + rank * num_topics]
    return item[run_starts(changes)]


def _times(
    user: Tensor, burst: Tensor, first: Tensor, last: Tensor, num_users: int, generator: torch.Generator
) -> Tensor:
    """Return the second of each event; the bursts of one user never overlap."""
    num_events = len(burst)
    pause = torch.log1p(-torch.rand(num_events, generator=generator)) * -(MEAN_PAUSE - 1)
    since_start = _cumulative((1 + pause.long()).masked_fill_(first, 0), first)
    start = torch.sort(torch.randint(0, num_events, user.shape, generator=generator)).values
    # A burst starts when drawn, or MEAN_PAUSE after the end of the user's last one if that is later. With
    # `busy` the time spent before it, start - busy must never fall: a running maximum, user by user.
    order, begins = _by_user(user)
    duration = since_start[last][order] + MEAN_PAUSE
    busy = _cumulative(duration, begins) - duration
    apart = 2 * (num_events + int(duration.sum()))  # more than any start: keeps the users' maxima apart
    rank = begins.long().cumsum(0) * apart
    latest = torch.cummax(start[order] - busy + rank, dim=0).values - rank
    start[order] = latest + busy
    return start[burst] + since_start


def _backward_leavers(
    user: Tensor, direction: Tensor, last: Tensor, num_users: int, num_events: int
) -> Tensor:
    """Return labels: 1 at the last event of each user whose last burst went backwards."""
    final = torch.zeros(num_users, dtype=torch.int64)
    final.scatter_reduce_(0, user, torch.arange(len(user)), "amax")
    final = final[torch.zeros(num_users, dtype=torch.bool).index_fill_(0, user, True)]
    label = torch.zeros(num_events, dtype=torch.int64)
    label[last[final[direction[final] < 0]]] = 1
    return label


def _place_on_ring(topic: Tensor, num_topics: int, features: int, generator: torch.Generator) -> Tensor:
    """Return `[n, features]`: cosine and sine of the topic's angle, then of its multiples, with noise."""
    angle = torch.arange(num_topics) * (2 * math.pi / num_topics)
    multiples = angle.unsqueeze(1) * (torch.arange(features) // 2 + 1)
    places = torch.where(torch.arange(features) % 2 == 0, multiples.cos(), multiples.sin())
    noise = torch.randn(len(topic), features, generator=generator).mul_(FEATURE_NOISE)
    return noise.add_(places.index_select(0, topic))
