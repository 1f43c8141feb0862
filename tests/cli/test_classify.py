"""`pres classify`: from a saved run to a table or JSON."""

import json
from pathlib import Path

import pytest
import torch

import pres
from pres.cli.classify import as_tables, classify
from pres.cli.console import stdout
from pres.errors import LabelError, SourceNotFoundError, StorageError
from pres.training.opened import open_run
from tests.cli.process import run as pres_command


def trained(folder: Path, labelled: bool) -> Path:
    log = folder / "log.csv"
    lines = [f"user{i % 7},item{i * i % 41},{10 * i},{int(i % 11 == 3)}" for i in range(300)]
    log.write_text("\n".join(["user,item,ts,banned", *lines]))
    label = "banned" if labelled else None
    events = pres.read(log, src="user", dst="item", t="ts", label=label, x=[], bipartite=True)
    torch.manual_seed(0)
    model = pres.JODIE(events, memory_dim=8, time_dim=4)
    return pres.fit(model, events, batch_size=50, epochs=1).save(folder / "run")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return trained(tmp_path_factory.mktemp("labelled"), labelled=True)


def test_json_goes_to_stdout_and_to_a_file_and_is_what_python_gives(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "found.json"
    settings = ["--epochs", "3", "--lr", "0.01", "--seed", "2", "--batch-size", "20", "--out", str(out)]
    done = pres_command("classify", run, *settings, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    opened = open_run(run)
    expected = pres.classify(opened.model, opened.events, epochs=3, lr=0.01, seed=2, batch_size=20)
    assert found == {"run": str(run)} | json.loads(json.dumps(expected.to_dict()))
    assert json.loads(out.read_text()) == found
    assert done.stderr.strip().endswith("found.json")


def test_without_json_it_is_a_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    classify(run, epochs=2)
    shown = capsys.readouterr().out
    assert "JODIE on log: binary labels of the source" in shown
    for word in ("training", "validation", "test", "label 1", "ROC-AUC", "AP", "weights"):
        assert word in shown


def test_many_labels_make_a_table_of_the_same_width(capsys: pytest.CaptureFixture[str]) -> None:
    base = pres.load("synthetic", num_events=1_500)
    many = torch.arange(1_500) % 8
    events = pres.EventStream(base.src, base.dst, base.t, label=many, num_nodes=base.num_nodes)
    found = pres.classify(pres.JODIE(events, memory_dim=4, time_dim=4), events, epochs=1)
    stdout.print(as_tables(found))
    shown = capsys.readouterr().out
    assert "multi-class" in shown and "classes" in shown and "for label 4, …" in shown
    assert "each label against all others" in shown


def test_a_run_without_labels_a_missing_run_and_a_file_that_exists_are_said(
    run: Path, tmp_path: Path
) -> None:
    with pytest.raises(LabelError, match="'log' has no labels to learn"):
        classify(trained(tmp_path, labelled=False))
    with pytest.raises(SourceNotFoundError, match="holds no saved run"):
        classify(tmp_path / "nowhere")
    with pytest.raises(StorageError, match="exists already"):
        classify(run, out=run / "run.json")


def test_help_has_an_example() -> None:
    done = pres_command("classify", "--help")
    assert done.returncode == 0 and "Example: pres classify" in done.stdout
