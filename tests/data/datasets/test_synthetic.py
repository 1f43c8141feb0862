import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from pres.data.stream import EventStream
from pres.data.synthetic import MEAN_BURST, REPEAT, synthetic_stream
from pres.errors import OptionError

TOPICS = 16


def topics_of(events: EventStream) -> Tensor:
    """The topic of each event, read back from its noisy place on the ring."""
    assert events.x is not None
    angle = torch.arange(TOPICS) * (2 * math.pi / TOPICS)
    places = torch.stack([angle.cos(), angle.sin(), (2 * angle).cos(), (2 * angle).sin()], dim=1)
    return torch.cdist(events.x, places).argmin(dim=1)


def bursts_of(events: EventStream, topics: Tensor) -> list[list[int]]:
    """Topics of each burst, in order: runs of a user's events that are at most one step of the ring apart."""
    by_user: dict[int, list[tuple[int, int]]] = {}
    for user, t, topic in zip(events.src.tolist(), events.t.tolist(), topics.tolist(), strict=True):
        by_user.setdefault(user, []).append((t, topic))
    found = []
    for history in by_user.values():
        burst = [history[0][1]]
        for (before, _), (t, topic) in itertools.pairwise(history):
            if t - before < 1000 and min((topic - burst[-1]) % TOPICS, (burst[-1] - topic) % TOPICS) <= 1:
                burst.append(topic)
            else:
                found.append(burst)
                burst = [topic]
        found.append(burst)
    return found


def next_steps(bursts: list[list[int]]) -> list[tuple[int, int]]:
    """Pairs (last step, next step) of the walks, repeats left out."""
    pairs = []
    for burst in bursts:
        steps = [(b - a + 1) % TOPICS - 1 for a, b in itertools.pairwise(burst) if a != b]
        pairs += list(itertools.pairwise(steps))
    return pairs


def test_the_order_inside_a_burst_tells_where_it_goes_next() -> None:
    events = synthetic_stream(20_000, seed=1)
    bursts = bursts_of(events, topics_of(events))
    pairs = next_steps(bursts)
    assert len(pairs) > 3_000
    onward = sum(last == following for last, following in pairs) / len(pairs)
    assert onward > 0.9  # some of these runs are two bursts that met

    reversed_bursts = [burst[::-1] for burst in bursts]
    # Either direction is equally common: the set of topics alone does not say which way it went.
    forward = sum(step == 1 for step, _ in pairs) / len(pairs)
    assert abs(forward - 0.5) < 0.03
    backward = sum(step == 1 for step, _ in next_steps(reversed_bursts)) / len(pairs)
    assert abs(backward - 0.5) < 0.03


def test_users_are_heavy_tailed_repeat_items_and_act_in_bursts() -> None:
    events = synthetic_stream(50_000)
    activity = torch.bincount(events.src, minlength=events.num_src or 0).sort(descending=True).values.double()
    assert float(activity[: len(activity) // 10].sum() / activity.sum()) > 0.4  # an even share is 0.1
    assert float(activity[0] / activity.mean()) > 8
    assert float(activity[0] / activity.sum()) < 0.007  # so that it fits into the time of the others
    assert float(events.t[-1]) < 1.15 * len(events)  # no long tail of one user alone
    summary = events.summary()
    assert summary.repeated_share > REPEAT * (1 - 1 / MEAN_BURST) * 0.9
    gaps = torch.diff(events.t[events.src == int(torch.bincount(events.src).argmax())]).double()
    assert float(gaps.std() / gaps.mean()) > 1.2  # burstier than a Poisson process
    assert summary.distinct_t < summary.events  # ties occur


def test_tastes_drift_between_bursts() -> None:
    events = synthetic_stream(50_000)
    order = torch.argsort(events.src, stable=True)
    src, t, topics = events.src[order], events.t[order], topics_of(events)[order]
    rested = (src[1:] == src[:-1]) & (t[1:] - t[:-1] > 1000)  # ten mean pauses: these are two bursts
    steps = (torch.diff(topics)[rested] + 1) % TOPICS - 1
    assert len(steps) > 2_000
    assert 0.27 < float((steps != 0).double().mean()) < 0.33  # three in ten, either way, by one topic
    assert set(steps.tolist()) == {-1, 0, 1}
    assert abs(float(steps.double().mean())) < 0.04


def test_some_items_of_a_topic_are_taken_more_than_others() -> None:
    events = synthetic_stream(50_000)
    topics = topics_of(events)
    for topic in range(TOPICS):
        taken = torch.bincount(events.dst[topics == topic]).sort(descending=True).values.double()
        items = int((taken > 20).sum())  # some events are read as of a neighbouring topic
        assert 25 < items < 35
        shares = taken[:items] / taken[:items].sum()
        assert float(shares[0]) > 4 / items
        assert float(shares[items // 2 :].sum()) < 0.3


@given(
    num_events=st.integers(2, 3_000),
    seed=st.integers(0, 2**31),
    features=st.integers(0, 5),
    labels=st.booleans(),
)
@settings(max_examples=30)
def test_any_size_gives_a_valid_stream_of_exactly_that_size(
    num_events: int, seed: int, features: int, labels: bool
) -> None:
    events = synthetic_stream(num_events, features=features, labels=labels, seed=seed)
    assert len(events) == num_events
    assert bool((events.t[1:] >= events.t[:-1]).all())
    assert events.num_src is not None and int(events.src.max()) < events.num_src <= int(events.dst.min())
    assert int(events.dst.max()) < events.num_nodes
    assert (events.x is None) == (features == 0)
    assert (events.label is None) == (not labels)
    for user in set(events.src.tolist()):  # a user does one thing at a time
        own = events.t[events.src == user]
        assert bool((own[1:] > own[:-1]).all())


def test_labels_sit_on_last_events_of_users_that_left_backwards() -> None:
    events = synthetic_stream(5_000, seed=3)
    assert events.label is not None
    positives = events.label.nonzero().squeeze(1)
    assert 0 < len(positives) < len(events) / 10
    last = {user: i for i, user in enumerate(events.src.tolist())}
    topics = topics_of(events)
    backward = 0
    for i in positives.tolist():
        user = int(events.src[i])
        assert last[user] == i
        own = topics[events.src == user]
        steps = [int(s) for s in torch.diff(own[-4:]) % TOPICS if s != 0]
        backward += bool(steps) and steps[-1] == TOPICS - 1
    assert backward / len(positives) > 0.6  # the others' last burst never moved


def test_the_same_seed_gives_the_same_stream() -> None:
    one, two, other = (synthetic_stream(2_000, seed=seed) for seed in (5, 5, 6))
    for name in ("src", "dst", "t", "x", "label"):
        assert torch.equal(getattr(one, name), getattr(two, name))
    assert not torch.equal(one.dst, other.dst)


@pytest.mark.parametrize(
    "arguments", [{"num_events": 1}, {"num_topics": 2}, {"num_items": 5}, {"num_users": 0}, {"features": -1}]
)
def test_impossible_sizes_are_refused(arguments: dict[str, int]) -> None:
    with pytest.raises(OptionError, match=next(iter(arguments))):
        synthetic_stream(**arguments)  # type: ignore[arg-type]
