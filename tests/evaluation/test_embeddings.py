"""Embeddings along a stream: what they are, what they rest on, and that the model stays as it was."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import DivergedError, OptionError
from pres.evaluation.embeddings import source_embeddings
from pres.models import MDGNN
from pres.training.checkpoint import state_of
from tests.models.conftest import KINDS, make, random_events, stream_of
from tests.oracles.twin import slow_twin

N, NODES = 60, 12
EVENTS = random_events(seed=3, n=N)
X = torch.randn(N, 2, generator=torch.Generator().manual_seed(1))
AT = 50  # an event of the last part: changing it and later ones leaves time units and mean features alone


def stream(**changed: Tensor) -> EventStream:
    src, dst, t = (torch.tensor(column) for column in zip(*EVENTS, strict=True))
    fields: dict[str, Any] = {"src": src, "dst": dst, "t": t.double(), "x": X, "num_nodes": NODES}
    return EventStream(**fields | changed)


def embeddings(kind: str, events: EventStream, batch_size: int = 1) -> Tensor:
    return source_embeddings(make(kind, events), events, batch_size=batch_size)


def close(one: Tensor, other: Tensor) -> bool:
    return torch.allclose(one, other, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b", [1, 7])
def test_embeddings_equal_those_of_a_loop_over_nodes(kind: str, b: int) -> None:
    events = stream()
    model = make(kind, events)
    train = X[: len(events.split().train)]
    spread = train.std(0, correction=0).double()
    slow = slow_twin(kind, model, EVENTS, (X.double() - train.mean(0).double()) / spread)
    found = source_embeddings(model, events, batch_size=b)
    for start in range(0, N, b):
        stop = min(start + b, N)
        for event in range(start, stop):  # all are read before any of the batch is absorbed
            src, _, t = EVENTS[event]
            assert torch.allclose(found[event], torch.from_numpy(slow.embed(src, t, None)), atol=1e-9)
        slow.update_state(start, stop)
    assert float(found.std(dim=0).min()) > 0.01  # they are not all alike


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("embed", ["event", "node"])
def test_embeddings_equal_a_replay_by_hand(kind: str, embed: str) -> None:
    events = stream()
    model, by_hand = make(kind, events, embed=embed), make(kind, events, embed=embed)
    found = source_embeddings(model, events, batch_size=1)
    for i in range(N):
        event = events[i : i + 1]
        subgraph = by_hand.sample(event, event.dst.unsqueeze(1))
        h = by_hand.embed(subgraph, by_hand.updated_memory(subgraph.nodes))
        assert close(found[i], h[subgraph.src[0]])
        by_hand.update_state(event)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("b", [1, 12])
def test_neither_the_event_itself_nor_later_ones_matter(kind: str, b: int) -> None:
    base = stream()
    before = embeddings(kind, base, b)
    x, src, dst = X.clone(), base.src.clone(), base.dst.clone()
    x[AT:] = 100.0
    dst[AT:] = (dst[AT:] + 5) % NODES
    src[AT + 1 :] = (src[AT + 1 :] + 3) % NODES
    after = embeddings(kind, stream(src=src, dst=dst, x=x), b)
    assert close(after[: AT + 1], before[: AT + 1])


@pytest.mark.parametrize("kind", KINDS)
def test_features_of_an_event_matter_once_it_is_past(kind: str) -> None:
    base = stream()
    before = embeddings(kind, base)
    x = X.clone()
    x[AT] = 100.0
    after = embeddings(kind, stream(x=x))
    assert close(after[: AT + 1], before[: AT + 1])
    again = [
        i for i in range(AT + 1, N) if base.t[i] > base.t[AT] and base.src[i] in (base.src[AT], base.dst[AT])
    ]
    assert again and all(float((after[i] - before[i]).abs().max()) > 1e-6 for i in again)


@pytest.mark.parametrize("kind", KINDS)
def test_labels_never_reach_the_encoder(kind: str) -> None:
    label = torch.arange(N) % 2
    one, other, none = (
        embeddings(kind, stream(**given), 7) for given in ({"label": label}, {"label": 1 - label}, {})
    )
    assert torch.equal(one, other) and torch.equal(one, none)


def found_state(model: MDGNN) -> tuple[dict[str, Tensor], list[bool], list[bool], Tensor]:
    modes = [module.training for module in model.modules()]
    return state_of(model), modes, [p.requires_grad for p in model.parameters()], torch.get_rng_state()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("interrupted", [False, True])
def test_the_model_is_left_bit_for_bit_as_it_was(kind: str, interrupted: bool) -> None:
    events = stream()
    model = make(kind, events).train()
    model.link.eval()
    model.link.requires_grad_(False)
    model.update_state(events[:20])
    state, *rest, random = found_state(model)

    def interrupt(done: int, to_do: int) -> None:
        if interrupted and done > 30:
            raise KeyboardInterrupt

    if interrupted:
        with pytest.raises(KeyboardInterrupt):
            source_embeddings(model, events, batch_size=7, on_progress=interrupt)
    else:
        given = source_embeddings(model, events, batch_size=7, on_progress=interrupt)
        assert not given.requires_grad
        assert torch.equal(given, embeddings(kind, events, 7))  # from the first event on, in evaluation mode
    state_after, *rest_after, random_after = found_state(model)
    assert rest == rest_after and torch.equal(random, random_after)
    assert state.keys() == state_after.keys()
    assert all(torch.equal(value, state_after[name]) for name, value in state.items())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_progress_counts_events() -> None:
    events, seen = stream(), list[tuple[int, int]]()
    model = make("jodie", events)
    source_embeddings(model, events, batch_size=25, on_progress=lambda *done: seen.append(done))
    assert seen == [(25, 60), (50, 60), (60, 60)]


def test_a_part_of_the_stream_and_embeddings_that_are_no_numbers_are_said() -> None:
    events = stream_of(EVENTS)
    model = make("jodie", events)
    with pytest.raises(OptionError, match="Give the whole stream"):
        source_embeddings(model, events.split().train)
    with pytest.raises(OptionError, match="batch size 0"):
        source_embeddings(model, events, batch_size=0)
    with torch.no_grad():
        model.updater.cell.bias_hh.fill_(float("nan"))  # type: ignore[union-attr, operator]
    with pytest.raises(DivergedError, match="smaller lr"):
        source_embeddings(model, events, batch_size=10)
