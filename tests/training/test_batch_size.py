"""How large a batch may be: the prediction's arithmetic, and a batch size that is found by itself."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import pres
from pres.data.stream import EventStream
from pres.errors import Notice, OptionError
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.training import batch_size as search
from pres.training.batch_size import FoundBatchSize, find_batch_size
from pres.training.config import FitConfig
from pres.training.trainer import Trainer
from pres.tuning.compare import try_batches
from tests.oracles.sampling import fixed_edges
from tests.training.runs import results

EVENTS = pres.load("synthetic", num_events=4_000)


SCAN = {"cell": "scan", "memory_dim": 16, "time_dim": 8, "node_encoding_dim": 4}


def made() -> MDGNN:
    return build_model("jodie", EVENTS, {"memory_dim": 16, "time_dim": 8})


@pytest.fixture(autouse=True)
def small_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PROBE_EPOCHS", 1)


def fixed_probes(monkeypatch: pytest.MonkeyPatch, aps: dict[int, float]) -> None:
    monkeypatch.setattr(search, "_probe", lambda make, events, config: aps[config.batch_size])


def lost_share(size: int, train: EventStream | None = None) -> float:
    """The loop: events of a node beyond its first in each batch, over all."""
    train = EVENTS.split().train if train is None else train
    src, dst, edges = train.src.tolist(), train.dst.tolist(), fixed_edges(len(train), size)
    lost, total = 0, 0
    for start, stop in pairwise(edges):
        nodes = [node for e in range(start, stop) for node in {src[e], dst[e]}]
        lost, total = lost + len(nodes) - len(set(nodes)), total + len(nodes)
    return lost / total


def test_losses_are_predicted_in_proportion_to_lost_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PROBED", (200, 250))
    fixed_probes(monkeypatch, {200: 0.90, 250: 0.89})
    found = find_batch_size(EVENTS, "jodie", tolerance=0.5, sizes=(200, 210, 225, 250))
    probe = EVENTS[: len(EVENTS.split().train)].split().train
    rate = 1.0 / (lost_share(250, probe) - lost_share(200, probe))  # points of AP per share of updates
    for size in (200, 210, 225, 250):
        assert found.lost_updates[size] == pytest.approx(lost_share(size))
        assert found.predicted[size] == pytest.approx(rate * (lost_share(size) - lost_share(200)))
    assert found.batch_size == max(size for size in (200, 210, 225) if found.predicted[size] <= 0.5)
    assert find_batch_size(EVENTS, "jodie", tolerance=1.1, sizes=(250,)).batch_size == 250
    assert find_batch_size(EVENTS, "jodie", tolerance=0.0, sizes=(250,)).batch_size == 200
    assert "leave out" in str(found) and found.to_dict()["batch_size"] == found.batch_size


def test_a_scan_loses_steps_and_no_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    events = pres.load("synthetic", num_events=40_000)
    monkeypatch.setattr(search, "PROBED", (200, 1_000))
    fixed_probes(monkeypatch, {200: 0.90, 1_000: 0.88})
    found = find_batch_size(
        events, lambda part: build_model("jodie", part, SCAN), tolerance=0.5, preset="large", epochs=4
    )
    train = len(events.split().train)
    probe = len(events[: min(train, search.PROBE_EVENTS)].split().train)
    assert set(found.lost_updates.values()) == {0.0} and "leave out no memory update" in str(found)
    assert max(found.predicted) == 1_000 and 800 in found.predicted  # 1,600 would leave an epoch 18 steps
    more_per_epoch = (1_000 - 200) / probe  # epochs have fewer events in the probe, and there is one
    for size in (400, 800):
        expected = 2.0 * ((size - 200) / (4 * train)) / more_per_epoch
        assert found.predicted[size] == pytest.approx(expected)
    assert found.batch_size == max(size for size in (200, 400, 800) if found.predicted[size] <= 0.5)


def test_probes_train_with_the_settings_that_will_be_trained(monkeypatch: pytest.MonkeyPatch) -> None:
    configs: list[FitConfig] = []

    def noted(make: object, events: EventStream, config: FitConfig) -> float:
        configs.append(config)
        return 0.9

    monkeypatch.setattr(search, "_probe", noted)
    events = pres.load("synthetic", num_events=40_000)
    model = build_model("jodie", events, SCAN)
    chosen, line = search.options_for(model, events, None, {"preset": "large", "epochs": 4})
    trained = FitConfig.of(chosen)
    assert trained.batch_size == trained.events_per_step == 800 and "Weights move every 800 events" in line
    for config in configs:
        assert config.events_per_step == config.batch_size
        apart = config.model_copy(update={"batch_size": 800, "epochs": 4})
        assert apart == trained


@pytest.mark.parametrize(
    ("cell", "given", "expected"),
    [("standard", 1_000, 1_000), ("standard", 100, 100), ("scan", 1_000, 1_000), ("scan", 100, None)],
)
def test_a_step_size_that_is_given_stays(
    cell: str, given: int, expected: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    fixed_probes(monkeypatch, {200: 0.90, 490: 0.8})
    model = made() if cell == "standard" else build_model("jodie", EVENTS, SCAN)
    chosen, _ = search.options_for(model, EVENTS, None, {"step_size": given})
    assert (chosen["batch_size"], chosen["step_size"]) == (200, expected)


def test_probes_are_whole_epochs_however_often_training_validates(monkeypatch: pytest.MonkeyPatch) -> None:
    trained: list[Trainer] = []

    class Noted(Trainer):
        def __init__(self, *given: Any) -> None:
            super().__init__(*given)
            trained.append(self)

    monkeypatch.setattr(search, "Trainer", Noted)
    find_batch_size(EVENTS, lambda part: build_model("jodie", part, SCAN), validate_every=300)
    assert trained and all([done.share for done in of.history] == [1.0] for of in trained)


def test_a_probe_that_gains_predicts_no_loss(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "PROBED", (200, 250))
    fixed_probes(monkeypatch, {200: 0.90, 250: 0.91})
    found = find_batch_size(EVENTS, "jodie", sizes=(250,))
    assert set(found.predicted.values()) == {0.0} and found.batch_size == 250


def test_a_batch_size_is_found_and_trained_with(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[FoundBatchSize] = []
    real = search.find_batch_size

    def noted(*arguments: object, **options: object) -> FoundBatchSize:
        seen.append(real(*arguments, **options))  # type: ignore[arg-type]
        return seen[-1]

    monkeypatch.setattr(search, "find_batch_size", noted)
    monkeypatch.setattr(search, "PROBED", (200, 250))
    with pytest.warns(Notice, match=r"auto': batches of .* Weights move every 200 events"):
        run = pres.fit(made(), EVENTS, batch_size="auto", tolerance=100.0, epochs=1)
    assert run.config["batch_size"] == seen[0].batch_size >= 200 and set(seen[0].probed) == {200, 250}
    assert run.config["step_size"] == 200
    by_hand = pres.fit(made(), EVENTS, batch_size=seen[0].batch_size, step_size=200, epochs=1)
    assert results(run) == results(by_hand)


def test_what_cannot_be_probed_is_one_clear_line() -> None:
    with pytest.raises(OptionError, match="1,400 training events are too few to probe"):
        find_batch_size(EVENTS[:2_000], "jodie")
    for wrong in (-1, "some", float("nan"), True):
        with pytest.raises(OptionError, match=f"tolerance={wrong!r}: the loss that is accepted"):
            find_batch_size(EVENTS, "jodie", tolerance=wrong)  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"tolerance=1\.0 is for batch_size='auto'"):
        pres.fit(made(), EVENTS, tolerance=1.0)
    own = made()
    own.options = None
    with pytest.raises(OptionError, match="it is of your own"):
        pres.fit(own, EVENTS, batch_size="auto")


def test_a_factor_that_is_proposed_would_do() -> None:
    events = pres.load("synthetic", num_events=2_000)  # 1,400 to train on
    with pytest.raises(OptionError, match="use a factor of 3, or a batch size of 21"):
        try_batches(events, "jodie", batch_size=100, factor=16)
    with pytest.raises(OptionError, match="events: use a batch size of 175"):
        try_batches(events, "jodie", batch_size=900, factor=2)
