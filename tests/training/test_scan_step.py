"""A step of training on memory that is scanned: whom its gradients reach, and what it costs."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, softplus

import pres
from benchmarks.counting import counted
from pres.models import MDGNN, scanned
from pres.models.registry import build_model
from pres.models.sample import SubgraphInside
from pres.models.scanned import RESCANNED
from pres.models.states import States
from pres.nn import ScanUpdater
from pres.smoothing import PRES
from pres.training import scan_step
from pres.training.scan_step import PreparedScan, prepare_scan, train_on_scan
from tests.models.conftest import make, random_events, stream_of
from tests.oracles.scan_memory import OnePass
from tests.oracles.twin import scan_twin

KINDS = ("tgn", "jodie")


def gradients(model: MDGNN) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def still(model: MDGNN) -> torch.optim.Optimizer:
    """An optimiser that leaves the weights and their gradients where they are."""
    return torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)


def prepared_for(model: MDGNN, batch: Any, staleness: int, seed: int = 0) -> PreparedScan:
    drawn = torch.randint(0, 12, (len(batch), 2), generator=torch.Generator().manual_seed(seed))
    return prepare_scan(model, batch, drawn, staleness, seed)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("staleness", [0, 50, RESCANNED])
def test_at_as_many_events_as_are_scanned_again_all_of_the_cell_learns(
    kind: str, passes: int, staleness: int
) -> None:
    events = random_events(seed=staleness + passes, n=3 * RESCANNED)
    x = torch.randn(len(events), 2, generator=torch.Generator().manual_seed(passes))
    stream = stream_of(events, x)
    model = make(kind, stream, cell="scan", passes=passes, node_encoding_dim=3).train()
    optimiser = still(model)
    for start in (0, RESCANNED, 2 * RESCANNED):
        prepared = prepared_for(model, stream[start : start + RESCANNED], staleness)
        train_on_scan(model, prepared, optimiser)
        if start == RESCANNED:
            found = gradients(model)
    cell = {name for name in found if name.startswith("updater.")}
    assert cell == {f"updater.{part}.{what}" for part in ("update", "new") for what in ("bias", "weight")}
    assert found.keys() == {name for name, p in model.named_parameters() if p.requires_grad}
    for name, grad in found.items():
        assert bool(torch.any(grad != 0)), name
    # Before the window of the second batch nothing has happened: own memory is read from the third on.
    assert isinstance(model.updater, ScanUpdater)
    own, code, partner, partner_code, _ = model.updater.sizes
    sizes = [own, code, partner, partner_code, 2, int(model.message.time.dim)]
    for name in ("updater.update.weight", "updater.new.weight"):
        first, later = (torch.split(of[name], sizes, dim=1) for of in (found, gradients(model)))
        assert all(bool(torch.any(columns != 0)) for columns in later), name
        for part in (1, 3, 4, 5):  # codes, features, time
            assert bool(torch.any(first[part] != 0)), (name, part)
        assert bool(torch.any(first[2] != 0)) == (passes == 2)


def states_by_hand(prepared: PreparedScan, subgraph: SubgraphInside, found: OnePass) -> States:
    """What the slow way says that a part sees; gradients reach the cell's weights through it."""
    first = found.first
    assert subgraph.version is not None
    memories, times = [], []
    for node, entry in zip(subgraph.nodes.tolist(), subgraph.version.tolist(), strict=True):
        # An entry is one event of the node; what is seen is the memory after it.
        place = first + int(prepared.window.chains.event[entry]) + 1 if entry >= 0 else first
        memory, t = found.at(node, place)
        memories.append(memory)
        times.append(t)
    memory, last = torch.stack(memories), torch.tensor(times, dtype=torch.float64)
    pending = subgraph.version >= 0
    return States(subgraph.nodes, memory, memory, memory, memory, memory, last, last, pending, last)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize("staleness", [0, 5, 30])
@pytest.mark.parametrize("coherence", [None, "node", "batch"])
def test_the_gradients_of_a_step_are_those_through_a_loop_over_events(
    kind: str, passes: int, staleness: int, coherence: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanned, "RESCANNED", 12)
    monkeypatch.setattr(scan_step, "LEAST", 7)
    events = random_events(seed=passes + staleness, n=90)
    x = torch.randn(len(events), 2, generator=torch.Generator().manual_seed(1))
    stream = stream_of(events, x)
    model = make(kind, stream, cell="scan", passes=passes, node_encoding_dim=3).train()
    train = x[: len(stream.split().train)]
    known = (x.double() - train.mean(0).double()) / train.std(0, correction=0).double()
    slow = scan_twin(model, events, known, again=12)
    smoothing = None if coherence is None else PRES(filter=False, coherence=coherence, beta=0.4)
    model.smoothing = None if smoothing is None else smoothing.build(model.memory)
    optimiser = still(model)
    for start in (0, 30, 60):
        prepared = prepared_for(model, stream[start : start + 30], staleness, seed=start)
        means = train_on_scan(model, prepared, optimiser)
        fast = gradients(model)
        found = slow.take_in(start, start + 30)
        lengths = [len(subgraph.to) for subgraph in prepared.subgraphs]
        assert lengths == ([7, 7, 7, 7, 2] if kind == "tgn" else [15, 15])
        parts = [
            model.logits(subgraph, states_by_hand(prepared, subgraph, found))
            for subgraph in prepared.subgraphs
        ]
        logits = torch.cat(parts)
        loss = softplus(-logits[:, 0]).mean() + softplus(logits[:, 1:]).mean()
        objective = loss
        nodes = sorted(found.own)
        begin = torch.stack([found.begin.get(node, slow.zero) for node in nodes])
        end = torch.stack([found.at(node, start + 30)[0] for node in nodes])
        if coherence == "node":
            whose = begin.any(1)
            cosine = cosine_similarity(begin[whose], end[whose]).mean() if bool(whose.any()) else 1.0
            apart = torch.as_tensor(1 - cosine)
        else:
            there = bool(begin.any())
            apart = 1 - cosine_similarity(begin.flatten(), end.flatten(), dim=0) if there else torch.zeros(())
        if coherence is not None:
            objective = loss + 0.4 * apart
            assert means["coherence"] == pytest.approx(1 - apart.item(), abs=1e-9)
        optimiser.zero_grad()
        torch.autograd.backward(objective)
        assert means["loss"] == pytest.approx(loss.item(), abs=1e-9)
        moved = torch.linalg.vector_norm(end - begin, dim=1).sum()
        size = torch.linalg.vector_norm(end, dim=1).sum()
        assert means["movement"] == pytest.approx((moved / size).item(), abs=1e-9)
        by_hand = gradients(model)
        assert by_hand.keys() <= fast.keys()
        for name in fast.keys() - by_hand.keys():  # the first batch sees no update
            assert start == 0 and "updater" in name and not bool(fast[name].any())
        for name, grad in by_hand.items():
            torch.testing.assert_close(fast[name], grad, rtol=0, atol=1e-9)
        memory = torch.stack([slow.memory.get(node, slow.zero) for node in range(12)])
        torch.testing.assert_close(model.memory.memory, memory, rtol=0, atol=1e-9)
    assert all(bool(grad.any()) for grad in fast.values())


@pytest.mark.parametrize("coherence", ["node", "batch"])
def test_the_coherence_objective_moves_the_gradient_of_the_cell(coherence: Any) -> None:
    events = random_events(seed=7, n=500)
    found = []
    for smoothing in (None, PRES(filter=False, coherence=coherence, beta=0.5)):
        model = make("jodie", stream_of(events), cell="scan").train()
        model.smoothing = None if smoothing is None else smoothing.build(model.memory)
        for start in (0, 250):  # there are no memories before the first window
            batch = prepared_for(model, stream_of(events)[start : start + 250], 50)
            means = train_on_scan(model, batch, still(model))
        found.append((means, gradients(model)))
    (plain, without), (same, with_it) = found
    told = same.pop("coherence")
    assert plain == same and 0 < told < 1  # the loss that is told is of the links alone
    assert not torch.allclose(without["updater.new.weight"], with_it["updater.new.weight"])
    assert torch.equal(without["link.out.weight"], with_it["link.out.weight"])


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize(
    ("kind", "embed"),
    [("jodie", "event"), ("jodie", "node"), ("tgn", "event"), ("tgn", "node"), ("apan", "event")],
)
def test_a_large_batch_takes_about_as_many_operations_as_a_small_one(
    kind: str, embed: str, passes: int
) -> None:
    events = pres.load("synthetic", num_events=40_000)
    sizes: dict[str, Any] = {"memory_dim": 4, "time_dim": 4, "node_encoding_dim": 2, "cell": "scan"}
    sizes |= {"embed": embed, "passes": passes}
    sizes |= {"jodie": {}, "apan": {"neighbours": 2}, "tgn": {"embedding_dim": 4, "neighbours": 2}}[kind]
    operations = {}
    for b in (800, 12_800):
        model = build_model(kind, events, sizes, seed=0).train()
        optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad])

        def step(start: int, b: int = b, model: MDGNN = model, optimiser: Any = optimiser) -> None:
            batch = events[start : start + b]
            prepared = prepare_scan(model, batch, batch.dst.roll(1).unsqueeze(1), 50)
            train_on_scan(model, prepared, optimiser)

        step(0)
        operations[b] = counted(lambda step=step, b=b: step(b)).operations  # type: ignore[misc]
    assert operations[12_800] <= 1.3 * operations[800], operations
