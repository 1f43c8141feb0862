"""One state: saved in the middle of an epoch, restored in a new process, it goes on bit for bit."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.functional import softplus

import pres
from pres.data.stream import EventStream
from pres.errors import OptionError, SourceNotFoundError, UnreadableSourceError
from pres.models import MDGNN, Subgraph
from pres.models.registry import build_model
from pres.training.checkpoint import TrainingState
from pres.training.config import FitConfig
from pres.training.step import Prepared, link_loss
from pres.training.trainer import Trainer
from tests.models.conftest import KINDS
from tests.waiting import PATIENCE

REPOSITORY = Path(__file__).parent.parent.parent
EVENTS = pres.load("synthetic", num_events=1_500)
SIZES = {"memory_dim": 16, "time_dim": 8}


def trainer_of(kind: str, **options: object) -> Trainer:
    config = FitConfig.of({"batch_size": 100, "epochs": 2} | options)
    return Trainer(build_model(kind, EVENTS, SIZES, seed=0), EVENTS, config)


def train_to_the_end(trainer: Trainer) -> Trainer:
    while not trainer.finished:
        trainer.run_epoch()
    return trainer


GO_ON = """
import sys
import torch
from pres.training import TrainingState
from tests.training.test_trainer import train_to_the_end, trainer_of

torch.rand(7)  # a new process has drawn other numbers
trainer = trainer_of(sys.argv[1])
trainer.restore(TrainingState.load(sys.argv[2]))
train_to_the_end(trainer).state().save(sys.argv[3])
"""


@pytest.mark.parametrize("kind", KINDS)
def test_a_state_saved_mid_epoch_goes_on_bit_for_bit_in_a_new_process(kind: str, tmp_path: Path) -> None:
    first = trainer_of(kind)
    first.run_epoch()
    for _ in range(4):
        first.train_next_batch()
    middle = first.state()
    assert (middle.epoch, middle.batch, len(middle.history)) == (2, 4, 1)
    middle.save(tmp_path / "middle.safetensors")
    expected = train_to_the_end(first).state()

    files = [str(tmp_path / name) for name in ("middle.safetensors", "end.safetensors")]
    done = subprocess.run(
        [sys.executable, "-c", GO_ON, kind, *files],
        capture_output=True,
        text=True,
        cwd=REPOSITORY,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = TrainingState.load(files[1])
    for part in ("model", "optimiser", "random"):
        ours, theirs = getattr(expected, part), getattr(found, part)
        assert ours.keys() == theirs.keys() and ours
        assert all(torch.equal(value, theirs[name]) for name, value in ours.items()), part
    assert [(e.epoch, e.loss, e.val) for e in found.history] == [
        (e.epoch, e.loss, e.val) for e in expected.history
    ]


def test_a_state_is_a_copy_that_training_does_not_touch() -> None:
    trainer = trainer_of("jodie")
    trainer.train_next_batch()
    state = trainer.state()
    kept = {name: value.clone() for name, value in (state.model | state.optimiser).items()}
    trainer.train_next_batch()
    assert all(torch.equal(value, kept[name]) for name, value in (state.model | state.optimiser).items())
    assert not torch.equal(trainer.model.memory.memory, state.model["memory.memory"])


def test_every_part_of_the_state_matters_to_what_comes_next() -> None:
    def after(part: str | None) -> float:
        """The loss two batches on, from a state of which one part was lost."""
        trainer = trainer_of("tgn", lr=0.01)
        for _ in range(3):
            trainer.train_next_batch()
        fields = dict(vars(trainer.state()))
        if part == "random":
            fields["random"] = {"cpu": torch.Generator().manual_seed(99).get_state()}
        elif part == "optimiser":
            fields["optimiser"] = {
                name: value if name.endswith("step") else torch.zeros_like(value)
                for name, value in fields["optimiser"].items()
            }
        elif part is not None:
            lost = {name: torch.zeros_like(v) for name, v in fields["model"].items() if name.startswith(part)}
            assert lost
            fields["model"] = fields["model"] | lost
        other = trainer_of("tgn", lr=0.01)
        other.restore(TrainingState(**fields))
        for _ in range(2):
            other.train_next_batch()
        return other.loss

    straight = trainer_of("tgn", lr=0.01)
    for _ in range(5):
        straight.train_next_batch()
    assert after(None) == straight.loss
    for part in ("optimiser", "random", "memory.memory", "memory.mail", "link", "updater"):
        assert after(part) != straight.loss, part


@pytest.mark.parametrize("batch_size", [30, 100])
def test_batches_prepared_one_after_another_are_those_prepared_alone(
    batch_size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def drawn() -> list[torch.Tensor]:
        trainer = trainer_of("jodie", batch_size=batch_size, negative_window=20)
        found = [trainer.prepare((2, number)) for number in range(len(trainer.batches))]
        return [prepared.negatives for prepared in found if isinstance(prepared, Prepared)]

    together = drawn()  # the last batch is shorter
    monkeypatch.setattr("pres.training.trainer.AT_ONCE", 1)
    for one, alone in zip(together, drawn(), strict=True):
        assert torch.equal(one, alone)


def test_a_state_can_be_gone_back_to_again_and_again() -> None:
    trainer = trainer_of("tgn")
    for _ in range(3):
        trainer.train_next_batch()
    state, losses = trainer.state(), []
    for _ in range(3):
        trainer.restore(state)
        trainer.train_next_batch()
        trainer.train_next_batch()
        losses.append(trainer.loss)
    assert losses[0] == losses[1] == losses[2]


def test_the_state_of_another_model_is_refused() -> None:
    state = trainer_of("jodie").state()
    with pytest.raises(OptionError, match="of another model or stream than this TGN: "):
        trainer_of("tgn").restore(state)
    other = Trainer(build_model("jodie", EVENTS, {"memory_dim": 8}), EVENTS, FitConfig.of({}))
    with pytest.raises(OptionError, match="Make the model with the run's settings"):
        other.restore(state)


def test_a_state_of_another_batch_size_is_refused() -> None:
    trainer = trainer_of("jodie")
    for _ in range(5):
        trainer.train_next_batch()
    with pytest.raises(
        OptionError, match=r"stands at event 500 after 5 batches .* another batch_size than 200"
    ):
        trainer_of("jodie", batch_size=200).restore(trainer.state())


def test_a_model_of_another_stream_is_refused() -> None:
    with pytest.raises(OptionError, match="Give the whole stream"):
        Trainer(build_model("jodie", EVENTS), EVENTS[:900], FitConfig.of({}))


def test_a_missing_or_damaged_state_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match="no such file"):
        TrainingState.load(tmp_path / "none.safetensors")
    (tmp_path / "bad.safetensors").write_bytes(b"broken")
    with pytest.raises(UnreadableSourceError, match="is damaged"):
        TrainingState.load(tmp_path / "bad.safetensors")
    run = pres.fit(
        build_model("jodie", EVENTS, SIZES), EVENTS, batch_size=100, epochs=1, out=tmp_path / "run"
    )
    assert run.history
    with pytest.raises(UnreadableSourceError, match="holds no training state"):
        TrainingState.load(tmp_path / "run" / "best.safetensors")


def test_the_memory_starts_every_epoch_empty_and_validation_continues_it() -> None:
    trainer = trainer_of("jodie")
    trainer.run_epoch()
    split = EVENTS.split()
    assert int(trainer.model.memory.position) == len(split.train) + len(split.val)
    trainer.train_next_batch()
    assert int(trainer.model.memory.position) == 100


def test_uniform_neighbours_differ_from_epoch_to_epoch_but_not_between_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def seeds() -> list[int]:
        found: list[int] = []
        model = build_model("tgn", EVENTS, SIZES | {"strategy": "uniform", "neighbours": 2})
        look = type(model).sample

        def looking(self: MDGNN, batch: EventStream, negatives: torch.Tensor, **further: Any) -> Subgraph:
            if model.training:
                found.append(further["seed"])
            return look(self, batch, negatives, **further)

        with monkeypatch.context() as patch:
            patch.setattr(type(model), "sample", looking)
            train_to_the_end(Trainer(model, EVENTS, FitConfig.of({"batch_size": 350, "epochs": 2})))
        return found

    first = seeds()
    assert len(first) == 6 and len(set(first)) == 2
    assert seeds() == first


def test_the_learning_rate_falls_along_a_cosine_unless_told_otherwise() -> None:
    for decay, expected in (("cosine", [1.0, 0.853553, 0.5, 0.146447]), ("none", [1.0] * 4)):
        config = FitConfig.of({"batch_size": 525, "epochs": 2, "lr": 1.0, "lr_decay": decay})
        trainer = Trainer(build_model("jodie", EVENTS, SIZES), EVENTS, config)
        found = []
        for epoch in (1, 2):
            for batch in (0, 1):
                trainer.epoch, trainer.batch = epoch, batch
                found.append(trainer.learning_rate())
        assert len(trainer.batches) == 2 and found == pytest.approx(expected, abs=1e-6)
        trainer.epoch, trainer.batch = 1, 0
        trainer.train_next_batch()
        trainer.train_next_batch()
        assert trainer.optimiser.param_groups[0]["lr"] == pytest.approx(expected[1])


@pytest.mark.parametrize("count", [1, 3])
def test_the_loss_is_the_mean_over_events_plus_that_over_negatives(count: int) -> None:
    logits = torch.randn(7, 1 + count, dtype=torch.float64, requires_grad=True)
    plain = softplus(-logits[:, 0]).mean() + softplus(logits[:, 1:]).mean()
    assert torch.allclose(link_loss(logits), plain)
    of_loss, of_plain = (torch.autograd.grad(loss, logits)[0] for loss in (link_loss(logits), plain))
    assert torch.allclose(of_loss, of_plain) and of_plain.abs().min() > 0
