"""`pres evaluate`: a saved run, measured again and beside baselines."""

import json
from pathlib import Path
from typing import Any

import pytest

import pres
from pres.models.registry import build_model
from pres.storage import read_json
from tests.cli.process import printed, run

EVENTS = pres.load("synthetic", num_events=1_500)


@pytest.fixture(scope="module", params=["float32", "bfloat16"])
def trained(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "a"
    model = build_model("jodie", EVENTS, {"memory_dim": 16})
    settings: dict[str, Any] = {"batch_size": 100, "epochs": 1, "eval_batch_size": 50, "seed": 3}
    pres.fit(model, EVENTS, out=folder, precision=request.param, **settings)
    return folder


def test_a_run_is_repeated_and_put_beside_baselines(trained: Path, tmp_path: Path) -> None:
    bfloat16 = json.loads((trained / "run.json").read_text())["config"]["precision"] == "bfloat16"
    kept = tmp_path / "evaluation.json"
    done = run("evaluate", trained, "--out", kept, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert read_json(kept) == found and f"evaluation: {kept}" in done.stderr
    rows = [row for row in found["rows"] if row["scorer"] == "JODIE" and row["group"] == "all"]
    own = [row for row in rows if row["staleness"] == 50]
    assert [row["staleness"] for row in rows] == [50, 0] * 3
    assert [row["strategy"] for row in own] == ["random", "historical", "inductive"]
    test = json.loads((trained / "run.json").read_text())["test"]
    for name in ("ap", "auc", "ap_batches", "auc_batches"):  # against the same negatives
        assert own[0]["metrics"][name] == pytest.approx(test[name], abs=0.02 if bfloat16 else 1e-6)
    assert own[0]["metrics"]["negatives"] == 100 and own[0]["metrics"]["mrr"] < test["mrr"]
    alone = json.loads(printed("evaluate", trained, "--negatives", "1", "--strategy", "random", "--json"))
    assert {name: alone["rows"][0]["metrics"][name] for name in test} == test
    assert {row["scorer"] for row in found["rows"]} > {"EdgeBank"}


def test_a_table_is_printed_and_options_are_taken(trained: Path) -> None:
    options = ["--strategy", "random", "--negatives", "12", "--no-baselines", "--part", "val"]
    done = run("evaluate", trained, *options)
    assert done.returncode == 0, done.stderr
    assert "JODIE" in done.stdout and "EdgeBank" not in done.stdout
    assert "rank among its own 12 negatives" in done.stdout


@pytest.mark.parametrize("model", ["jodie", "tgn"])
def test_a_scan_goes_by_its_own_name_through_every_command(tmp_path: Path, model: str) -> None:
    title = f"{model.upper()}-scan"
    store, folder = tmp_path / "events", tmp_path / "a"
    printed("store", "synthetic", "--num-events", "1500", "--out", store)
    options = ["--option", "cell=scan", "--option", "memory_dim=16", "--staleness", "20"]
    more = ["--epochs", "1", "--batch-size", "200", "--out", str(folder), "--json"]
    trained = json.loads(printed("train", store, "--model", model, *options, *more))
    assert (trained["model"], trained["model_class"]) == (title, model.upper())
    assert trained["config"]["staleness"] == 20 and trained["model_options"]["cell"] == "scan"
    assert json.loads((folder / "config.json").read_text())["model"] == model
    assert repr(pres.load_run(folder)).startswith(f"Run of {title} on ")

    found = json.loads(printed("evaluate", folder, "--json", "--no-baselines", "--negatives", "1"))
    rows = {(row["strategy"], row["staleness"], row["group"]): row["metrics"] for row in found["rows"]}
    assert found["model"] == title and {row["scorer"] for row in found["rows"]} == {title}
    assert {name: rows["random", 200, "all"][name] for name in trained["test"]} == trained["test"]
    assert rows["random", 0, "all"] != rows["random", 200, "all"]

    (tmp_path / "pairs.csv").write_text("src,dst\n1,3\n2,4\n99999,5\n")
    assert json.loads(printed("predict", folder, tmp_path / "pairs.csv", "--new", "--json"))["pairs"] == 3
    assert json.loads(printed("classify", folder, "--epochs", "1", "--json"))["model"] == title
    assert json.loads(printed("train", "--resume", folder, "--epochs", "2", "--json"))["model"] == title


def test_one_staleness_may_be_asked_for(trained: Path) -> None:
    options = ["--strategy", "random", "--no-baselines"]
    fresh, old = (printed("evaluate", trained, *options, "--staleness", one) for one in ("0", "batch"))
    assert "staleness 0" in fresh and "staleness 50" not in fresh
    assert "staleness 50" in old and "staleness 0" not in old


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nowhere"], "nowhere holds no run: there is no such folder"),
        (["nowhere", "--strategy", "randm"], "Did you mean 'random'?"),
        (["nowhere", "--device", "gpu"], "device 'gpu' cannot be used here"),
    ],
)
def test_a_mistake_is_one_clear_line(tmp_path: Path, arguments: list[str], says: str) -> None:
    done = run("evaluate", *arguments, cwd=tmp_path)
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1 and says in done.stderr
