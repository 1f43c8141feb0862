"""Validations inside an epoch: training does not feel them, and they compare with those at its end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

import pres
from pres.evaluation.scorer import BatchReading
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.sampling import TemporalBatches
from pres.training.checkpoint import EpochResult, TrainingState, state_of
from pres.training.config import FitConfig
from pres.training.trainer import Trainer
from tests.models.conftest import KINDS
from tests.training.runs import EVENTS, made

TRAIN = len(EVENTS.split().train)  # 1,050: 11 batches of 100
WAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "PRES": {"smoothing": pres.PRES(live=True)},
    "accumulation": {"step_size": 300},
}


def trainer_of(kind: str = "jodie", model: MDGNN | None = None, **options: Any) -> Trainer:
    settings = {"batch_size": 100, "epochs": 2, "patience": None} | options
    return Trainer(made(kind) if model is None else model, EVENTS, FitConfig.of(settings))


def untimed(history: list[EpochResult]) -> list[EpochResult]:
    return [replace(done, seconds=0.0) for done in history]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_training_goes_on_as_if_it_had_not_been_validated(kind: str, way: str) -> None:
    plain, often = trainer_of(kind, **WAYS[way]), trainer_of(kind, validate_every=250, **WAYS[way])
    often.model.load_state_dict(plain.model.state_dict())
    for trainer in (plain, often):
        torch.manual_seed(0)
        while not trainer.finished:
            trainer.run_epoch()
    shares = [(done.epoch, round(done.share * TRAIN)) for done in often.history]
    assert shares == [(e, n) for e in (1, 2) for n in (300, 500, 800, 1000, TRAIN)]
    assert untimed([done for done in often.history if done.share == 1]) == untimed(plain.history)
    for name, value in often.model.state_dict().items():
        assert torch.equal(value, plain.model.state_dict()[name]), name


@pytest.mark.parametrize("way", ["plain", "PRES"])
def test_memory_has_the_whole_training_part_and_validation_is_that_of_an_epochs_end(way: str) -> None:
    """By hand: the rest of the training part is taken in by the weights of the moment, then validated."""
    trainer = trainer_of("tgn", validate_every=400, **WAYS[way])
    found = trainer.run_epoch()
    twin = trainer_of("tgn", **WAYS[way])
    twin.model.load_state_dict(trainer.model.state_dict())
    twin.model.eval()
    with torch.no_grad():
        for batch in TemporalBatches(twin.split.train[400:], 200):
            BatchReading(twin.model, batch).take_in(follow=True)
    assert twin.evaluate(twin.split.val) == found.val
    assert trainer.best.keys() == state_of(twin.model).keys()
    for name, value in twin.model.state_dict().items():
        assert torch.equal(value, trainer.best[name]), name
    assert trainer.model.memory.position == 400


def test_the_best_of_all_validations_is_kept_and_patience_counts_them() -> None:
    torch.manual_seed(0)
    model = build_model("jodie", EVENTS, {"memory_dim": 16, "time_dim": 8})
    run = pres.fit(model, EVENTS, batch_size=100, epochs=50, patience=2, validate_every=200, lr=0.05)
    aps = [done.val.ap for done in run.history]
    best = aps.index(max(aps))
    assert len(aps) == best + 3 and run.val == run.history[best].val
    assert run.best_epoch == run.history[best].epoch
    told = run.to_dict()
    assert told["epochs"] == run.history[-1].epoch < len(aps)
    whole = [done for done in run.history if done.share == 1]
    last = run.history[-1]
    spent = sum(done.seconds for done in whole) + (last.seconds if last.share < 1 else 0)
    epochs = len(whole) + (last.share if last.share < 1 else 0)
    assert run.seconds_per_epoch == pytest.approx(spent / epochs)


@pytest.mark.parametrize("batches", [2, 3, 4, 7])  # 3 is where a validation is due
def test_it_goes_on_bit_for_bit_from_anywhere(batches: int, tmp_path: Path) -> None:
    straight = trainer_of(validate_every=250)
    stopped = trainer_of(validate_every=250)
    stopped.model.load_state_dict(straight.model.state_dict())
    while not straight.finished:
        straight.run_epoch()

    class StopError(Exception):
        pass

    def count() -> None:
        if stopped.batch == batches:
            raise StopError

    with pytest.raises(StopError):
        while True:
            stopped.run_epoch(count)
    file = stopped.state().save(tmp_path / "state.safetensors")
    resumed = trainer_of(validate_every=250)
    resumed.restore(TrainingState.load(file))
    while not resumed.finished:
        resumed.run_epoch()
    assert untimed(resumed.history) == untimed(straight.history)


def test_a_size_below_a_batch_validates_after_every_batch() -> None:
    trainer = trainer_of(batch_size=300, epochs=1, validate_every=10)
    while not trainer.finished:
        trainer.run_epoch()
    assert [round(done.share * TRAIN) for done in trainer.history] == [300, 600, 900, TRAIN]
