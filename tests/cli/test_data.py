"""The command line as a user meets it: a process, its two streams and its exit code."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pres
from tests.cli.process import run
from tests.waiting import PATIENCE


def test_diagnose_prints_one_json_object_and_draws_a_picture(clicks: Path) -> None:
    picture = clicks.with_name("picture.png")
    done = run("diagnose", clicks, "--time-unit", "s", "--png", picture, "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["dataset"], found["bipartite"], found["time_unit"]) == ("clicks", True, "s")
    assert found["summary"]["events"] == 300
    assert [row["batch_size"] for row in found["pending"]] == [50, 100, 200]
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "guessed --src user, --dst item, --time ts" in done.stderr


def test_diagnose_prints_tables_and_takes_named_columns_without_a_note(clicks: Path) -> None:
    done = run("diagnose", clicks, "--src", "user", "--dst", "item", "--time", "ts", "--bipartite",
               "--time-unit", "s", "--batch-size", "30", "--batch-size", "60", "--ties", "whole")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "300" in done.stdout and "ties: whole" in done.stdout
    assert "note:" not in done.stderr


def test_diagnose_reads_files_without_a_header_and_features(clicks: Path) -> None:
    bare = clicks.with_name("bare.txt")
    bare.write_text("\n".join(f"{i % 7} {i % 3} {i} {i / 2} {'ab'[i % 2]}" for i in range(60)))
    columns = ["--src", "column_1", "--dst", "column_2", "--time", "column_3", "--x", "column_4"]
    done = run("diagnose", bare, "--no-header", *columns, "--category", "column_5", "--one-kind", "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["summary"]
    assert (found["events"], found["edge_features"], found["categorical_features"]) == (60, 1, 1)


def test_a_name_means_the_dataset_even_beside_a_folder_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "synthetic").mkdir()
    done = run("diagnose", "synthetic", "--batch-size", "200", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["dataset"] == "synthetic"


def test_diagnose_knows_the_embedded_stream() -> None:
    done = run("diagnose", "synthetic", "--batch-size", "200", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["summary"]["events"] == 50_000


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["diagnose", "wikipeda"], "Did you mean 'wikipedia'?"),
        (["diagnose", "nowhere/clicks.csv"], "nowhere/clicks.csv: no such file"),
        (["diagnose", "clicks.csv", "--src", "usr"], "Did you mean 'user'?"),
        (["diagnose", "clicks.csv", "--batch-size", "9000"], "300 events"),
        (["diagnose", "clicks.csv", "--time-unit", "hours"], "--time-unit hours"),
        (["diagnose", "clicks.csv", "--tolerance", "1"], "--tolerance 1 is for --find-batch-size"),
        (["diagnose", "clicks.csv", "--png", "clicks.csv/x.png"], "cannot write clicks.csv/x.png"),
        (["diagnose", "clicks.csv", "--png", "clicks.csv"], "clicks.csv: a picture is written as .png"),
        (
            ["diagnose", "synthetic", "--directed", "--src", "user"],
            "src, directed can be given for a file only",
        ),
    ],
)
def test_a_mistake_is_one_clear_line_and_exit_code_1(clicks: Path, arguments: list[str], says: str) -> None:
    before = sorted(clicks.parent.iterdir())
    done = run(*arguments, cwd=clicks.parent)
    assert done.returncode == 1
    assert done.stdout == ""
    errors = [line for line in done.stderr.splitlines() if not line.startswith("note:")]
    assert len(errors) == 1 and errors[0].startswith("error: ") and says in errors[0]
    assert sorted(clicks.parent.iterdir()) == before


def test_debug_shows_the_traceback(clicks: Path) -> None:
    done = run("diagnose", clicks, "--src", "usr", "--debug")
    assert done.returncode == 1
    assert "Traceback" in done.stderr and "ColumnError" in done.stderr


def test_every_command_has_help_with_an_example() -> None:
    for command in ("diagnose", "train", "evaluate", "classify", "predict", "datasets"):
        done = run(command, "--help")
        assert done.returncode == 0
        assert "Example: pres" in done.stdout


def test_datasets_lists_every_dataset_with_where_it_is(tmp_path: Path) -> None:
    done = run("datasets", "--json")
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row for row in json.loads(done.stdout)["datasets"]}
    assert {"wikipedia", "reddit", "mooc", "lastfm", "gdelt", "uci", "enron", "icews18"} <= set(rows)
    assert rows["wikipedia"]["events"] == 157_474
    assert all(row["where"] for row in rows.values())
    shown = run("datasets")
    assert shown.returncode == 0
    assert all(name in shown.stdout for name in rows)


def test_the_module_is_the_command_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pres", "--version"],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert done.stdout == f"pres {pres.__version__}\n"
