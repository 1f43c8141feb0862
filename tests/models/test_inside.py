"""Predictions from the memory just before each event, inside a batch of any size."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pres.models import MDGNN
from pres.models.sequential import sequential_memory
from pres.sampling import TemporalBatches
from tests.models.conftest import KINDS, make, random_events, stream_of


def scores_inside(model: MDGNN, batch: Any, negatives: torch.Tensor) -> torch.Tensor:
    inside = sequential_memory(model, batch)
    subgraph = inside.sample(batch, negatives)
    return torch.cat([part.flatten() for part in model.score(subgraph, inside.states_of(subgraph))])


@pytest.mark.parametrize("b", [1, 13, 70])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_one_event_at_a_time(kind: str, b: int) -> None:
    stream = stream_of(random_events(seed=3, n=150))
    fast, slow = make(kind, stream), make(kind, stream)
    compared = 0
    for batch in TemporalBatches(stream, b):
        negatives = (batch.dst.unsqueeze(1) + torch.tensor([1, 5])) % stream.num_nodes
        found = scores_inside(fast, batch, negatives)
        expected = []
        for e, single in enumerate(TemporalBatches(batch, 1)):
            subgraph = slow.sample(single, negatives[e : e + 1])
            expected.append(slow.score(subgraph, slow.updated_memory(subgraph.nodes)))
            slow.update_state(single)
        joined = [torch.cat([pair[side].flatten() for pair in expected]) for side in (0, 1)]
        assert torch.allclose(found, torch.cat(joined), atol=1e-10)
        sequential_memory(fast, batch).commit()
        compared += len(found)
    assert compared == 3 * 150


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_a_batch_sees_what_the_whole_does(kind: str) -> None:
    stream = stream_of(random_events(seed=4, n=150))
    model = make(kind, stream)
    model.update_state(stream[:40])
    batch = stream[40:120]
    negatives = (batch.dst.unsqueeze(1) + 1) % stream.num_nodes
    inside = sequential_memory(model, batch)
    whole = inside.sample(batch, negatives)
    expected = model.score(whole, inside.states_of(whole))[0]
    for start, stop in ((0, 25), (25, 80)):
        part = inside.sample(batch[start:stop], negatives[start:stop], 40)
        assert torch.allclose(model.score(part, inside.states_of(part))[0], expected[start:stop])


def test_each_node_once_is_as_just_before_its_event() -> None:
    """Of a batch of 60 the last 35; so do batches of one event."""
    stream = stream_of(random_events(seed=6, n=150))
    fast, slow = make("tgn", stream, embed="node"), make("tgn", stream, embed="node")
    for model in (fast, slow):
        sequential_memory(model, stream[:40]).commit()
    batch = stream[40:100]
    inside = sequential_memory(fast, batch)
    negatives = (batch.dst.unsqueeze(1) + 1) % stream.num_nodes
    subgraph = inside.sample(batch[25:], negatives[25:], 40)
    found = fast.score(subgraph, inside.states_of(subgraph))
    for e, single in enumerate(TemporalBatches(batch, 1)):
        own = slow.sample(single, negatives[e : e + 1])
        expected = slow.score(own, slow.updated_memory(own.nodes))
        slow.update_state(single)
        if e >= 25:
            for one, two in zip(found, expected, strict=True):
                assert torch.allclose(one[e - 25], two[0], atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_the_last_update(kind: str) -> None:
    """As they do in batches of one event."""
    stream = stream_of(random_events(seed=7, n=150))
    fast, slow = make(kind, stream), make(kind, stream)
    for model in (fast, slow):
        sequential_memory(model, stream[:40]).commit()
    batch = stream[40:100]
    negatives = (batch.dst.unsqueeze(1) + 1) % stream.num_nodes
    found = torch.autograd.grad(scores_inside(fast, batch, negatives).sum(), list(fast.updater.parameters()))
    total = [torch.zeros_like(gradient) for gradient in found]
    for e, single in enumerate(TemporalBatches(batch, 1)):
        subgraph = slow.sample(single, negatives[e : e + 1])
        positive, negative = slow.score(subgraph, slow.updated_memory(subgraph.nodes))
        own = torch.autograd.grad(positive.sum() + negative.sum(), list(slow.updater.parameters()))
        total = [one + other for one, other in zip(total, own, strict=True)]
        slow.update_state(single)
    assert all(float(gradient.abs().sum()) > 0 for gradient in total)
    assert all(torch.allclose(*pair, atol=1e-9) for pair in zip(found, total, strict=True))


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_at_or_after_an_event_matters_to_it(kind: str) -> None:
    """Other events from place 30 of the batch on: scores before stay the same."""
    events = random_events(seed=5, n=150)
    changed = [*events[:70], *((11 - src, 11 - dst, t) for src, dst, t in events[70:])]
    negatives = torch.arange(60).unsqueeze(1) % 12
    found = []
    for stream in (stream_of(events), stream_of(changed)):
        model = make(kind, stream)
        model.update_state(stream[:40])
        found.append(scores_inside(model, stream[40:100], negatives)[:30])
    assert torch.allclose(found[0], found[1], atol=1e-12)
