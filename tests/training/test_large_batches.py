"""The means against what large batches lose: each changes training as it says, and can be stopped."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

import pres
from pres.errors import OptionError
from pres.nn.dropout import Dropout
from pres.sampling import NegativeSampler
from pres.sampling.counter_random import derived
from pres.training import FitConfig, Trainer, TrainingState, open_run
from pres.training.config import PRESETS
from pres.training.optimisers import LAMB
from tests.models.conftest import KINDS
from tests.training.runs import EVENTS, made, results

FEW: dict[str, Any] = {"batch_size": 300, "epochs": 2}
MEANS: dict[str, dict[str, Any]] = {
    "refresh": {"refresh": 20},
    "refresh with steps and sweeps": {"refresh": 20, "step_size": 100, "sweeps": 3, "grad_updates": 2},
    "refresh with PRES": {"refresh": 50, "smoothing": pres.PRES(gain="pending")},
    "exact": {"refresh": 1, "memory": "exact"},
    "blocks": {"refresh": 50, "block": 100, "step_size": 150},
    "shift": {"shift": True},
    "bounded": {"most_lost": 40},
    "lamb": {"optimiser": "lamb", "lr": 0.01, "warmup": 0.5},
    "horizon": {"horizon": 0.001},
    "muon": {"optimiser": "muon", "step_size": 100, "block": 50, "refresh": 50},
}


def trainer_of(kind: str, **options: Any) -> Trainer:
    return Trainer(made(kind), EVENTS, FitConfig.of(FEW | options))


@pytest.mark.parametrize("means", MEANS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_means_trains_and_goes_on_bit_for_bit(kind: str, means: str, tmp_path: Path) -> None:
    straight, plain = trainer_of(kind, **MEANS[means]), trainer_of(kind)
    first = straight.run_epoch()
    assert first.loss != plain.run_epoch().loss
    straight.train_next_batch()
    file = straight.state().save(tmp_path / "middle.safetensors")
    expected = straight.run_epoch()
    resumed = trainer_of(kind, **MEANS[means])
    resumed.restore(TrainingState.load(file))
    found = resumed.run_epoch()
    assert (found.loss, found.val) == (expected.loss, expected.val)
    assert math.isfinite(found.loss)


@pytest.mark.parametrize("kind", KINDS)
def test_a_refresh_at_every_event_has_the_loss_of_events_one_at_a_time(kind: str) -> None:
    """Exact memory seen anew at every event: the loss of a batch is that of batches of one event."""
    trainer = trainer_of(kind, refresh=1, memory="exact", lr=1e-9)
    slow = trainer_of(kind).model
    for model in (trainer.model, slow):
        model.double().eval()
    trainer.model.train = lambda mode=True: trainer.model  # type: ignore[method-assign]  # no dropout
    slow.reset()
    sampler, seed, total = NegativeSampler(EVENTS), derived(0, 1), 0.0
    for _ in range(2):
        batch = trainer.batches[trainer.batch]
        negatives = sampler.sample(batch, seed=seed, window=200).nodes
        for e in range(len(batch)):
            view = slow.look(batch[e : e + 1], negatives[e : e + 1])
            positive, negative = slow.score(view, slow.measure(view.nodes))
            losses = torch.nn.functional.softplus(torch.cat([-positive, negative.flatten()]))
            total += float(losses.detach().sum())
            slow.absorb(batch[e : e + 1])
        trainer.train_next_batch()
    assert trainer.loss == pytest.approx(total, rel=1e-6)


def test_epochs_are_cut_elsewhere() -> None:
    trainer = trainer_of("jodie", shift=True)
    first = trainer.batches.bounds
    trainer.run_epoch()
    second = trainer.batches.bounds
    assert first != second and first[-1] == second[-1] == len(trainer.split.train)
    assert all(b - a == 300 for a, b in pairwise(first[1:-1]))


def test_rates_warm_up_and_grow_with_the_step() -> None:
    steady: dict[str, Any] = {"lr": 0.01, "lr_decay": "none", "step_size": 100}
    rates = {
        rule: trainer_of("jodie", lr_rule=rule, **steady).learning_rate() for rule in ("fixed", "linear")
    }
    assert rates == {"fixed": 0.01, "linear": pytest.approx(0.005)}
    trainer = trainer_of("jodie", warmup=0.5, **steady)
    found = []
    while trainer.batch < len(trainer.batches):
        found.append(trainer.learning_rate())
        trainer.train_next_batch()
    batches = len(trainer.batches)
    assert found == pytest.approx([0.01 * min(1, (i + 1) / batches / 0.5) for i in range(batches)])
    assert isinstance(trainer_of("jodie", optimiser="lamb").optimiser, LAMB)


def test_the_preset_is_the_default_of_what_is_not_given() -> None:
    config = FitConfig.of({"preset": "large"})
    assert {name: getattr(config, name) for name in PRESETS["large"]} == PRESETS["large"]
    given = FitConfig.of({"preset": "large", "batch_size": 250, "lr_rule": "fixed"})
    assert (given.batch_size, given.step_size, given.lr_rule) == (250, 250, "fixed")
    assert given.refresh == PRESETS["large"]["refresh"]
    assert FitConfig.of({"preset": "large", "memory": "exact"}).block is None
    by_name = pres.fit(made(), EVENTS, preset="large", batch_size=400, epochs=1)
    smaller = {"batch_size": 400, "step_size": 400}
    written_out = pres.fit(made(), EVENTS, **PRESETS["large"] | smaller, epochs=1)
    assert results(by_name) == results(written_out)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_train_as_standard_batches_of_their_size(kind: str) -> None:
    """Steps, blocks, looks and negatives of 100 events: a batch of 300 is three of 100, weights and all."""
    same: dict[str, Any] = {"lr": 0.01, "lr_decay": "none"}
    inside = {"step_size": 100, "block": 100, "refresh": 100, "negative_window": 100}
    large, small = trainer_of(kind, **inside, **same), trainer_of(kind, batch_size=100, **same)
    for trainer, batches in ((large, 2), (small, 6)):
        for part in trainer.model.double().modules():
            if isinstance(part, Dropout):
                part.p = 0.0  # else one would go on drawing where the other stopped
        for _ in range(batches):
            trainer.train_next_batch()
    assert large.model.memory.position == small.model.memory.position == 600
    assert large.loss == pytest.approx(small.loss, rel=1e-9)
    weights = zip(large.model.named_parameters(), small.model.named_parameters(), strict=True)
    assert all(torch.allclose(one, two, atol=1e-9) for (_, one), (_, two) in weights)
    nodes = torch.arange(EVENTS.num_nodes)
    one, two = (trainer.model.eval().measure(nodes).memory for trainer in (large, small))
    assert torch.allclose(one, two, atol=1e-9) and one.any()


def test_blocks_lie_inside_a_batch_that_is_looked_into() -> None:
    for options in ({}, {"refresh": 10, "sweeps": 2}, {"refresh": 10, "grad_updates": 2}):
        with pytest.raises(OptionError, match="block"):
            FitConfig.of({"block": 100} | options)


def test_what_is_inside_a_batch_is_no_larger() -> None:
    for options in ({"refresh": 300}, {"refresh": 10, "block": 300}):
        with pytest.raises(OptionError, match="300 exceeds batch_size=200"):
            FitConfig.of(options)
    small = FitConfig.of({"preset": "large", "batch_size": 40})
    assert (small.step_size, small.block, small.refresh) == (40, 40, 40)


def test_gradients_through_updates_need_a_refresh() -> None:
    with pytest.raises(OptionError, match="grad_updates are those inside a batch: they need refresh"):
        FitConfig.of({"grad_updates": 2})


@pytest.mark.parametrize("kind", KINDS)
def test_trained_evaluation_is_that_of_the_run(kind: str, tmp_path: Path) -> None:
    options: dict[str, Any] = {"refresh": 20, "sweeps": 2, "epochs": 1, "batch_size": 300}
    run = pres.fit(made(kind), EVENTS, eval_memory="trained", out=tmp_path / "run", **options)
    standard = pres.fit(made(kind), EVENTS, **options)
    assert run.history[0].loss == standard.history[0].loss and run.test.ap != standard.test.ap
    opened = open_run(tmp_path / "run")
    config = FitConfig.of(run.config)
    sweeps, refresh = config.eval_sweeps, config.eval_refresh
    found = pres.compare(opened.model, opened.events, sweeps=sweeps, refresh=refresh, baselines=False)
    metrics = found.rows[0].metrics
    assert metrics is not None and metrics.ap == pytest.approx(run.test.ap, abs=1e-12) and found.refresh == 20


@pytest.mark.parametrize("options", [{"memory": "exact"}, {"memory": "exact", "smoothing": pres.PRES()}])
@pytest.mark.parametrize("kind", KINDS)
def test_reaching_further_back_changes_gradients_and_no_values(kind: str, options: dict[str, Any]) -> None:
    trainer = trainer_of(kind, refresh=1, **options)
    for _ in range(3):
        trainer.train_next_batch()
    model = trainer.model.eval()
    batch = trainer.batches[trainer.batch]
    inside = model.in_order.memory(model, batch)
    view = model.look(batch, batch.dst.unsqueeze(1), inside=inside)
    one, two = (model.states_of(view, inside, depth) for depth in (1, 3))
    assert torch.allclose(one.kept, two.kept, atol=1e-5)


def test_a_filter_is_told_what_one_sweep_leaves_out() -> None:
    """A node's events in the batch so far, those of its partner, and the time since the batch's beginning."""
    trainer = trainer_of("jodie")
    for _ in range(2):
        trainer.train_next_batch()
    model, seen = trainer.model.eval(), []

    class Noting:
        embedded: bool = True
        written: bool = True

        def reset(self) -> None: ...

        def __call__(
            self,
            nodes: torch.Tensor,
            previous: torch.Tensor,
            measured: torch.Tensor,
            elapsed: torch.Tensor,
            count: torch.Tensor,
            partner_count: torch.Tensor,
        ) -> torch.Tensor:
            seen.append((nodes, elapsed, count, partner_count))
            return measured

    batch = trainer.batches[2]
    inside = model.in_order.memory(model, batch, sweeps=1)
    place = 250
    view = model.look(batch[place : place + 1], batch.dst[:1].unsqueeze(1), batch.offset, inside=inside)
    model.correction = Noting()
    inside.measure(view.nodes, view.received)  # type: ignore[arg-type]
    nodes, elapsed, count, partner_count = seen[-1]
    assert len(nodes) >= 1
    for i, node in enumerate(nodes.tolist()):
        own = [e for e in range(place) if node in (int(batch.src[e]), int(batch.dst[e]))]
        pair = {int(batch.src[own[-1]]), int(batch.dst[own[-1]])}
        partner = (pair - {node} or {node}).pop()
        met = [e for e in range(own[-1] + 1) if partner in (int(batch.src[e]), int(batch.dst[e]))]
        assert (int(count[i]), int(partner_count[i])) == (len(own), len(met))
        assert inside.start is not None
        began = inside.start.last_update[inside.start.nodes == node]
        assert float(elapsed[i]) == float(batch.t[own[-1]] - began)


def test_a_second_batch_seen_from_its_beginning_is_the_standard_one() -> None:
    one, two = trainer_of("jodie", lr=1e-9), trainer_of("jodie", lr=1e-9, refresh=300)
    for trainer in (one, two):
        for _ in range(3):
            trainer.train_next_batch()
    assert two.loss == pytest.approx(one.loss, rel=1e-6)
    assert torch.allclose(one.model.memory.memory, two.model.memory.memory, atol=1e-6)


def test_a_run_from_before_a_setting_goes_on(tmp_path: Path) -> None:
    pres.fit(made(), EVENTS, batch_size=300, epochs=1, out=tmp_path / "old")
    path = tmp_path / "old" / "config.json"
    config = json.loads(path.read_text())
    since = ("shift", "warmup", "optimiser", "grad_updates", "refresh", "preset", "most_lost", "horizon")
    for name in since:
        del config[name]
    path.write_text(json.dumps(config))
    run = pres.fit(made(), EVENTS, batch_size=300, epochs=2, out=tmp_path / "old", resume=True)
    assert len(run.history) == 2


def test_a_run_from_before_windows_goes_on_with_negatives_that_avoid_the_whole_batch(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"batch_size": 300, "out": tmp_path / "old", "negative_window": None}
    pres.fit(made(), EVENTS, epochs=1, **settings)
    path = tmp_path / "old" / "config.json"
    config = json.loads(path.read_text())
    del config["negative_window"]
    path.write_text(json.dumps(config))
    with pytest.raises(OptionError, match="begun with negative_window=None, not 200"):
        pres.fit(made(), EVENTS, epochs=2, **settings | {"negative_window": 200}, resume=True)
    run = pres.fit(made(), EVENTS, epochs=2, **settings, resume=True)
    assert len(run.history) == 2


def test_levels_of_another_cut_are_not_kept() -> None:
    trainer = trainer_of("jodie", shift=True, memory="exact")
    for _ in range(2):
        trainer.run_epoch()
    assert not trainer.model.in_order._levels


def test_bounded_batches_have_the_rate_of_their_steps() -> None:
    bounded = trainer_of("jodie", most_lost=10, lr=0.01, lr_rule="sqrt", lr_decay="none")
    events = len(bounded.split.train) / len(bounded.batches)
    assert bounded.learning_rate() == pytest.approx(0.01 * (events / 200) ** 0.5)


def test_presets_are_names() -> None:
    for wrong in (["large"], "huge", 3):
        with pytest.raises(OptionError, match="preset="):
            FitConfig.of({"preset": wrong})
