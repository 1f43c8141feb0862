import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pres
from pres.cli.commands import app
from tests.cli.process import interrupted, run

SMALL = ["-o", "memory_dim=16", "-o", "time_dim=8", "--batch-size", "100"]


@pytest.fixture
def synthetic(tmp_path: Path) -> Path:
    """Settings for a small stream."""
    path = tmp_path / "run.toml"
    path.write_text(
        'source = "synthetic"\nmodel = "jodie"\nbatch_size = 100\nepochs = 2\n'
        "[reading]\nnum_events = 1500\n[model_options]\nmemory_dim = 16\n"
    )
    return path


def test_train_reports_validation_and_test_and_saves_the_run(tmp_path: Path) -> None:
    log, out = tmp_path / "log.csv", tmp_path / "run"
    lines = [f"user{i % 7},item{i * i % 41},{10 * i}" for i in range(300)]
    log.write_text("\n".join(["user,item,ts", *lines]))
    columns = ["--src", "user", "--dst", "item", "--time", "ts", "--bipartite"]
    settings = ["--model", "jodie", "--batch-size", "50", "--epochs", "2", "--out", str(out)]
    done = run("train", log, *columns, *settings, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    promised = {"dataset", "variant", "model", "batch_size", "step_size", "seed", "epochs", "val", "test"}
    assert promised | {"seconds_per_epoch", "events_per_second", "run"} <= set(found)
    assert 0 < found["val"]["ap"] <= 1 and 0 < found["test"]["auc"] <= 1
    assert found["run"] == str(out)
    assert json.loads((out / "run.json").read_text())["test"] == found["test"]
    assert "epoch   2" in done.stderr
    again = run("train", log, *columns, *settings)
    assert again.returncode == 1 and "holds a run already" in again.stderr
    described = run("train", log, *columns, *settings[:-2])
    assert described.returncode == 0, described.stderr
    assert described.stdout.startswith("Run of JODIE on log with batches of 50: test AP ")


def test_settings_come_from_a_file_and_flags_go_before_them(synthetic: Path, tmp_path: Path) -> None:
    done = run("train", "--config", synthetic, "--epochs", "1", *SMALL[:2], "--out", tmp_path / "a", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["model"], found["epochs"], found["batch_size"]) == ("JODIE", 1, 100)
    assert found["events"]["count"] == 1500 and found["model_options"]["memory_dim"] == 16
    again = run("train", "--config", tmp_path / "a" / "config.json", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["test"] == found["test"]  # a run's own settings repeat it


def test_who_interrupts_before_training_is_told_that_nothing_is_kept(
    synthetic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("pres.training.fit", interrupted)
    done = CliRunner().invoke(app, ["train", "--config", str(synthetic), "--out", str(tmp_path / "a")])
    assert done.exit_code == 130
    assert "had not begun" in done.output and "--resume" not in done.output


def test_an_interrupted_command_says_how_to_go_on_and_does(synthetic: Path, tmp_path: Path) -> None:
    epochs, out = ["--epochs", "4", "--patience", "4"], tmp_path / "a"
    whole = run("train", "--config", synthetic, *epochs, "--json")
    # Each epoch has 11 batches of training and 3 of validation: this is in the second.
    stopped = interrupted("train", "--config", synthetic, *epochs, "--out", out, batch=20)
    assert stopped.returncode == 130, stopped.stderr
    said = stopped.stderr
    assert "stopped at epoch 2" in said and "epoch   1" in said and "epoch   2" not in said
    assert f"Go on with: pres train --resume {out}" in said and "Traceback" not in said
    done = run("train", "--resume", out, "--json")
    assert done.returncode == 0, done.stderr
    found, expected = json.loads(done.stdout), json.loads(whole.stdout)
    assert found["test"] == expected["test"]
    assert [epoch["val"] for epoch in found["history"]] == [epoch["val"] for epoch in expected["history"]]
    assert pres.load_run(out).to_dict()["test"] == expected["test"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "say what to train on"),
        (["synthetic", "-o", "memory_dimm=3"], "TGN has no option 'memory_dimm'. Did you mean 'memory_dim'?"),
        (["synthetic", "-o", "heads=3"], "heads must divide 100"),
        (["synthetic", "-o", "neighbours=0"], "neighbours=0"),
        (["synthetic", "-o", "memory_dim"], "give a name and a value"),
        (["synthetic", "-o", "memory_dim=wide"], "TGN cannot be made with"),
        (["synthetic", "-o", "dropout=2"], "a share of 0 or more, below 1"),
        (["synthetic", "--device", "meta"], "device 'meta' cannot be used here"),
        (["synthetic", "-o", "node_features=true"], "asked for node features, but 'synthetic' has none"),
        (["synthetic", "--batch-size", "60000"], "makes one batch of the 35,001 training events"),
        (["synthetic", "--device", "gpu"], "device 'gpu' cannot be used here"),
        (["synthetic", "--config", "none.toml"], "no such file of settings"),
        (["synthetic", "--tensorboard"], "give --out"),
        (["synthetic", "--pres-option", "betta=1"], "PRES has no option 'betta'. Did you mean 'beta'?"),
        (["synthetic", "--pres-option", "gain=kalman"], "gain='kalman'"),
        (["synthetic", "--tolerance", "1"], "--tolerance 1.0 is for --batch-size auto"),
        (["--resume", "nowhere", "--tolerance", "1"], "leave out tolerance"),
        (["--resume", "nowhere", "--pres"], "leave out --pres"),
        (["--resume", "nowhere"], "nowhere holds no run"),
        (["synthetic", "--resume", "nowhere"], "nowhere holds no run"),
        (["synthetic", "--src", "user"], "'synthetic' is a named dataset"),
    ],
)
def test_a_mistake_is_one_clear_line_and_leaves_nothing(
    tmp_path: Path, arguments: list[str], says: str
) -> None:
    done = run("train", *arguments, cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and says in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_pres_from_a_file_and_from_flags(synthetic: Path, tmp_path: Path) -> None:
    settings = tmp_path / "smooth.toml"
    settings.write_text(f"{synthetic.read_text()}[smoothing]\nbeta = 0.3\n")
    done = run("train", "--config", settings, "--epochs", "1", "--pres-option", "gain=fixed", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["config"]["smoothing"] | {"beta": 0.3, "gain": "fixed"} == found["config"]["smoothing"]
    assert found["history"][0]["memory"].keys() == {"movement", "coherence", "gain", "delta", "tracked"}


@pytest.mark.parametrize(
    ("line", "flags", "says"),
    [
        ("smoothing = true", ["--pres"], "smoothing=True in the file of settings: it must be a table"),
        ("tolerance = 1", [], "--tolerance 1 is for --batch-size auto"),
        ("model_options = 3", ["-o", "memory_dim=8"], "model_options=3 in the file of settings"),
        ("[smoothing]\nbetta = 1", [], "PRES has no option 'betta'. Did you mean 'beta'?"),
    ],
)
def test_a_file_with_a_mistake_is_one_clear_line(
    tmp_path: Path, line: str, flags: list[str], says: str
) -> None:
    (tmp_path / "bad.toml").write_text(f'source = "synthetic"\n{line}\n')
    done = run("train", "--config", "bad.toml", *flags, cwd=tmp_path)
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1 and says in done.stderr
