"""The folder of a run: what is in it, that it is never written over, and opening it again."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

import pres
from pres.errors import Notice, OptionError, SourceNotFoundError, StorageError, UnreadableSourceError
from pres.sampling import NegativeSampler
from pres.storage import read_json, write_json
from pres.training.checkpoint import TrainingState, save_tensors
from pres.training.config import TrainConfig, read_config
from pres.training.folder import RunFolder
from pres.training.opened import open_run
from tests.models.conftest import KINDS
from tests.training.runs import EVENTS, made, trained

FILES = [
    ".lock",
    "best.safetensors",
    "config.json",
    "environment.json",
    "events.json",
    "last.safetensors",
    "learning.png",
    "metrics.parquet",
    "run.json",
]


def test_the_folder_holds_everything_about_the_run(tmp_path: Path) -> None:
    run = trained(tmp_path / "a")
    before = ["best-previous.safetensors", "last-previous.safetensors"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == sorted([*FILES, *before])
    assert (tmp_path / "a" / "learning.png").read_bytes().startswith(b"\x89PNG")
    metrics = pl.read_parquet(tmp_path / "a" / "metrics.parquet")
    assert metrics["epoch"].to_list() == [1, 2]
    assert metrics["val_ap"].to_list() == [epoch.val.ap for epoch in run.history]
    assert metrics["loss"].to_list() == [epoch.loss for epoch in run.history]
    environment = json.loads((tmp_path / "a" / "environment.json").read_text())
    assert environment["torch"] == torch.__version__ and environment["device"] == "cpu"
    config = TrainConfig.of(read_config(tmp_path / "a" / "config.json"))
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
    with pytest.raises(OptionError, match="holds other events or ids than the 300"):
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


def test_tensorboard_gets_every_epoch(tmp_path: Path) -> None:
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    run = trained(tmp_path / "a", tensorboard=True)
    found = accumulator.EventAccumulator(str(tmp_path / "a" / "tensorboard")).Reload()
    values = [(event.step, event.value) for event in found.Scalars("val/ap")]
    assert values == [(e.epoch, pytest.approx(e.val.ap, abs=1e-6)) for e in run.history]
    with pytest.raises(OptionError, match="needs a folder"):
        pres.fit(made(), EVENTS, tensorboard=True)


@pytest.mark.parametrize(
    ("name", "change", "says"),
    [
        ("config.json", {"lr": None}, "lr: field required"),
        ("config.json", {"batch_size": "100"}, "batch_size: input should be a valid integer"),
        ("config.json", {"model_options": [1]}, "model_options: input should be"),
        ("events.json", {"fingerprint": None}, "fingerprint: field required"),
        ("events.json", {"origin": {"source": 1, "options": {}}}, r"origin\.source: input should be"),
        ("run.json", {"val": {"ap": 1.0}}, r"val\.auc: field required"),
        (
            "run.json",
            {"history": []},
            "history: list should have at least 1 item",
        ),
        ("run.json", {"best_epoch": None}, "best_epoch: field required"),
    ],
)
def test_what_a_file_lacks_is_one_line(name: str, change: dict[str, Any], says: str, tmp_path: Path) -> None:
    trained(tmp_path / "a", epochs=1)
    path = tmp_path / "a" / name
    found = read_json(path) | change
    write_json(path, {key: value for key, value in found.items() if value is not None or key not in change})
    read: dict[str, Callable[[RunFolder], object]] = {
        "config.json": RunFolder.config, "events.json": RunFolder.events, "run.json": RunFolder.run
    }  # fmt: skip
    with pytest.raises(UnreadableSourceError, match=rf"{name} is damaged: ({says})"):
        read[name](RunFolder(tmp_path / "a"))


def test_a_state_that_lacks_something_is_one_line(tmp_path: Path) -> None:
    for about in ({}, {"epoch": "1", "batch": 0, "sums": {}, "seconds": 0.0, "history": [], "best": None}):
        save_tensors(tmp_path / "a", {"random.cpu": torch.zeros(0)}, about)
        with pytest.raises(UnreadableSourceError, match=r"holds no training state: .*epoch"):
            TrainingState.load(tmp_path / "a")


def test_settings_of_a_run_that_were_edited_say_how_they_are_used(tmp_path: Path) -> None:
    trained(tmp_path / "a", epochs=1)
    path = tmp_path / "a" / "config.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    with pytest.raises(UnreadableSourceError, match="If it was edited, remove its line sha256"):
        read_config(path)
    edited = json.loads(path.read_text())
    del edited["sha256"]
    path.write_text(json.dumps(edited))
    assert read_config(path)["seed"] == 1


def test_the_remains_of_a_killed_start_do_not_hinder_the_next(tmp_path: Path) -> None:
    stale = tmp_path / f".a-{'0' * 16}"
    stale.mkdir()
    (stale / "config.json").write_text("{")
    trained(tmp_path / "a", epochs=1)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
