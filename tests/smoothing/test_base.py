"""The interface of smoothing, by a toy method that shares nothing with PRES."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from torch import Tensor

import pres
from pres.errors import OptionError
from pres.models.registry import build_model
from pres.nn.memory import MemoryStore
from pres.smoothing import PRES, Role, Smoothing, SmoothingSettings, Update
from pres.training.checkpoint import TrainingState, state_of
from pres.training.config import FitConfig
from pres.training.opened import open_run
from pres.training.trainer import Trainer
from tests.models.conftest import KINDS

EVENTS = pres.load("synthetic", num_events=1_500)
OPTIONS = {"memory_dim": 16, "time_dim": 8}


class Average(SmoothingSettings):
    """Memory is an exponential moving average, and is to stay near the mean memory of its node."""

    method: Literal["average"] = "average"
    rate: float = 0.7
    weight: float = 0.1

    @property
    def corrects(self) -> bool:
        return True

    def build(self, memory: MemoryStore, unit: float = 1.0, activity: Tensor | None = None) -> Smoothing:
        return Averaging(self, torch.zeros(memory.num_nodes, memory.dim))


class Averaging(Smoothing):
    observes = ("event",)
    total: Tensor

    def __init__(self, settings: Average, memory: Tensor) -> None:
        super().__init__()
        self.settings = settings
        self.register_buffer("total", torch.zeros_like(memory))
        self.register_buffer("n", torch.zeros(len(memory), dtype=torch.int64, device=memory.device))
        self.n: Tensor
        self.far: Tensor = memory.new_zeros(())

    def reset(self) -> None:
        self.total.zero_()
        self.n.zero_()

    def correct(self, nodes: Tensor, previous: Tensor, measured: Tensor, elapsed: Tensor) -> Tensor:
        return torch.lerp(previous, measured, self.settings.rate)

    def loss(self, previous: Tensor, corrected: Tensor, updated: Tensor, roots: Tensor) -> Tensor:
        far = (corrected - previous)[updated].square().sum(1)
        self.far = far.sum() / max(len(far), 1)
        loss: Tensor = self.settings.weight * self.far
        return loss

    def observe(self, update: Update, places: Mapping[Role, Tensor]) -> None:
        place = places["event"]
        self.total.index_add_(0, update.nodes[place], update.corrected[place])
        self.n.index_add_(0, update.nodes[place], torch.ones_like(place))

    def stats(self) -> dict[str, Tensor]:
        return {"far": self.far.detach()}

    def epoch_stats(self) -> dict[str, float]:
        return {"observed": float(self.n.sum())}


def trained(kind: str, smoothing: SmoothingSettings | None, **options: Any) -> tuple[Any, pres.Run]:
    model = build_model(kind, EVENTS, OPTIONS, seed=0)
    settings = {"batch_size": 150, "epochs": 2, "patience": 9, "smoothing": smoothing} | options
    return model, pres.fit(model, EVENTS, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_another_method_trains_and_is_logged(kind: str) -> None:
    _, without = trained(kind, None)
    model, run = trained(kind, Average())
    assert [epoch.loss for epoch in run.history] != [epoch.loss for epoch in without.history]
    logged = run.history[-1].memory
    assert logged.keys() == {"movement", "far", "observed"} and logged["far"] > 0
    updates = int(model.smoothing.n.sum())  # evaluation, which came after, did not add to them
    assert logged["observed"] == updates > 100
    neither = trained(kind, Average(rate=1.0, weight=0.0))[1]
    assert [epoch.loss for epoch in neither.history] == [epoch.loss for epoch in without.history]
    assert neither.test == without.test


def test_what_it_observes_is_every_update_that_is_committed_once() -> None:
    model = build_model("jodie", EVENTS, OPTIONS, seed=0)
    trainer = Trainer(model, EVENTS, FitConfig.of({"batch_size": 150, "smoothing": Average()}))
    expected = torch.zeros(EVENTS.num_nodes, dtype=torch.int64)
    seen: set[int] = set()
    for batch in trainer.batches:
        trainer.train_next_batch()
        ends = {*batch.src.tolist(), *batch.dst.tolist()}
        expected[list(ends & seen)] += 1
        seen |= ends
    smoothing = model.smoothing
    assert isinstance(smoothing, Averaging) and smoothing.n.tolist() == expected.tolist()


def test_a_run_of_it_is_saved_opened_and_gone_on_with(tmp_path: Path) -> None:
    settings = Average(rate=0.6)
    _, run = trained("jodie", settings, out=tmp_path / "run")
    assert run.config["smoothing"] == {"method": "average", "rate": 0.6, "weight": 0.1}
    assert "with batches of 150, average:" in repr(run)
    opened = open_run(tmp_path / "run")
    assert isinstance(opened.model.smoothing, Averaging) and opened.model.smoothing.settings == settings
    for name, value in opened.model.state_dict().items():
        assert torch.equal(value, run.state[name]), name
    sampler = pres.sampling.NegativeSampler(EVENTS)
    assert pres.evaluate(opened.model, EVENTS.split().test, sampler) == run.test
    longer = build_model("jodie", EVENTS, OPTIONS, seed=0)
    on = pres.fit(
        longer,
        EVENTS,
        epochs=3,
        out=tmp_path / "run",
        resume=True,
        batch_size=150,
        patience=9,
        smoothing=settings,
    )
    whole = trained("jodie", settings, epochs=3)[1]
    assert [epoch.memory for epoch in on.history[2:]] != [] and len(on.history) == len(whole.history) == 3


def test_it_goes_on_from_the_middle_of_an_epoch_bit_for_bit(tmp_path: Path) -> None:
    def trainer() -> Trainer:
        model = build_model("tgn", EVENTS, OPTIONS, seed=0)
        return Trainer(model, EVENTS, FitConfig.of({"batch_size": 150, "smoothing": Average()}))

    straight, resumed = trainer(), trainer()
    for _ in range(4):
        straight.train_next_batch()
    file = straight.state().save(tmp_path / "middle.safetensors")
    expected = straight.run_epoch()
    resumed.restore(TrainingState.load(file))
    found = resumed.run_epoch()
    assert (found.loss, found.val, found.memory) == (expected.loss, expected.val, expected.memory)
    state = state_of(resumed.model)
    for name, value in state_of(straight.model).items():
        assert torch.equal(value, state[name]), name


def test_saved_settings_name_their_method() -> None:
    for settings in (Average(rate=0.5), PRES(beta=0.2), PRES.published("algorithm")):
        assert SmoothingSettings.from_dict(settings.model_dump()) == settings
    assert SmoothingSettings.from_dict({"beta": 0.2}) == PRES(beta=0.2)
    with pytest.raises(OptionError, match=r"no smoothing method 'kalman' here: .* average, pres"):
        SmoothingSettings.from_dict({"method": "kalman"})
    with pytest.raises(OptionError, match="Average has no option 'rat'"):
        FitConfig.of({"smoothing": {"method": "average", "rat": 1.0}})


def test_a_method_that_corrects_is_refused_where_memory_is_scanned() -> None:
    model = build_model("jodie", EVENTS, OPTIONS | {"cell": "scan"})
    with pytest.raises(OptionError, match="updates memory at every event"):
        Trainer(model, EVENTS, FitConfig.of({"batch_size": 150, "smoothing": Average()}))
