"""Going on after any stop: an interrupt, a loss that is no number, a full disk."""

import errno
import os
import re
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
import torch

import pres
from pres.errors import DivergedError, Notice, OptionError, SourceNotFoundError, StorageError
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.training.checkpoint import EpochResult, TrainingState
from pres.training.folder import RunFolder
from pres.training.trainer import Trainer
from tests.models.conftest import KINDS
from tests.training.runs import EVENTS, made, results, trained


def signalling(monkeypatch: pytest.MonkeyPatch, batch: int, times: int) -> None:
    """Send this process so many SIGINTs while it absorbs a batch; an epoch has 11, and 3 of validation."""
    absorbed, absorb = 0, MDGNN.update_state

    def absorb_and_signal(self: MDGNN, *arguments: Any, **further: Any) -> None:
        nonlocal absorbed
        absorbed += 1
        if absorbed == batch:
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
        absorb(self, *arguments, **further)

    monkeypatch.setattr(MDGNN, "update_state", absorb_and_signal)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("batch", [4, 11, 18])
def test_an_interrupted_run_goes_on_to_the_same_result(
    kind: str, batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(tmp_path / "whole", kind)
    with monkeypatch.context() as patch:
        signalling(patch, batch, times=1)
        with pytest.raises(KeyboardInterrupt, match=r"stopped at epoch \d, .* keeps the state before it"):
            trained(tmp_path / "a", kind)
    assert not (tmp_path / "a" / "run.json").exists()
    resumed = trained(tmp_path / "a", kind, resume=True)
    assert results(resumed) == results(whole)
    assert all(torch.equal(value, whole.state[name]) for name, value in resumed.state.items())
    assert all(torch.equal(value, whole.last.model[name]) for name, value in resumed.last.model.items())
    assert pres.load_run(tmp_path / "a").to_dict() == resumed.to_dict()


@pytest.mark.parametrize("batch", [5, 13, 18])
def test_a_second_interrupt_stops_at_once_and_keeps_the_last_whole_epoch(
    batch: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(tmp_path / "whole")
    with monkeypatch.context() as patch:
        signalling(patch, batch, times=2)
        with pytest.raises(KeyboardInterrupt, match=r"stopped inside epoch \d, .* up to the epoch before"):
            trained(tmp_path / "a")
    assert results(trained(tmp_path / "a", resume=True)) == results(whole)


def test_more_epochs_can_follow_a_finished_run(tmp_path: Path) -> None:
    trained(tmp_path / "a", epochs=1, lr_decay="none")
    more = trained(tmp_path / "a", resume=True, lr_decay="none")
    assert results(more) == results(trained(tmp_path / "b", lr_decay="none"))


def test_a_loss_that_is_not_a_number_keeps_the_last_good_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = made()

    def poison(done: EpochResult) -> None:
        with torch.no_grad():
            model.link.out.bias.fill_(float("nan"))

    with pytest.raises(DivergedError, match=r"events 0 to 99\..* keeps what was done up to the epoch before"):
        pres.fit(model, EVENTS, batch_size=100, epochs=3, out=tmp_path / "a", on_epoch=poison)
    folder = RunFolder(tmp_path / "a")
    assert (folder.last().epoch, folder.last().batch) == (2, 0)
    for state in (folder.best(), folder.last().model, folder.last().optimiser):
        found = [value for name, value in state.items() if not name.endswith("time.limit")]  # there is none
        assert all(value.isfinite().all() for value in found if value.is_floating_point())


def test_a_gradient_that_is_not_a_number_moves_no_weight_and_keeps_the_last_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, backward, steps = made(), torch.autograd.backward, 0

    def spoiling(loss: torch.Tensor, share: torch.Tensor) -> None:
        nonlocal steps
        steps += 1
        backward(loss, share)
        if steps == 49:  # the first step of the second batch of the second epoch
            model.link.out.weight.grad.fill_(float("nan"))  # type: ignore[union-attr]

    monkeypatch.setattr(torch.autograd, "backward", spoiling)
    with pytest.raises(DivergedError, match="a gradient became infinite in the batch of events 100 to 199"):
        pres.fit(model, EVENTS, batch_size=100, step_size=25, epochs=2, out=tmp_path / "a")
    monkeypatch.undo()
    assert all(bool(p.isfinite().all()) for p in model.parameters())
    assert (RunFolder(tmp_path / "a").last().epoch, RunFolder(tmp_path / "a").last().batch) == (2, 0)
    resumed = pres.fit(
        made(), EVENTS, batch_size=100, step_size=25, epochs=2, out=tmp_path / "a", resume=True
    )
    assert results(resumed) == results(trained(tmp_path / "b", step_size=25))


def test_scores_that_are_no_numbers_in_validation_keep_the_last_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def diverged(*arguments: Any, **options: Any) -> None:
        raise DivergedError("the model's scores are not finite numbers.")

    monkeypatch.setattr("pres.training.trainer.evaluate", diverged)
    with pytest.raises(DivergedError, match="up to the epoch before"):
        trained(tmp_path / "a")
    monkeypatch.undo()
    assert results(trained(tmp_path / "a", resume=True)) == results(trained(tmp_path / "b"))


def test_a_run_goes_on_only_with_its_own_events_and_settings(tmp_path: Path) -> None:
    trained(tmp_path / "a", epochs=1)
    kept = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    for options, says in (
        ({"batch_size": 50}, "was begun with batch_size=100, not 50"),
        ({"warmup": 0.5}, "was begun with warmup=0.0"),
        ({"seed": 3}, "was begun with seed=0"),
        ({"kind": "tgn"}, "was begun with model='jodie', not 'tgn'"),
        ({"epochs": 1}, "is finished; give more epochs"),
    ):
        with pytest.raises(OptionError, match=says):
            trained(tmp_path / "a", resume=True, **options)
    other = pres.load("synthetic", num_events=1_500, seed=5)
    with pytest.raises(OptionError, match="not those that the run"):
        pres.fit(build_model("jodie", other), other, batch_size=100, out=tmp_path / "a", resume=True)
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == kept
    with pytest.raises(OptionError, match="give out="):
        pres.fit(made(), EVENTS, resume=True)
    with pytest.raises(SourceNotFoundError, match="holds no run"):
        trained(tmp_path / "typo", resume=True)
    assert not (tmp_path / "typo").exists()


def test_a_finished_run_that_goes_on_has_no_result_until_it_is_finished_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trained(tmp_path / "a", epochs=1)
    with monkeypatch.context() as patch:
        signalling(patch, 3, times=1)
        with pytest.raises(KeyboardInterrupt):
            trained(tmp_path / "a", resume=True)
    with pytest.raises(SourceNotFoundError, match="is not finished"):
        pres.load_run(tmp_path / "a")
    assert RunFolder(tmp_path / "a").config()["epochs"] == 2


def test_a_run_that_stopped_in_its_test_is_finished_by_going_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: Any) -> None:
        raise StorageError("cannot write run.json: no space left on device.")

    monkeypatch.setattr(RunFolder, "finish", full)
    with pytest.raises(StorageError, match="no space left"):
        trained(tmp_path / "a")
    monkeypatch.undo()
    assert results(trained(tmp_path / "a", resume=True)) == results(trained(tmp_path / "b"))
    assert RunFolder(tmp_path / "a").finished


def test_an_interrupt_while_an_epoch_is_written_keeps_the_epoch_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RunFolder, "keep_best", interrupted)
    with pytest.raises(KeyboardInterrupt, match="up to the epoch before"):
        trained(tmp_path / "a")
    monkeypatch.undo()
    assert RunFolder(tmp_path / "a").last().history == ()
    assert results(trained(tmp_path / "a", resume=True)) == results(trained(tmp_path / "b"))


@pytest.mark.parametrize("name", ["metrics.parquet", "best.safetensors", "last.safetensors", "learning.png"])
def test_a_full_disk_is_one_clear_line_and_spoils_nothing(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = Path.replace

    def no_space(self: Path, target: Path) -> Path:
        if Path(target).name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return replace(self, target)

    monkeypatch.setattr(Path, "replace", no_space)
    with pytest.raises(StorageError, match=f"cannot write .*{name}: no space left on device") as error:
        trained(tmp_path / "a")
    assert "\n" not in str(error.value)
    if name == "last.safetensors":  # nothing had begun, and the same command does it all
        assert not list(tmp_path.iterdir())
        monkeypatch.undo()
        assert results(trained(tmp_path / "a")) == results(trained(tmp_path / "b"))
        return
    assert not [path for path in (tmp_path / "a").iterdir() if re.match(r"\.(?!lock)", path.name)]
    monkeypatch.undo()
    assert results(trained(tmp_path / "a", resume=True)) == results(trained(tmp_path / "b"))


@pytest.mark.parametrize("options", [{}, {"step_size": 300}, {"kind": "tgn", "smoothing": pres.PRES()}])
def test_a_kill_inside_an_epoch_costs_what_was_done_since_the_last_checkpoint(
    options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(tmp_path / "whole", **options)
    train_next_batch, batches = Trainer.train_next_batch, 0

    def dying(self: Trainer) -> None:
        nonlocal batches
        batches += 1
        if batches == 16:  # in the second epoch, between two batches of a step of three
            raise RuntimeError("killed")
        train_next_batch(self)

    with monkeypatch.context() as patch:
        patch.setattr(Trainer, "train_next_batch", dying)
        with pytest.raises(RuntimeError, match="killed"):
            trained(tmp_path / "a", checkpoint_minutes=0, **options)
    kept = RunFolder(tmp_path / "a").last()
    assert (kept.epoch, kept.batch) == (2, 4)
    assert bool(kept.gradients) == ("step_size" in options)
    resumed = trained(tmp_path / "a", resume=True, **options)
    assert results(resumed) == results(whole)
    assert all(torch.equal(value, whole.last.model[name]) for name, value in resumed.last.model.items())


def test_checkpoints_are_by_the_clock_and_only_with_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[tuple[int, int]] = []
    keep_last, now = RunFolder.keep_last, 0.0

    def keep(self: RunFolder, state: TrainingState) -> None:
        kept.append((state.epoch, state.batch))
        keep_last(self, state)

    def minute() -> float:  # every look at the clock is a minute after the one before
        nonlocal now
        now += 60
        return now

    monkeypatch.setattr(RunFolder, "keep_last", keep)
    monkeypatch.setattr(sys.modules["pres.training.fit"], "time", SimpleNamespace(monotonic=minute))
    trained(tmp_path / "a", epochs=1, checkpoint_minutes=4)
    inside = [batch for epoch, batch in kept if epoch == 1 and batch > 0]
    assert inside == [4, 8] and kept[-1] == (2, 0)
    kept.clear()
    pres.fit(made(), EVENTS, batch_size=100, epochs=1, checkpoint_minutes=0)
    assert kept == []
    for wrong in (-1, float("nan")):
        with pytest.raises(OptionError, match="checkpoint_minutes="):
            trained(tmp_path / "b", checkpoint_minutes=wrong)


def test_a_run_may_go_on_with_another_lr_and_its_history_says_so(tmp_path: Path) -> None:
    trained(tmp_path / "a", epochs=1)
    with pytest.warns(Notice, match=r"lr is 0\.0005 from epoch 2, batch 1 on, and was 0\.001"):
        run = trained(tmp_path / "a", resume=True, lr=5e-4)
    assert [done.lr for done in run.history] == [1e-3, 5e-4]
    assert pl.read_parquet(tmp_path / "a" / "metrics.parquet")["lr"].to_list() == [1e-3, 5e-4]
    assert pres.load_run(tmp_path / "a").config["lr"] == 5e-4
    assert results(run) != results(trained(tmp_path / "b"))


def test_a_run_has_one_writer(tmp_path: Path) -> None:
    def second(done: EpochResult) -> None:
        before = {path: path.read_bytes() for path in (tmp_path / "a").iterdir()}
        with pytest.raises(StorageError, match=rf"a is being written by process {os.getpid()} on "):
            trained(tmp_path / "a", resume=True)
        with pytest.raises(StorageError, match="was not finished"):
            trained(tmp_path / "a")
        assert {path: path.read_bytes() for path in (tmp_path / "a").iterdir()} == before
        assert RunFolder(tmp_path / "a").best() and RunFolder(tmp_path / "a").config()  # who reads needs none

    trained(tmp_path / "a", epochs=1, on_epoch=second)
    trained(tmp_path / "a", resume=True)
