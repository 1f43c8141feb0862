"""How far weights move by a step's events, and what of them stays where a stream may change."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pres
from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.models import MDGNN, time_units
from pres.nn import MLPMessage, TimeEncoding
from pres.optim.muon import Muon
from pres.training.config import FitConfig
from pres.training.schedules import slow_columns
from pres.training.trainer import Trainer
from tests.models.conftest import KINDS
from tests.training.runs import EVENTS, made, results, trained

GAP = time_units(EVENTS)[1]
SPAN = float(EVENTS.split().train.t[-1] - EVENTS.t[0])


def muon_of(**options: Any) -> Muon:
    config = FitConfig.of({"optimiser": "muon", "lr": 0.01, "batch_size": 300, **options})
    optimiser = Trainer(made(), EVENTS, config).optimiser
    assert isinstance(optimiser, Muon)
    return optimiser


def test_what_is_no_matrix_comes_as_far_in_few_steps_as_in_many() -> None:
    def rate_of_the_rest(**options: Any) -> float:
        group, _ = muon_of(**options).param_groups
        found: float = group["lr"]
        return found

    train = len(EVENTS.split().train)
    per_batch = train / math.ceil(train / 300)
    assert rate_of_the_rest(step_size=50) == pytest.approx(0.01 * 50 / 200)
    assert rate_of_the_rest() == pytest.approx(0.01 * per_batch / 200)


@pytest.mark.parametrize("options", [{}, {"epochs": 3}, {"step_size": 50}])
def test_matrices_shrink_by_e_in_a_training_at_the_full_rate(options: dict[str, Any]) -> None:
    _, group = muon_of(**options).param_groups
    train = len(EVENTS.split().train)
    batches = math.ceil(train / 300)
    steps = options.get("epochs", 10) * train / options.get("step_size", train / batches)
    assert group["lr"] * group["weight_decay"] * steps == pytest.approx(1.0)


def weights_of_messages(model: MDGNN) -> list[Tensor]:
    names = (
        ("updater.cell.weight_ih",)
        if not hasattr(model.updater, "key")
        else ("updater.key.weight", "updater.value.weight")
    )
    return [model.get_parameter(name) for name in names]


@pytest.mark.parametrize("kind", KINDS)
def test_columns_stay_that_encode_time_too_slowly_for_the_usual_gap(kind: str) -> None:
    model = made(kind)
    time = model.message.time
    slow = [i for i, w in enumerate(time.frequency.tolist()) if w * GAP / time.scale < 1]
    assert 0 < len(slow) < time.dim
    first = model.message.dim - time.dim
    found = slow_columns(model, GAP)
    assert set(found) == set(weights_of_messages(model))
    for weight, columns in found.items():
        assert list(range(weight.shape[1]))[columns] == [first + i for i in slow]


@pytest.mark.parametrize("kind", KINDS)
def test_training_only_shrinks_them(kind: str) -> None:
    model = made(kind)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    config = FitConfig.of({"optimiser": "muon", "batch_size": 100, "lr": 0.01, "lr_decay": "none"})
    trainer = Trainer(model, EVENTS, config)
    for _ in range(4):
        trainer.train_next_batch()
    names: dict[Tensor, str] = {weight: name for name, weight in model.named_parameters()}
    _, group = trainer.optimiser.param_groups
    for weight, columns in slow_columns(model, GAP).items():
        old = before[names[weight]]
        shrunk = (1 - group["lr"] * group["weight_decay"]) ** 3  # not at the first: there is no mail yet
        assert torch.allclose(weight[:, columns], shrunk * old[:, columns], atol=1e-7)
        assert not torch.allclose(weight[:, : columns.start], shrunk * old[:, : columns.start], atol=1e-4)


def test_a_summary_reads_time_itself_and_others_say_nothing() -> None:
    model = made()
    summary = MLPMessage(model.mailboxes, model.message.features, model.message.time, dim=20)
    model.message = summary
    first = summary.mlp[0]
    assert isinstance(first, nn.Linear)
    (found,) = slow_columns(model, GAP).items()
    assert found[0] is first.weight and found[1].stop == first.weight.shape[1]
    model = made()
    model.message.dim += 10  # a summary of one's own
    assert slow_columns(model, GAP) == {}
    model = made()
    model.message = nn.Identity()  # type: ignore[assignment]
    assert slow_columns(model, GAP) == {}
    model = made()
    model.updater = nn.Identity()  # type: ignore[assignment]
    assert slow_columns(model, GAP) == {}
    model = made()
    model.message.time = TimeEncoding(8, model.message.time.scale, learned=True)
    assert slow_columns(model, GAP) == {}


def test_adam_moves_slow_columns_too() -> None:
    model = made()
    ((weight, columns),) = slow_columns(model, GAP).items()
    before = weight.detach()[:, columns].clone()
    trainer = Trainer(model, EVENTS, FitConfig.of({"batch_size": 100, "lr": 0.01}))
    for _ in range(3):
        trainer.train_next_batch()
    assert bool((weight[:, columns] != before).all())


def later(events: EventStream, by: float) -> EventStream:
    """The stream with everything behind training so much later."""
    t = events.t.clone().double()
    t[len(events.split().train) :] += by
    return EventStream(events.src, events.dst, t, num_nodes=events.num_nodes)


def test_times_beyond_the_limit_are_all_alike() -> None:
    """Nothing happens for twice, or nine times, as long as training took: neighbours are that old then."""
    found = {}
    for max_time_delta in (0.5, None):
        for times in (2, 9):
            stream = later(EVENTS, times * SPAN)
            torch.manual_seed(0)
            model = pres.TGN(stream, memory_dim=16, time_dim=8)
            trainer = Trainer(
                model, stream, FitConfig.of({"batch_size": 100, "max_time_delta": max_time_delta})
            )
            model.reset()
            model.eval()
            with torch.no_grad():
                model.update_state(trainer.split.train)
                batch = trainer.split.val[:20]
                subgraph = model.sample(batch, batch.dst.view(-1, 1))
                found[max_time_delta, times], _ = model.score(subgraph, model.updated_memory(subgraph.nodes))
    assert torch.equal(found[0.5, 2], found[0.5, 9])
    assert not torch.equal(found[None, 2], found[None, 9])


def test_a_run_keeps_its_limit_of_times(tmp_path: Path) -> None:
    run = trained(tmp_path / "run", max_time_delta=0.25, epochs=1)
    model = made()
    run.restore(model)
    limit = model.message.time.limit * model.message.time.scale
    assert float(limit) == pytest.approx(0.25 * SPAN, rel=1e-5)
    assert "a max_time_delta of 0.25 of the training's time" in repr(run)


def test_a_limit_of_times_is_no_more_than_all_that_training_has_seen() -> None:
    free = pres.fit(made(), EVENTS, batch_size=300, epochs=1)
    wide = pres.fit(made(), EVENTS, batch_size=300, epochs=1, max_time_delta=100.0)
    assert results(free) == results(wide)
    with pytest.raises(OptionError, match="max_time_delta"):
        pres.fit(made(), EVENTS, max_time_delta=0.0)
