"""`pres theory coherence` and `pres theory distance`: JSON, tables, pictures and mistakes."""

import json
from pathlib import Path

import pytest

import pres
from pres.errors import PresError
from pres.models.registry import build_model
from tests.cli.process import run as pres_command
from tests.cli.process import theory as run

SMALL = ["--model", "jodie", "-o", "memory_dim=8", "-o", "time_dim=4", "--epochs", "0"]


def test_coherence_is_one_json_object_and_a_picture(log: Path, tmp_path: Path) -> None:
    few = ["--batch-size", "20", "--batch-size", "60", "--samples", "15", "--events", "180"]
    png = tmp_path / "mu.png"
    done = pres_command("theory", "coherence", log, *SMALL, *few, "--png", png, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [(row["batch_size"], row["sampled"]) for row in found["rows"]] == [(20, 15), (60, 15)]
    assert (found["fresh"], found["wrt"], found["weights"]) == ("after", "memory", "untrained (seed 0)")
    assert {"0.05", "0.5", "0.95"} <= found["rows"][0]["quantiles"].keys() and found["png"] == str(png)
    assert png.read_bytes().startswith(b"\x89PNG") and "picture: " in done.stderr
    other = run("coherence", log, *SMALL, *few, "--fresh", "before", "--wrt", "parameters")
    assert "fresh memory before the event, gradients by parameters" in other and "μ ≤ 0" in other


def test_coherence_is_measured_after_training_with_the_objective(log: Path) -> None:
    trained = [*SMALL[:-2], "--train-batch-size", "50", "--batch-size", "30", "--samples", "5", "--json"]
    plain, coherent = (json.loads(run("coherence", log, *trained, *beta)) for beta in ([], ["--beta", "2"]))
    assert plain["weights"].startswith("of epoch 1 of 1 (batch_size 50")
    assert "smoothing (beta 2.0, filter False)" in coherent["weights"]
    assert plain["rows"] != coherent["rows"]


def test_distance_is_one_json_object_and_a_picture(log: Path, tmp_path: Path) -> None:
    few = ["--batch-size", "20", "--delta", "step", "--gamma", "0.5"]
    png = tmp_path / "distance.png"
    found = json.loads(run("distance", log, *SMALL, *few, "--png", png, "--json"))
    assert [row["variant"] for row in found["rows"]] == ["standard", "chosen filter", "discounted filter"]
    assert {one["filter"] for one in found["tried"]} == {
        f"step, γ 0.5{discount}"
        for discount in ("", *(f", discount {value}" for value in (0.5, 0.8, 0.9, 0.95)))
    }
    assert [row["batch_size"] for row in found["rows"]] == [20] * 3 and found["carried"] is False
    assert png.read_bytes().startswith(b"\x89PNG")
    shown = run("distance", log, *SMALL, *few, "--carried", "--discount", "1")
    assert "each variant carried along by itself" in shown
    assert "chosen: step, γ 0.5" in shown and "discount" not in shown
    shown = run("distance", log, *SMALL, *few, "--discount", "0.8")
    assert "step, γ 0.5, discount 0.8" in shown and "chosen" not in shown


def test_both_take_a_saved_run_with_its_filter(log: Path, tmp_path: Path) -> None:
    events = pres.read(log, src="user", dst="item", t="ts", bipartite=True)
    model = build_model("jodie", events, {"memory_dim": 8, "time_dim": 4})
    smoothing = pres.PRES(delta="rate")
    trained = pres.fit(model, events, batch_size=50, epochs=1, eval_batch_size=50, smoothing=smoothing)
    folder = trained.save(tmp_path / "run")
    few = ["--run", str(folder), "--batch-size", "30", "--json"]
    found = json.loads(run("distance", *few, "--gamma", "0.7", "--delta", "step"))
    assert found["weights"] == f"of the run {folder}"
    assert [row["filter"] for row in found["rows"]][1] == "as trained"
    coherence = json.loads(run("coherence", *few, "--samples", "5"))
    assert coherence["weights"] == f"of the run {folder}" and coherence["minimum"] is not None
    with pytest.raises(PresError, match="--run knows its events and its model"):
        run("coherence", *few, "--beta", "0.1")


def test_convergence_measures_coherence_where_it_is_not_given(log: Path) -> None:
    quick = [
        *SMALL[:-2],
        "--batch-size",
        "30",
        "--epochs",
        "1",
        "--draws",
        "2",
        "--iterations",
        "3",
        "--json",
    ]
    found = json.loads(run("convergence", log, *quick, "--samples", "10"))
    assert found["mu_samples"] == 10 and found["mu"] is not None
    assert found["assumption_holds"] is (found["mu"] > 0)
    given = json.loads(run("convergence", log, *quick, "--mu", "0.5"))
    assert (given["mu"], given["mu_samples"]) == (0.5, 0)
    neither = json.loads(run("convergence", log, *quick, "--samples", "0"))
    assert neither["mu"] is None and neither["assumption_holds"] is None


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["coherence"], "a source of events, or a saved run with --run"),
        (["coherence", "log.csv", "--samples", "0"], "sample at least one event"),
        (["coherence", "log.csv", "--beta", "-1"], "beta=-1"),
        (["coherence", "log.csv", "--png", "mu.jpg"], "a picture is written as .png"),
        (["distance", "log.csv", "--delta", "speed"], "delta='speed'"),
        (["distance", "log.csv", "--gamma", "2"], "gamma=2"),
        (["distance", "log.csv", "--discount", "0"], "discount=0"),
        (["distance", "log.csv", "--batch-size", "200"], "needs 400 events to measure on"),
    ],
)
def test_a_mistake_is_said(
    log: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], says: str
) -> None:
    monkeypatch.chdir(log.parent)
    with pytest.raises(PresError, match=says):
        run(*arguments, *(["--epochs", "0"] if len(arguments) > 1 else []))


@pytest.mark.parametrize("name", ["coherence", "distance"])
def test_help_has_an_example(name: str) -> None:
    done = pres_command("theory", name, "--help")
    assert done.returncode == 0 and f"Example: pres theory {name}" in done.stdout
