"""`pres theory`: each measurement as JSON, as a table and as a picture."""

import json
import shutil
from pathlib import Path

import pytest

import pres
from pres.errors import PresError
from pres.models.registry import build_model
from tests.cli.process import run as pres_command
from tests.cli.process import theory as run

SMALL = ["--model", "jodie", "-o", "memory_dim=8", "-o", "time_dim=4"]


def test_state_space_needs_no_data_and_gives_one_json_object_and_a_picture(tmp_path: Path) -> None:
    few = ["--noise", "0.5", "--missing", "0", "--missing", "2", "--seeds", "2", "--steps", "6"]
    done = pres_command("theory", "state-space", *few, "--png", tmp_path / "errors.png", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {(row["missing"], row["previous"], row["gain"]) for row in found["rows"]} == {
        (missing, previous, gain)
        for missing in (0, 2)
        for previous in ("true", "filtered")
        for gain in ("analytic", "learned")
    }
    assert found["png"] == str(tmp_path / "errors.png") and "picture: " in done.stderr
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")


def test_without_json_it_is_a_table() -> None:
    shown = run("state-space", "--noise", "0.5", "--missing", "0", "--seeds", "2", "--steps", "6")
    assert "STANDARD" in shown and "analytic" in shown and "2/2" in shown


def test_variance_says_whose_weights_it_measured(log: Path) -> None:
    sizes = ["--batch-size", "20", "--batch-size", "50", "--draws", "2", "--events", "100", "--json"]
    found = json.loads(run("variance", log, *SMALL, *sizes, "--epochs", "0"))
    assert (found["dataset"], found["model"], found["weights"]) == ("log", "JODIE", "untrained (seed 0)")
    rows = [(row["batch_size"], row["loss"]) for row in found["rows"]]
    assert rows == [(20, "mean"), (20, "sum"), (50, "mean"), (50, "sum")]
    assert {"fitted", "explained", "beyond"} <= set(found["exponents"][0])
    trained = json.loads(run("variance", log, *SMALL, *sizes, "--train-batch-size", "50"))
    assert trained["weights"] == "of epoch 1 of 1 (batch_size 50, lr 0.001, seed 0)"
    assert trained["rows"] != found["rows"]


def test_variance_takes_a_saved_run(log: Path, tmp_path: Path) -> None:
    events = pres.read(log, src="user", dst="item", t="ts", bipartite=True)
    model = build_model("jodie", events, {"memory_dim": 8, "time_dim": 4})
    folder = pres.fit(model, events, batch_size=50, epochs=1, eval_batch_size=50).save(tmp_path / "run")
    settings = ["--batch-size", "50", "--draws", "2"]
    found = json.loads(run("variance", "--run", folder, *settings, "--json"))
    assert found["weights"] == f"of the run {folder}" and found["events"] == 210
    assert "power of b" in run("variance", "--run", folder, *settings)
    moved = shutil.copy(log, tmp_path / "moved.csv")
    again = json.loads(run("variance", moved, "--run", folder, *settings, "--json"))
    assert again == found | {"dataset": "moved"}
    with pytest.raises(PresError, match="--run knows its events and its model"):
        run("variance", "--run", folder, "--model", "tgn")


def test_convergence_says_where_the_assumption_fails(log: Path, tmp_path: Path) -> None:
    quick = [*SMALL, "--batch-size", "30", "--epochs", "2", "--draws", "2", "--iterations", "3"]
    columns = ["--src", "user", "--dst", "item", "--time", "ts", "--bipartite"]
    picture = tmp_path / "terms.png"
    found = json.loads(run("convergence", log, *columns, *quick, "--mu", "0.4", "--png", picture, "--json"))
    assert found["assumption_holds"] is True and found["bound"] > 0
    assert len(found["step_sizes"]) == 2 and len(found["losses"]) == 3
    sgd = found["sgd"]
    assert len(sgd["step_sizes"]) == 2 and len(sgd["gradients"]) == 3 and found["no_descent"] is None
    assert sgd["step_sizes"][0] == pytest.approx(0.4 / (sgd["lipschitz"] * sgd["batches"] ** 0.5))
    assert sgd["holds"] is (sgd["smallest_gradient"] <= sgd["bound"])
    assert picture.read_bytes().startswith(b"\x89PNG")
    shown = run("convergence", log, *columns, *quick, "--mu", "0.4")
    assert "Plain SGD at the theorem's step size" in shown and "1 + log T" in shown
    failed = run("convergence", log, *columns, *quick, "--mu", "-0.1")
    assert "the assumption μ > 0 fails" in failed and "Plain SGD: not run" in failed


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["state-space", "--noise", "-1"], "noise and spread must be positive"),
        (["state-space", "--png", "errors.jpg"], r"a picture is written as \.png"),
        (["variance", "wikipeda"], r"Did you mean 'wikipedia'\?"),
        (["variance", "log.csv", "--epochs", "-1"], "train for 0 or more"),
        (["variance", "log.csv", "--epochs", "0", "--draws", "1"], "a variance needs at least two"),
        (["convergence", "log.csv", "-o", "memory"], "give a name and a value"),
        (["convergence", "log.csv", "--device", "gpu"], "device 'gpu' cannot be used here"),
    ],
)
def test_a_mistake_is_said(
    log: Path, arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(log.parent)
    with pytest.raises(PresError, match=says):
        run(*arguments)


def test_a_mistake_is_one_line_and_exit_code_1() -> None:
    done = pres_command("theory", "state-space", "--steps", "1")
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and done.stderr.startswith("error: ")


@pytest.mark.parametrize("name", ["state-space", "variance", "convergence"])
def test_help_has_an_example(name: str) -> None:
    assert f"Example: pres theory {name}" in run(name, "--help")
