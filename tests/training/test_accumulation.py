"""Gradient accumulation and the fused gradient of a scan, against loops that are written out here."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import softplus

import pres
from pres.errors import OptionError
from pres.models import MDGNN, scanned
from pres.models.registry import build_model
from pres.sampling.rng import derived
from pres.training.checkpoint import TrainingState
from pres.training.config import FitConfig
from pres.training.scan_step import train_on_scan
from pres.training.trainer import Trainer
from tests.models.conftest import KINDS, make, random_events, stream_of
from tests.oracles.twin import scan_twin
from tests.training.runs import EVENTS, results
from tests.training.test_scan_step import prepared_for, states_by_hand, still

SMALL = {"memory_dim": 16, "time_dim": 8}


def trainer_of(kind: str, cell: str = "standard", **options: Any) -> Trainer:
    given: dict[str, Any] = {} if kind == "jodie" else {"dropout": 0.0}
    given |= {"cell": "scan"} if cell == "scan" else {}
    model = build_model(kind, EVENTS, SMALL | given, seed=0)
    settings = {"batch_size": 100, "epochs": 2, "lr": 0.01, "lr_decay": "none"}
    return Trainer(model, EVENTS, FitConfig.of(settings | options))


def gradients(model: MDGNN) -> dict[str, Tensor]:
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def backward(model: MDGNN, batch: pres.EventStream, negatives: Tensor, share: float) -> None:
    """Add the gradient of a batch's loss, with its share of the step, and let memory take the batch in."""
    if model.scans:
        window = model.window(batch.offset, batch.offset + len(batch))
        memory = model.scanned(window)
        inside = model.prepared(model.sample_window(window, negatives, 50))
        positive, negative = model.score(inside, memory.updated_memory(inside.nodes, inside.version))
    else:
        subgraph = model.sample(batch, negatives)
        positive, negative = model.score(subgraph, model.updated_memory(subgraph.nodes))
    torch.autograd.backward(share * (softplus(-positive).mean() + softplus(negative).mean()))
    with torch.no_grad():
        memory.commit() if model.scans else model.update_state(batch)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cell", ["standard", "scan"])
@pytest.mark.parametrize(("step_size", "batches"), [(300, 3), (250, 3), (100, 1)])
def test_a_step_has_the_gradient_of_all_its_batches(
    kind: str, cell: str, step_size: int, batches: int
) -> None:
    """The slow way: batch after batch forward, backward with its share of the step, memory moves."""
    trainer = trainer_of(kind, cell, step_size=step_size)
    model = copy.deepcopy(trainer.model).train()
    model.reset()
    train, done = trainer.split.train, 0
    for group in range(2):
        model.zero_grad()
        for _ in range(batches):
            batch = train[done : done + 100]
            drawn = trainer.sampler.sample(batch, seed=derived(0, 1), num_batches=1, window=200).nodes
            backward(model, batch, drawn, 1 / batches)
            done += 100
            trainer.train_next_batch()
        found, expected = gradients(trainer.model), gradients(model)
        for name, grad in expected.items():
            torch.testing.assert_close(found[name], grad, rtol=1e-4, atol=1e-6, msg=f"{name}, step {group}")
        before = [p.detach().clone() for p in model.parameters()]
        model.load_state_dict(dict(trainer.model.named_parameters()), strict=False)  # memory stays its own
        moved = zip(before, model.parameters(), strict=True)
        assert any(not torch.equal(old, new) for old, new in moved)


def test_weights_stay_until_the_step_has_its_events_and_a_shorter_last_step_counts_alike() -> None:
    trainer = trainer_of("jodie", step_size=400)  # 11 batches: steps after 4, 8 and 11
    before = [p.detach().clone() for p in trainer.model.parameters()]
    moved, rates = [], []
    while trainer.batch < len(trainer.batches):
        rates.append(trainer.learning_rate())
        trainer.train_next_batch()
        now = [p.detach().clone() for p in trainer.model.parameters()]
        moved.append(any(not torch.equal(a, b) for a, b in zip(before, now, strict=True)))
        before = now
    assert len(moved) == 11 and [i + 1 for i, there in enumerate(moved) if there] == [4, 8, 11]
    shares = [trainer_share(trainer, i) for i in range(11)]
    assert sum(shares[:4]) == sum(shares[4:8]) == pytest.approx(1) and sum(shares[8:]) == pytest.approx(1)


def trainer_share(trainer: Trainer, batch: int) -> float:
    trainer.batch = batch
    return trainer._accumulation().share


def test_the_rate_is_that_of_the_step() -> None:
    given: dict[str, Any] = {"lr_decay": "cosine", "warmup": 0.5, "optimiser": "muon"}
    accumulated = trainer_of("jodie", step_size=300, **given)
    rates = []
    for batch in range(11):
        accumulated.batch = batch
        rates.append(accumulated.learning_rate())
    assert all(len(set(rates[i : i + 3])) == 1 for i in range(0, 9, 3)) and len(set(rates)) == 4
    at_once = trainer_of("jodie", batch_size=300, **given)
    assert accumulated.per_step == at_once.per_step and len(at_once.batches) == 4
    uneven = trainer_of("jodie", step_size=250, **given)  # a step has whole batches
    assert uneven.per_step == at_once.per_step and uneven.config.events_per_step == 300


@pytest.mark.parametrize("cell", ["standard", "scan"])
def test_a_run_stopped_inside_a_step_goes_on_bit_for_bit(cell: str, tmp_path: Path) -> None:
    straight = trainer_of("jodie", cell, step_size=400)
    for _ in range(6):
        straight.train_next_batch()
    file = straight.state().save(tmp_path / "inside.safetensors")
    expected = straight.run_epoch()
    resumed = trainer_of("jodie", cell, step_size=400)
    resumed.restore(TrainingState.load(file))
    found = resumed.run_epoch()
    assert (found.loss, found.val) == (expected.loss, expected.val)
    forgotten = trainer_of("jodie", cell, step_size=400)
    state = TrainingState.load(file)
    forgotten.restore(TrainingState(**vars(state) | {"gradients": {}}))
    assert forgotten.run_epoch().val != expected.val
    assert straight.state().gradients == {}


def test_a_run_that_ends_inside_a_step_keeps_its_gradients(tmp_path: Path) -> None:
    model = build_model("jodie", EVENTS, SMALL, seed=0)
    how: dict[str, Any] = {
        "batch_size": 100,
        "step_size": 300,
        "validate_every": 100,
        "patience": 1,
        "lr": 1e-9,
    }
    run = pres.fit(model, EVENTS, out=tmp_path / "run", **how)
    assert run.last.batch % 3 and run.history[-1].share < 1
    kept = TrainingState.load(tmp_path / "run" / "last.safetensors").gradients
    assert run.last.gradients.keys() == kept.keys() and kept
    assert all(torch.equal(run.last.gradients[name], value) for name, value in kept.items())


def test_steps_as_long_as_batches_are_the_usual_ones() -> None:
    def run(**options: Any) -> pres.Run:
        return pres.fit(build_model("jodie", EVENTS, SMALL, seed=0), EVENTS, epochs=1, **options)

    assert results(run(batch_size=100, step_size=100)) == results(run(batch_size=100))


def test_a_scan_cannot_step_inside_a_batch() -> None:
    with pytest.raises(OptionError, match="step_size=50 is less than batch_size=100"):
        trainer_of("jodie", "scan", step_size=50)


@pytest.mark.parametrize("kind", ["tgn", "jodie"])
@pytest.mark.parametrize("staleness", [10, 15])
def test_a_scanned_batch_has_the_gradient_of_its_groups_accumulated(
    kind: str, staleness: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow way: memory event after event, then group after group of events forward and backward."""
    monkeypatch.setattr(scanned, "RESCANNED", 12)
    events = random_events(seed=staleness, n=90)
    x = torch.randn(len(events), 2, generator=torch.Generator().manual_seed(1))
    stream = stream_of(events, x)
    model = make(kind, stream, cell="scan", passes=2, node_encoding_dim=3).train()
    train = x[: len(stream.split().train)]
    known = (x.double() - train.mean(0).double()) / train.std(0, correction=0).double()
    slow, optimiser = scan_twin(model, events, known, again=12), still(model)
    for start in (0, 30, 60):
        prepared = prepared_for(model, stream[start : start + 30], staleness, seed=start)
        train_on_scan(model, prepared, optimiser)
        fused = gradients(model)
        model.zero_grad()
        found = slow.take_in(start, start + 30)
        seen = [states_by_hand(prepared, subgraph, found) for subgraph in prepared.subgraphs]
        parts = zip(prepared.subgraphs, seen, strict=True)
        logits = torch.cat([model.logits(subgraph, states) for subgraph, states in parts])
        for group in torch.split(logits, staleness):
            loss = softplus(-group[:, 0]).mean() + softplus(group[:, 1:]).mean()
            torch.autograd.backward(loss * len(group) / 30, retain_graph=True)
        accumulated = gradients(model)
        for name, grad in fused.items():
            expected = accumulated.get(name, torch.zeros_like(grad))  # the first batch sees no update
            torch.testing.assert_close(grad, expected, rtol=0, atol=1e-9)
