"""The means against what large batches lose: each changes training as it says, and can be stopped."""

from __future__ import annotations

import math
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
    "accumulation": {"batch_size": 100, "step_size": 300},
    "steps with PRES": {"step_size": 100, "smoothing": pres.PRES(delta="rate")},
    "warmup": {"lr": 0.01, "warmup": 0.5},
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


def test_rates_warm_up_and_grow_with_the_step() -> None:
    steady: dict[str, Any] = {"lr": 0.01, "lr_decay": "none", "step_size": 100}
    rates = [trainer_of("jodie", optimiser=name, **steady).learning_rate() for name in ("adam", "muon")]
    assert rates == [0.01, pytest.approx(0.01 * (100 / 200) ** 0.5)]
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
    given = FitConfig.of({"preset": "large", "batch_size": 250, "warmup": 1.0})
    assert (given.batch_size, given.warmup, given.lr) == (250, 1.0, PRESETS["large"]["lr"])
    by_name = pres.fit(scan(), EVENTS, preset="large", batch_size=400, epochs=1)
    written_out = pres.fit(scan(), EVENTS, **PRESETS["large"] | {"batch_size": 400}, epochs=1)
    assert results(by_name) == results(written_out)


def test_presets_are_names() -> None:
    for wrong in (["large"], "huge", 3):
        with pytest.raises(OptionError, match="preset="):
            FitConfig.of({"preset": wrong})
