import json
from pathlib import Path

import pytest

from tests.cli.process import run


def test_a_store_is_made_and_taken_as_a_source(log: Path, tmp_path: Path) -> None:
    out, folder = tmp_path / "store", tmp_path / "run"
    done = run("store", log, "--src", "user", "--dst", "item", "--time", "ts", "--bipartite", "--out", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"stored: {out} (300 events, ")
    assert len(done.stdout.splitlines()) == 1 and done.stderr == ""
    found = run("diagnose", out, "--batch-size", "50", "--json")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["summary"]["events"] == 300
    small = ["--option", "memory_dim=8", "--epochs", "1", "--batch-size", "20", "--eval-batch-size", "20"]
    trained = run("train", out, "--model", "jodie", *small, "--out", folder, "--json")
    assert trained.returncode == 0, trained.stderr
    assert json.loads(trained.stdout)["dataset"] == "log"
    assert run("evaluate", folder, "--batch-size", "20", "--json").returncode == 0


def test_the_synthetic_stream_is_stored_at_any_size(tmp_path: Path) -> None:
    done = run("store", "synthetic", "--num-events", "2000", "--out", tmp_path / "s", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["dataset"], found["events"], found["store"]) == ("synthetic", 2_000, str(tmp_path / "s"))
    assert found["bytes"] == sum(path.stat().st_size for path in (tmp_path / "s").iterdir())


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["clicks.csv", "--src", "usr", "--out", "s"], "Did you mean 'user'?"),
        (["nowhere.csv", "--out", "s"], "nowhere.csv: no such file"),
        (["wikipeda", "--out", "s"], "Did you mean 'wikipedia'?"),
        (["clicks.csv", "--out", "clicks.csv"], "clicks.csv exists already"),
        (["clicks.csv", "--out", "clicks.csv/s"], "cannot write clicks.csv/s: not a directory"),
        (["clicks.csv", "--num-events", "9", "--out", "s"], "no option 'num_events'"),
    ],
)
def test_a_mistake_is_one_clear_line_and_leaves_nothing(
    clicks: Path, arguments: list[str], says: str
) -> None:
    before = sorted(clicks.parent.iterdir())
    done = run("store", *arguments, cwd=clicks.parent)
    assert done.returncode == 1 and done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if not line.startswith("note:")]
    assert len(errors) == 1 and errors[0].startswith("error: ") and says in errors[0], done.stderr
    assert sorted(clicks.parent.iterdir()) == before
