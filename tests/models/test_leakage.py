"""What a score may depend on, for all three models."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pres.errors import OptionError
from pres.models import MDGNN
from pres.sampling import TemporalBatches
from tests.models.conftest import KINDS, make, random_events, stream_of
from tests.oracles.sampling import Event

B = 12


def scores(kind: str, events: list[Event], **options: Any) -> list[Tensor]:
    """Scores of every batch and its negatives, after absorbing all batches before it."""
    stream = stream_of(events)
    model: MDGNN = make(kind, stream, node_encoding_dim=3, **options)
    found = []
    with torch.no_grad():
        for batch in TemporalBatches(stream, B):
            subgraph = model.sample(batch, torch.full((len(batch), 1), 3))
            states = model.updated_memory(subgraph.nodes)
            positive, negative = model.score(subgraph, states)
            found.append(torch.stack([positive, negative[:, 0]], dim=1))
            model.update_state(batch, states)
    return found


def same(one: Tensor, other: Tensor) -> bool:
    """Equal but for the last bits, which depend on how many other nodes a product has."""
    return torch.allclose(one, other, rtol=0, atol=1e-12)


def changed(events: list[Event], positions: range, t: float | None = None) -> list[Event]:
    """Other nodes at these positions (and, if given, only at or after a time)."""
    result = list(events)
    for i in positions:
        src, dst, at = events[i]
        if t is None or at >= t:
            result[i] = ((src + 4) % 9, (dst + 5) % 9, at)
    return result


def visibility_of(kind: str, visibility: str) -> dict[str, str]:
    return {} if kind == "jodie" else {"visibility": visibility}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("embed", ["event", "node"])
def test_under_batch_visibility_other_events_of_the_batch_do_not_matter(kind: str, embed: str) -> None:
    events = random_events(seed=5)
    options = visibility_of(kind, "batch") | {"embed": embed}
    before = scores(kind, events, **options)
    for batch in (1, 3):
        for own in (0, 5, B - 1):
            others = [i for i in range(batch * B, (batch + 1) * B) if i != batch * B + own]
            other = list(events)
            for i in others:
                other[i] = changed(events, range(i, i + 1))[i]
            assert same(scores(kind, other, **options)[batch][own], before[batch][own])


@pytest.mark.parametrize("kind", KINDS)
def test_under_fresh_visibility_events_at_or_after_its_time_do_not_matter(kind: str) -> None:
    events = random_events(seed=6)
    before = scores(kind, events)
    for batch in (1, 3):
        for own in (0, 5, B - 1):
            at = batch * B + own
            later = changed(events, range(len(events)), t=events[at][2])
            later[at] = events[at]
            # ties in an earlier batch are part of the memory by then, so only this batch on is changed
            later[: batch * B] = events[: batch * B]
            assert same(scores(kind, later)[batch][own], before[batch][own])


def test_under_fresh_visibility_tgn_does_see_earlier_events_of_the_batch() -> None:
    events = random_events(seed=6)
    before = scores("tgn", events)[3]
    start = 3 * B
    after = scores("tgn", changed(events, range(start, start + 6)))[3]
    later = [i for i in range(6, B) if events[start + i][2] > events[start + 5][2]]
    assert later and any(not torch.equal(after[i], before[i]) for i in later)


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_batch_does_matter(kind: str) -> None:
    events = random_events(seed=7)
    before = scores(kind, events)[3]
    after = scores(kind, changed(events, range(2 * B, 3 * B)))[3]
    assert not torch.equal(after, before)


@pytest.mark.parametrize("kind", KINDS)
def test_a_memory_does_not_depend_on_the_role_its_node_is_asked_in(kind: str) -> None:
    stream = stream_of(random_events(seed=8))
    model = make(kind, stream)
    batches = list(TemporalBatches(stream, B))
    for batch in batches[:2]:
        model.update_state(batch)
    alone = model.updated_memory(torch.tensor([5]))
    for negatives in (torch.full((B, 1), 5), batches[2].src.unsqueeze(1)):
        subgraph = model.sample(batches[2], negatives)
        states = model.updated_memory(subgraph.nodes)
        place = (states.nodes == 5).nonzero()
        if len(place):
            assert torch.allclose(states.memory[place[0, 0]], alone.memory[0], atol=1e-12)
            assert states.last_update[place[0, 0]] == alone.last_update[0]


@pytest.mark.parametrize("embed", ["event", "node"])
def test_a_part_of_a_batch_sees_what_the_whole_batch_sees(embed: str) -> None:
    stream = stream_of(random_events(seed=8))
    model = make("tgn", stream, visibility="batch", embed=embed)
    part = stream[30:36]  # of a temporal batch that began at 24
    subgraph = model.sample(part, part.dst.unsqueeze(1), batch_start=24)
    seen = subgraph.hops[0].event
    assert int(seen.max()) < 24
    alone = model.sample(part, part.dst.unsqueeze(1))
    assert 24 <= int(alone.hops[0].event.max()) < 30


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_refuses_events_that_its_memory_knows(kind: str) -> None:
    stream = stream_of(random_events(seed=9))
    model = make(kind, stream)
    model.update_state(stream[:20])
    for again in (stream[:20], stream[10:25]):
        with pytest.raises(OptionError, match="already"):
            model.sample(again, again.dst.unsqueeze(1))
        with pytest.raises(OptionError, match="already"):
            model.update_state(again)
    kept = model.memory.snapshot()
    model.update_state(stream[20:40])
    model.memory.restore(kept)
    assert len(model.sample(stream[20:40], stream.dst[20:40].unsqueeze(1)).src) == 20
    model.memory.reset()
    assert len(model.sample(stream[:20], stream.dst[:20].unsqueeze(1)).src) == 20


@pytest.mark.parametrize("kind", KINDS)
def test_states_that_lack_a_node_and_events_of_another_stream_are_refused(kind: str) -> None:
    stream = stream_of(random_events(seed=9))
    other = stream_of([(src, dst, t + 1000) for src, dst, t in random_events(seed=9)])
    model = make(kind, stream)
    with pytest.raises(OptionError, match="do not hold every node"):
        model.update_state(stream[:20], model.updated_memory(stream.src[:1]))
    with pytest.raises(OptionError, match="not cut from the stream"):
        model.sample(other[:20], other.dst[:20].unsqueeze(1))
