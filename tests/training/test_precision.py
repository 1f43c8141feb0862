"""Arithmetic in bfloat16 and on other devices gives the same numbers within a stated tolerance."""

from typing import Any

import pytest
import torch

import pres
from pres.errors import OptionError
from pres.models.registry import build_model
from pres.sampling import NegativeSampler
from pres.training.config import FitConfig
from pres.training.step import arithmetic
from pres.training.trainer import Trainer, usable_device
from tests.models.conftest import KINDS

EVENTS = pres.load("synthetic", num_events=1_500)


def trainer_of(kind: str, device: str = "cpu", **options: Any) -> Trainer:
    sizes = {"memory_dim": 16, "time_dim": 8} | ({} if kind == "jodie" else {"dropout": 0.0})
    model = build_model(kind, EVENTS, sizes, seed=0).to(device)
    return Trainer(model, EVENTS, FitConfig.of({"batch_size": 100, "epochs": 1} | options))


def scores(trainer: Trainer, precision: str) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores of the fourth batch, after three have been trained on in float32."""
    batch = trainer.batches[3]
    negatives = NegativeSampler(EVENTS.to(trainer.device)).sample(batch).nodes
    trainer.model.eval()
    with torch.no_grad(), arithmetic(trainer.device, precision):
        subgraph = trainer.model.sample(batch, negatives)
        return trainer.model.score(subgraph, trainer.model.updated_memory(subgraph.nodes))


@pytest.mark.parametrize("kind", KINDS)
def test_bfloat16_scores_agree_within_two_hundredths(kind: str) -> None:
    trainer = trainer_of(kind)
    for _ in range(3):
        trainer.train_next_batch()
    exact, rounded = scores(trainer, "float32"), scores(trainer, "bfloat16")
    for one, two in zip(exact, rounded, strict=True):
        assert two.dtype == torch.float32  # scores are not rounded themselves: they would tie
        assert not torch.equal(one, two)  # else nothing was rounded
        assert torch.allclose(one, two, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("kind", KINDS)
def test_training_in_bfloat16_keeps_a_float32_state_and_nearly_the_same_loss(kind: str) -> None:
    exact, rounded = trainer_of(kind), trainer_of(kind, precision="bfloat16")
    for trainer in (exact, rounded):
        trainer.run_epoch()
    assert rounded.history[0].loss == pytest.approx(exact.history[0].loss, abs=0.02)
    assert rounded.history[0].loss != exact.history[0].loss
    assert {value.dtype for value in rounded.model.parameters()} == {torch.float32}
    assert rounded.model.memory.memory.dtype == torch.float32


def test_two_layers_of_attention_train_in_bfloat16() -> None:
    for embed in ("event", "node"):
        sizes = {"memory_dim": 16, "time_dim": 8, "embedding_dim": 16, "layers": 2, "embed": embed}
        losses = []
        for precision in ("float32", "bfloat16"):
            model = build_model("tgn", EVENTS, sizes | {"dropout": 0.0}, seed=0)
            trainer = Trainer(model, EVENTS, FitConfig.of({"batch_size": 100, "precision": precision}))
            trainer.train_next_batch()
            trainer.train_next_batch()
            losses.append(trainer.loss / 200)
        assert losses[0] == pytest.approx(losses[1], abs=0.02)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA device")
@pytest.mark.parametrize("kind", KINDS)
def test_cuda_agrees_within_a_thousandth(kind: str) -> None:
    plain, moved = trainer_of(kind), trainer_of(kind, device="cuda")
    for trainer in (plain, moved):
        trainer.run_epoch()
    assert moved.model.memory.memory.device.type == "cuda"
    assert moved.history[0].loss == pytest.approx(plain.history[0].loss, abs=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_everything_of_a_model_follows_it_to_another_device(kind: str) -> None:
    model = build_model(kind, EVENTS).to("meta")  # a device without data, but one that is always there
    assert {value.device.type for value in model.state_dict().values()} == {"meta"}
    held = list(vars(model.index).values()) if model.index is not None else []
    assert {value.device.type for value in held if isinstance(value, torch.Tensor)} <= {"meta"}
    assert model._t.device.type == "meta"


def test_a_device_that_is_not_there_is_said() -> None:
    with pytest.raises(OptionError, match="device 'cuda:99' cannot be used here"):
        usable_device("cuda:99")
    with pytest.raises(OptionError, match="device 'gpu' cannot be used here"):
        usable_device("gpu")


def test_casting_a_model_rounds_no_time() -> None:
    t = torch.arange(6, dtype=torch.float64) + 1.7e9 + 0.125
    events = pres.EventStream(torch.tensor([0, 1, 0, 1, 0, 2]), torch.tensor([1, 2, 2, 0, 1, 0]), t)
    model = pres.TGN(events, memory_dim=4, time_dim=4, embedding_dim=4)
    for cast in (model.float, model.double, model.half, model.float):
        cast()
        assert model.memory.last_update.dtype == torch.float64
        assert model.memory.start.item() == 1.7e9 + 0.125
