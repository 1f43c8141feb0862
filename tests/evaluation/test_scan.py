"""Scores of models whose memory is scanned, and of others at staleness 0, are those of loops over events."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.evaluation import scorer as evaluation
from pres.evaluation.link import EVALUATION_SEED, link_scores
from pres.evaluation.scorer import ModelScorer
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.sampling import NegativeSampler
from tests.models.conftest import KINDS, make, random_events, stream_of
from tests.oracles.sampling import Event, whole_tie_edges
from tests.oracles.twin import scan_twin, slow_twin
from tests.training.runs import EVENTS

SCANNING = ("tgn", "jodie")
SIZES: dict[str, Any] = {"memory_dim": 16, "time_dim": 8, "cell": "scan"}


def made(kind: str = "jodie", **options: Any) -> MDGNN:
    return build_model(kind, EVENTS, SIZES | options, seed=0)


def drawn_by(sampler: NegativeSampler, stream: EventStream, start: int, b: int, count: int) -> Tensor:
    """The negatives of evaluation: those of batches of just ``b`` events."""
    edges = [*range(start, len(stream), b), len(stream)]
    parts = pairwise(edges)
    return torch.cat([sampler.sample(stream[a:z], count, EVALUATION_SEED).nodes for a, z in parts])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("embed", ["event", "node"])
@pytest.mark.parametrize("b", [1, 13, 50])
def test_nothing_stale_is_one_event_after_the_other_for_models_with_mail(
    kind: str, embed: str, b: int
) -> None:
    events = random_events(seed=b, n=100)
    stream = stream_of(events, nodes=40)
    sampler = NegativeSampler(stream, pool="nodes")
    fast, slow = make(kind, stream, embed=embed), make(kind, stream, embed=embed)
    start = stream.split().val.offset  # no tie is torn there
    for model in (fast, slow):
        for event in range(start):
            model.update_state(stream[event : event + 1])
    (found,) = link_scores(fast, stream[start:], [sampler], batch_size=b, negatives=2, staleness=0)
    negatives = drawn_by(sampler, stream, start, b, 2)
    tied = whole_tie_edges([t for _, _, t in events[start:]], 1)
    for first, stop in pairwise(tied):
        group = stream[start + first : start + stop]
        with torch.no_grad():
            subgraph = slow.sample(group, negatives[first:stop])
            positive, negative = slow.score(subgraph, slow.updated_memory(subgraph.nodes))
        torch.testing.assert_close(found.positive[first:stop], positive.float(), rtol=0, atol=1e-6)
        torch.testing.assert_close(found.negative[first:stop], negative.float(), rtol=0, atol=1e-6)
        for event in range(start + first, start + stop):
            slow.update_state(stream[event : event + 1])
    everyone = torch.arange(stream.num_nodes)
    torch.testing.assert_close(fast.updated_memory(everyone).memory, slow.updated_memory(everyone).memory)
    (again,) = link_scores(make(kind, stream), stream, [sampler], batch_size=b)
    assert again.fallback.shape == (100, 1)


def scanned_scores(
    kind: str, events: list[Event], embed: str, b: int, staleness: int | None
) -> tuple[list[list[float]], Tensor]:
    """What the slow way says of all events after the first 60, and what link_scores says."""
    stream = stream_of(events, nodes=40)
    sampler = NegativeSampler(stream, pool="nodes")
    model = make(kind, stream, cell="scan", embed=embed, node_encoding_dim=3)
    empty = torch.empty(len(events), 0)
    memory, slow = scan_twin(model, events, empty), slow_twin(kind, model, events, empty)
    start = sum(t < events[60][2] for _, _, t in events)
    model.update_state(stream[:start])
    memory.take_in(0, start)
    (found,) = link_scores(model, stream[start:], [sampler], batch_size=b, negatives=2, staleness=staleness)  # type: ignore[arg-type]
    negatives = drawn_by(sampler, stream, start, b, 2).tolist()
    times = [t for _, _, t in events]
    edges = [*range(0, len(events) - start, b), len(events) - start]
    if staleness == 0:
        edges = whole_tie_edges(times[start:], b)
    wanted = []
    with torch.no_grad():
        for first, stop in pairwise(edges):
            inside = memory.take_in(start + first, start + stop)
            for i in range(first, stop):
                src, dst, t = events[start + i]
                tied = sum(at < t for at in times)
                cut = tied if staleness == 0 else min(tied, start + first)
                before = {node: inside.at(node, cut) for node in range(stream.num_nodes)}
                slow.memory = {node: value.numpy() for node, (value, _) in before.items()}
                slow.last_event = {node: at for node, (_, at) in before.items()}
                asked = times[cut] if embed == "node" else t
                wanted.append([slow.score(src, to, asked) for to in (dst, *negatives[i])])
    return wanted, torch.cat([found.positive.unsqueeze(1), found.negative], dim=1)


@pytest.mark.parametrize("kind", SCANNING)
@pytest.mark.parametrize("embed", ["event", "node"])
@pytest.mark.parametrize("staleness", [0, None])
@pytest.mark.parametrize("b", [1, 13, 250])
def test_link_scores_of_a_scan_are_those_of_a_loop_over_events(
    kind: str, embed: str, staleness: int | None, b: int
) -> None:
    n = 90 if b == 1 else 330
    wanted, found = scanned_scores(kind, random_events(seed=b, n=n), embed, b, staleness)
    torch.testing.assert_close(found, torch.tensor(wanted), rtol=0, atol=1e-5)


def test_many_negatives_are_scored_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of(random_events(seed=3, n=60), nodes=40)
    sampler = NegativeSampler(stream, pool="nodes")
    whole, in_parts = (make("tgn", stream, cell="scan") for _ in range(2))
    (expected,) = link_scores(whole, stream, [sampler], batch_size=10, negatives=7)
    monkeypatch.setattr(evaluation, "PAIRS_AT_ONCE", 25)
    (found,) = link_scores(in_parts, stream, [sampler], batch_size=10, negatives=7)
    torch.testing.assert_close(found.positive, expected.positive)
    torch.testing.assert_close(found.negative, expected.negative)
    torch.testing.assert_close(in_parts.memory.memory, whole.memory.memory)


def test_a_part_that_does_not_follow_what_memory_knows_is_refused() -> None:
    stream = stream_of(random_events(seed=3, n=60), nodes=40)
    sampler = NegativeSampler(stream, pool="nodes")
    model = make("jodie", stream, cell="scan")
    model.update_state(stream[:20])
    with pytest.raises(OptionError, match="taken in 20 events"):
        link_scores(model, stream[30:], [sampler])
    with pytest.raises(OptionError, match="knows event 10 already"):
        link_scores(model, stream[10:], [sampler])
    with pytest.raises(OptionError, match="staleness=50"):
        link_scores(model, stream[20:], [sampler], staleness=50)  # type: ignore[arg-type]
    assert not model.training and int(model.memory.position) == 20


def test_evaluation_leaves_weights_and_mode_as_they_were() -> None:
    stream = stream_of(random_events(seed=2), nodes=40)
    model = make("tgn", stream, cell="scan").train()
    before = {name: value.clone() for name, value in model.named_parameters()}
    link_scores(model, stream, [NegativeSampler(stream, pool="nodes")], staleness=0)
    assert model.training
    assert all(torch.equal(value, before[name]) for name, value in model.named_parameters())
    assert all(value.grad is None for value in model.parameters())


def test_a_scorer_that_absorbs_what_it_did_not_score_moves_memory_alike() -> None:
    stream = stream_of(random_events(seed=3, n=300))
    one, two = (make("jodie", stream, cell="scan") for _ in range(2))
    scorer = ModelScorer(one)
    for start in (0, 100, 200):
        batch = stream[start : start + 100]
        if start != 100:
            scorer.score(batch, batch.dst.unsqueeze(1))
        scorer.update_state(batch)
        two.update_state(batch)
    torch.testing.assert_close(one.memory.memory, two.memory.memory)
    assert int(one.memory.position) == 300
