"""The means against what large batches lose: each changes training as it says, and can be stopped."""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import pres
from pres.errors import OptionError
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.training.checkpoint import TrainingState
from pres.training.config import PRESETS, FitConfig
from pres.training.trainer import Trainer
from tests.models.conftest import KINDS
from tests.training.runs import EVENTS, made, results

FEW: dict[str, Any] = {"batch_size": 300, "epochs": 2}
MEANS: dict[str, dict[str, Any]] = {
    "steps": {"step_size": 100},
    "steps with PRES": {"step_size": 100, "smoothing": pres.PRES(delta="rate")},
    "shift": {"shift": True},
    "bounded": {"most_lost": 40},
    "max_time_delta": {"max_time_delta": 0.001},
    "muon": {"optimiser": "muon", "step_size": 100},
}


def trainer_of(kind: str, **options: Any) -> Trainer:
    return Trainer(made(kind), EVENTS, FitConfig.of(FEW | options))


def scan() -> MDGNN:
    return build_model("jodie", EVENTS, {"memory_dim": 16, "time_dim": 8, "cell": "scan"})


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


def test_the_preset_is_the_default_of_what_is_not_given() -> None:
    config = FitConfig.of({"preset": "large"})
    assert {name: getattr(config, name) for name in PRESETS["large"]} == PRESETS["large"]
    given = FitConfig.of({"preset": "large", "batch_size": 250, "lr_rule": "fixed"})
    assert (given.batch_size, given.lr_rule, given.lr) == (250, "fixed", PRESETS["large"]["lr"])
    by_name = pres.fit(scan(), EVENTS, preset="large", batch_size=400, epochs=1)
    written_out = pres.fit(scan(), EVENTS, **PRESETS["large"] | {"batch_size": 400}, epochs=1)
    assert results(by_name) == results(written_out)


def test_a_run_from_before_a_setting_goes_on(tmp_path: Path) -> None:
    pres.fit(made(), EVENTS, batch_size=300, epochs=1, out=tmp_path / "old")
    path = tmp_path / "old" / "config.json"
    config = json.loads(path.read_text())
    since = ("shift", "warmup", "optimiser", "preset", "most_lost", "max_time_delta")
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


def test_bounded_batches_have_the_rate_of_their_steps() -> None:
    bounded = trainer_of("jodie", most_lost=10, lr=0.01, lr_rule="sqrt", lr_decay="none")
    events = len(bounded.split.train) / len(bounded.batches)
    assert bounded.learning_rate() == pytest.approx(0.01 * (events / 200) ** 0.5)


def test_presets_are_names() -> None:
    for wrong in (["large"], "huge", 3):
        with pytest.raises(OptionError, match="preset="):
            FitConfig.of({"preset": wrong})
