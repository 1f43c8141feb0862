"""`pres classify`: from a saved run to a table or JSON."""

import json
from pathlib import Path

import polars as pl
import pytest
import torch

import pres
from pres.cli.classify import as_tables, classify, scored
from pres.cli.console import stdout
from pres.data.info import StreamInfo
from pres.errors import LabelError, OptionError, SourceNotFoundError, StorageError
from pres.training.checkpoint import load_tensors
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


def test_json_and_a_table_of_scores_are_what_python_gives(run: Path, tmp_path: Path) -> None:
    out, decoder = tmp_path / "found.csv", tmp_path / "decoder.safetensors"
    files = ["--out", str(out), "--decoder", str(decoder)]
    settings = ["--epochs", "3", "--lr", "0.01", "--seed", "2", "--batch-size", "20", *files]
    done = pres_command("classify", run, *settings, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    opened = open_run(run)
    expected = pres.classify(opened.model, opened.events, epochs=3, lr=0.01, seed=2, batch_size=20)
    assert found == {"run": str(run)} | json.loads(json.dumps(expected.to_dict()))
    assert f"scores: {out}" in done.stderr and f"decoder: {decoder}" in done.stderr
    log, table = pl.read_csv(run.parent / "log.csv"), pl.read_csv(out)
    assert table.columns == ["src", "dst", "t", "part", "label", "score"]
    for name, original in (("src", "user"), ("dst", "item"), ("t", "ts"), ("label", "banned")):
        assert table[name].to_list() == log[original].to_list()
    assert table["part"].to_list() == ["train"] * 210 + ["val"] * 45 + ["test"] * 45
    assert table["score"].to_list() == pytest.approx(expected.scores[:, 1].tolist(), abs=1e-6)
    weights, about, _ = load_tensors(decoder)
    assert about == {"classes": [0, 1], "with_features": False}
    kept = pres.nn.NodeDecoder(expected.decoder.mean.shape[0])
    kept.load_state_dict(weights)
    assert torch.equal(kept.out.bias, expected.decoder.out.bias)


def test_a_table_has_a_score_for_each_of_many_labels_and_dates_as_dates() -> None:
    t, info = torch.arange(60) * 86_400, StreamInfo(time_unit="s", dates=True)
    events = pres.EventStream(torch.arange(60) % 5, 5 + torch.arange(60) % 4, t, label=torch.arange(60) % 3,
                              num_nodes=9, info=info)  # fmt: skip
    found = pres.classify(pres.JODIE(events, memory_dim=4, time_dim=4), events, epochs=1)
    table = scored(found, events)
    assert table.columns[-3:] == ["score_0", "score_1", "score_2"]
    assert table["t"][1] == "1970-01-02 00:00:00"
    assert table.select(pl.sum_horizontal(table.columns[-3:])).to_series().to_list() == pytest.approx(
        [1] * 60
    )


def test_without_json_it_is_a_table(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    classify(run, epochs=2)
    shown = capsys.readouterr().out
    assert "JODIE on log: binary labels of the source" in shown
    for word in ("training", "validation", "test", "label 1", "ROC-AUC", "AP", "baseline AP", "weights"):
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
    with pytest.raises(SourceNotFoundError, match="holds no run"):
        classify(tmp_path / "nowhere")
    taken = tmp_path / "scores.csv"
    taken.write_text("mine")
    with pytest.raises(StorageError, match="exists already"):
        classify(run, out=taken)
    with pytest.raises(OptionError, match="a table is written as"):
        classify(run, out=run / "run.json")
    classify(run, epochs=1, out=taken, overwrite=True)
    assert pl.read_csv(taken).height == 300


def test_help_has_an_example() -> None:
    done = pres_command("classify", "--help")
    assert done.returncode == 0 and "Example: pres classify" in done.stdout
