"""The folder of a run: what is in it, that it is never written over, and going on after any stop."""

import errno
import json
import os
import signal
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

import pres
from pres.errors import (
    DivergedError,
    Notice,
    OptionError,
    SourceNotFoundError,
    StorageError,
    UnreadableSourceError,
)
from pres.models import MDGNN
from pres.models.build import build_model
from pres.sampling import NegativeSampler
from pres.training import EpochResult, FitConfig, TrainConfig, Trainer, open_run
from pres.training.folder import RunFolder
from tests.models.conftest import KINDS

EVENTS = pres.load("synthetic", num_events=1_500)
FILES = [
    "best.safetensors",
    "config.json",
    "environment.json",
    "events.json",
    "last.safetensors",
    "learning.png",
    "metrics.parquet",
    "run.json",
]


def made(kind: str = "jodie") -> MDGNN:
    return build_model(kind, EVENTS, {"memory_dim": 16, "time_dim": 8})


def trained(out: Path, kind: str = "jodie", **options: Any) -> pres.Run:
    settings: dict[str, Any] = {"epochs": 2, "batch_size": 100, "out": out}
    return pres.fit(made(kind), EVENTS, **settings | options)


def test_the_folder_holds_everything_about_the_run(tmp_path: Path) -> None:
    run = trained(tmp_path / "a")
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == FILES
    assert (tmp_path / "a" / "learning.png").read_bytes().startswith(b"\x89PNG")
    metrics = pl.read_parquet(tmp_path / "a" / "metrics.parquet")
    assert metrics["epoch"].to_list() == [1, 2]
    assert metrics["val_ap"].to_list() == [epoch.val.ap for epoch in run.history]
    assert metrics["loss"].to_list() == [epoch.loss for epoch in run.history]
    environment = json.loads((tmp_path / "a" / "environment.json").read_text())
    assert environment["torch"] == torch.__version__ and environment["device"] == "cpu"
    config = TrainConfig.of(json.loads((tmp_path / "a" / "config.json").read_text()))
    assert (config.source, config.reading, config.model) == ("synthetic", {"num_events": 1500}, "jodie")
    assert config.model_options["memory_dim"] == 16
    assert config.batch_size == 100


def test_a_run_saved_afterwards_is_the_run_that_was_kept(tmp_path: Path) -> None:
    run = trained(tmp_path / "a")
    run.save(tmp_path / "b")
    assert sorted(path.name for path in (tmp_path / "b").iterdir()) == FILES
    for name in ("config.json", "environment.json", "run.json"):
        assert (tmp_path / "a" / name).read_text() == (tmp_path / "b" / name).read_text()
    one, two = pres.load_run(tmp_path / "a"), pres.load_run(tmp_path / "b")
    assert one.to_dict() == two.to_dict() == run.to_dict()
    assert all(torch.equal(value, two.state[name]) for name, value in one.state.items())
    assert all(torch.equal(value, two.last.model[name]) for name, value in one.last.model.items())


@pytest.mark.parametrize("kind", KINDS)
def test_an_opened_run_repeats_its_test(kind: str, tmp_path: Path) -> None:
    run = trained(tmp_path / "a", kind)
    opened = open_run(tmp_path / "a")
    assert type(opened.model).__name__.lower() == kind
    assert pres.evaluate(opened.model, opened.events.split().test, NegativeSampler(opened.events)) == run.test


def test_a_file_that_changed_since_is_refused(tmp_path: Path) -> None:
    lines = [f"u{i % 7},v{i % 5},{i}" for i in range(300)]
    path = tmp_path / "clicks.csv"
    path.write_text("user,item,ts\n" + "\n".join(lines) + "\n")
    events = pres.read(path, src="user", dst="item", t="ts", bipartite=True)
    pres.fit(pres.JODIE(events, memory_dim=8), events, batch_size=2, eval_batch_size=2, epochs=1,
             out=tmp_path / "a")  # fmt: skip
    again = open_run(tmp_path / "a").events
    assert again.info.origin == events.info.origin and torch.equal(again.src, events.src)
    path.write_text("user,item,ts\n" + "\n".join([*lines[:-1], "u0,v0,299"]) + "\n")
    with pytest.raises(OptionError, match="holds other events or ids than when"):
        open_run(tmp_path / "a")
    path.write_text("user,item,ts\n" + "\n".join([*lines, "u0,v0,300"]) + "\n")
    with pytest.warns(Notice, match="its last 1 events came after"):
        assert len(open_run(tmp_path / "a").events) == 300
    path.unlink()
    with pytest.raises(SourceNotFoundError, match="are gone"):
        open_run(tmp_path / "a")


def test_events_made_in_memory_and_models_of_ones_own_are_said(tmp_path: Path) -> None:
    events = pres.EventStream(EVENTS.src, EVENTS.dst, EVENTS.t, num_src=EVENTS.num_src)
    pres.fit(pres.JODIE(events), events, batch_size=100, epochs=1, out=tmp_path / "a")
    with pytest.raises(OptionError, match="were made in memory"):
        open_run(tmp_path / "a")
    model = made()
    model.options = None
    pres.fit(model, EVENTS, batch_size=100, epochs=1, out=tmp_path / "b")
    with pytest.raises(OptionError, match="a model of your own"):
        open_run(tmp_path / "b")


def test_a_folder_is_never_written_over(tmp_path: Path) -> None:
    trained(tmp_path / "a", epochs=1)
    before = {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()}
    with pytest.raises(StorageError, match="holds a run already"):
        trained(tmp_path / "a")
    assert {path.name: path.read_bytes() for path in (tmp_path / "a").iterdir()} == before
    (tmp_path / "a" / "run.json").unlink()
    with pytest.raises(StorageError, match=r"not finished\. Go on with 'pres train --resume"):
        trained(tmp_path / "a")
    with pytest.raises(SourceNotFoundError, match="is not finished"):
        pres.load_run(tmp_path / "a")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "learning.png").write_text("a picture of my own")
    with pytest.raises(StorageError, match="holds other files"):
        trained(tmp_path / "mine")
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="is not a folder"):
        trained(tmp_path / "file")


def test_a_damaged_run_is_said(tmp_path: Path) -> None:
    with pytest.raises(SourceNotFoundError, match=r"no saved run: there is no run\.json"):
        pres.load_run(tmp_path)
    with pytest.raises(SourceNotFoundError, match=r"there is no config\.json"):
        RunFolder(tmp_path).config()
    trained(tmp_path / "a", epochs=1)
    text = (tmp_path / "a" / "run.json").read_text()
    for damage in (text[:50], "[]", "{}"):
        (tmp_path / "a" / "run.json").write_text(damage)
        with pytest.raises(UnreadableSourceError, match="is damaged"):
            pres.load_run(tmp_path / "a")
    (tmp_path / "a" / "run.json").write_text(text)
    (tmp_path / "a" / "best.safetensors").write_bytes(b"broken")
    with pytest.raises(UnreadableSourceError, match="is damaged"):
        pres.load_run(tmp_path / "a")


def signalling(monkeypatch: pytest.MonkeyPatch, batch: int, times: int) -> None:
    """Send this process so many SIGINTs while it absorbs a batch; an epoch has 11, and 3 of validation."""
    absorbed, absorb = 0, MDGNN.absorb

    def absorb_and_signal(self: MDGNN, *arguments: Any) -> None:
        nonlocal absorbed
        absorbed += 1
        if absorbed == batch:
            for _ in range(times):
                os.kill(os.getpid(), signal.SIGINT)
        absorb(self, *arguments)

    monkeypatch.setattr(MDGNN, "absorb", absorb_and_signal)


def results(run: pres.Run) -> list[Any]:
    return [run.test, *((epoch.loss, epoch.val) for epoch in run.history)]


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


def test_the_learning_rate_falls_along_a_cosine_unless_told_otherwise(tmp_path: Path) -> None:
    for decay, expected in (("cosine", [1.0, 0.853553, 0.5, 0.146447]), ("none", [1.0] * 4)):
        config = FitConfig.of({"batch_size": 525, "epochs": 2, "lr": 1.0, "lr_decay": decay})
        trainer = Trainer(made(), EVENTS, config)
        found = []
        for epoch in (1, 2):
            for batch in (0, 1):
                trainer.epoch, trainer.batch = epoch, batch
                found.append(trainer.learning_rate())
        assert len(trainer.batches) == 2 and found == pytest.approx(expected, abs=1e-6)
    run = trained(tmp_path / "a", epochs=1, lr=1.0, lr_decay="cosine")
    assert run.config["lr_decay"] == "cosine"


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
        assert all(value.isfinite().all() for value in state.values() if value.is_floating_point())


def test_a_gradient_that_is_not_a_number_moves_no_weight_and_keeps_the_last_epoch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, backward, steps = made(), torch.autograd.backward, 0

    def spoiling(loss: torch.Tensor) -> None:
        nonlocal steps
        steps += 1
        backward(loss)
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
        ({"lr": 0.5}, "was begun with lr=0.001"),
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
    assert not [path for path in (tmp_path / "a").iterdir() if path.name.startswith(".")]
    monkeypatch.undo()
    if name != "last.safetensors":  # without which there is nothing to go on from
        assert results(trained(tmp_path / "a", resume=True)) == results(trained(tmp_path / "b"))


def test_tensorboard_gets_every_epoch(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = trained(tmp_path / "a", tensorboard=True)
    found = accumulator.EventAccumulator(str(tmp_path / "a" / "tensorboard")).Reload()
    values = [(event.step, event.value) for event in found.Scalars("val/ap")]
    assert values == [(e.epoch, pytest.approx(e.val.ap, abs=1e-6)) for e in run.history]
    with pytest.raises(OptionError, match="needs a folder"):
        pres.fit(made(), EVENTS, tensorboard=True)
