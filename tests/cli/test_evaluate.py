"""`pres evaluate`: a saved run, measured again and beside baselines."""

import json
from pathlib import Path
from typing import Any

import pytest

import pres
from pres.models.build import build_model
from tests.cli.process import run

EVENTS = pres.load("synthetic", num_events=1_500)


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "a"
    model = build_model("jodie", EVENTS, {"memory_dim": 16})
    settings: dict[str, Any] = {"batch_size": 100, "epochs": 1, "eval_batch_size": 50, "seed": 3}
    pres.fit(model, EVENTS, out=folder, precision=request.param, **settings)
    return folder


def test_a_run_is_repeated_exactly_and_put_beside_baselines(trained: Path) -> None:
    done = run("evaluate", trained, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    own = [row for row in found["rows"] if row["scorer"] == "JODIE" and row["group"] == "all"]
    assert [row["strategy"] for row in own] == ["random", "historical", "inductive"]
    test = json.loads((trained / "run.json").read_text())["test"]
    assert {name: own[0]["metrics"][name] for name in test} == test
    assert {row["scorer"] for row in found["rows"]} > {"EdgeBank"}


def test_memory_moves_as_the_run_was_evaluated(tmp_path: Path) -> None:
    model = build_model("jodie", EVENTS, {"memory_dim": 16})
    memory: dict[str, Any] = {"memory": "exact", "eval_memory": "trained"}
    made = pres.fit(model, EVENTS, out=tmp_path / "a", batch_size=100, epochs=1, **memory)
    done = run("evaluate", tmp_path / "a", "--strategy", "random", "--no-baselines", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["sweeps"] is None and found["rows"][0]["metrics"]["ap"] == made.test.ap


def test_a_table_is_printed_and_options_are_taken(trained: Path) -> None:
    options = ["--strategy", "random", "--negatives", "12", "--no-baselines", "--part", "val"]
    done = run("evaluate", trained, *options)
    assert done.returncode == 0, done.stderr
    assert "JODIE" in done.stdout and "EdgeBank" not in done.stdout and "12" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "nowhere holds no saved run"),
        (["nowhere", "--strategy", "randm"], "Did you mean 'random'?"),
        (["nowhere", "--device", "gpu"], "device 'gpu' cannot be used here"),
    ],
)
def test_a_mistake_is_one_clear_line(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = run("evaluate", *arguments, cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and says in done.stderr
