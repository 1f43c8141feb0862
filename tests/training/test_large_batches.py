"""The means against what large batches lose: each changes training as it says, and can be stopped."""

from __future__ import annotations

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch

import pres
from pres.errors import OptionError
from pres.sampling import NegativeSampler
from pres.sampling.counter_random import derived
from pres.training import FitConfig, Trainer, TrainingState
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
    "shift": {"shift": True},
    "bounded": {"most_lost": 40},
    "lamb": {"optimiser": "lamb", "lr": 0.01, "warmup": 0.5},
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
        negatives = sampler.sample(batch, seed=seed).nodes
        for e in range(len(batch)):
            view = slow.look(batch[e : e + 1], negatives[e : e + 1])
            positive, negative = slow.score(view, slow.measure(view.nodes))
            losses = torch.nn.functional.softplus(torch.cat([-positive, negative.flatten()]))
            total += float(losses.detach().sum())
            slow.absorb(batch[e : e + 1])
        trainer.train_next_batch()
    assert trainer.loss == pytest.approx(total, rel=1e-6)


def test_a_refresh_of_a_whole_batch_changes_nothing_but_the_moment_of_commit() -> None:
    """One step per batch, seen from its beginning: the same memory is measured, and kept."""
    one, two = trainer_of("jodie"), trainer_of("jodie", refresh=300)
    for trainer in (one, two):
        trainer.train_next_batch()
    assert two.loss == pytest.approx(one.loss, rel=1e-6)


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
    by_name = pres.fit(made(), EVENTS, preset="large", batch_size=400, epochs=1)
    written_out = pres.fit(made(), EVENTS, **PRESETS["large"] | {"batch_size": 400}, epochs=1)
    assert results(by_name) == results(written_out)


def test_gradients_through_updates_need_a_refresh() -> None:
    with pytest.raises(OptionError, match="grad_updates are those inside a batch: they need refresh"):
        FitConfig.of({"grad_updates": 2})
