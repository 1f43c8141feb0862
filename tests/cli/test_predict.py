"""`pres predict`: from a saved run and a file of pairs to a table of scores."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import torch

import pres
from pres.cli.predict import predict
from pres.errors import (
    ColumnError,
    EmptySourceError,
    OptionError,
    SourceNotFoundError,
    StorageError,
    UnknownIdError,
    ValueInRowError,
)
from pres.training.opened import open_run
from tests.cli.process import run as pres_command


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on a log whose times are dates."""
    folder = tmp_path_factory.mktemp("trained")
    log = folder / "log.csv"
    lines = [f"user{i % 7},item{i * i % 41},2024-05-{1 + i // 24:02d}T{i % 24:02d}:00:00" for i in range(300)]
    log.write_text("\n".join(["user,item,ts", *lines]))
    events = pres.read(log, src="user", dst="item", t="ts", bipartite=True)
    torch.manual_seed(0)
    model = pres.JODIE(events, memory_dim=8, time_dim=4)
    return pres.fit(model, events, batch_size=50, epochs=1).save(folder / "run")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.csv"
    rows = [f"user{i % 7},item{i * i % 41},note {i},2024-05-{3 + i:02d}T12:00:00" for i in range(12)]
    path.write_text("\n".join(["user,item,remark,ts", *reversed(rows)]) + "\n")
    return path


def expected(run: Path, asked: pl.DataFrame, **options: Any) -> list[float]:
    opened = open_run(run)
    times = asked["ts"] if "ts" in asked.columns else None
    scored = pres.predict(opened.model, opened.events, asked["user"], asked["item"], times, **options)
    return scored.score.tolist()


def test_the_table_comes_back_with_scores_in_its_own_order(
    run: Path, pairs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predict(run, pairs)
    asked, found = pl.read_csv(pairs), pl.read_csv(pairs.with_name("pairs-scores.csv"))
    assert found.drop("score").equals(asked)
    assert found["score"].to_list() == pytest.approx(expected(run, asked), abs=1e-12)
    said = capsys.readouterr()
    assert "scores of 12 pairs are in" in said.out and "the 10 highest" in said.out
    best = found.sort("score", descending=True)["item"][0]
    assert best in said.out.splitlines()[2]
    assert said.err == ""


def test_json_is_one_object_and_the_rest_goes_to_stderr(run: Path, pairs: Path) -> None:
    asked = pl.read_csv(pairs).drop("ts").rename({"user": "who"})
    path = pairs.with_name("later.parquet")
    asked.write_parquet(path)
    out = pairs.with_name("out.parquet")
    done = pres_command("predict", run, path, "--src", "who", "--out", out, "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"run": str(run), "pairs": 12, "out": str(out), "new_nodes": 0}
    assert (
        "there is no column of times, so the pairs are asked about just after the last event" in done.stderr
    )
    found = pl.read_parquet(out)["score"].to_list()
    assert found == pytest.approx(expected(run, asked.rename({"who": "user"})), abs=1e-12)


def test_new_ids_are_scored_and_marked_if_they_may_be(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text("user\titem\nuser1\titem4\nzed\titem4\nuser1\tlamp\nzed\tlamp\n")
    with pytest.raises(UnknownIdError, match=r"row 2, column 'user': 'zed' never occurs .*unknown='new'"):
        predict(run, path)
    assert list(tmp_path.iterdir()) == [path]
    predict(run, path, new=True, as_json=True)
    assert json.loads(capsys.readouterr().out)["new_nodes"] == 2
    found = pl.read_csv(tmp_path / "pairs-scores.tsv", separator="\t")
    assert found["new"].to_list() == [False, True, True, True]
    assert found["score"].to_list() == pytest.approx(expected(run, found, unknown="new"), abs=1e-12)


@pytest.mark.parametrize(
    ("text", "options", "error", "says"),
    [
        ("user,item\n", {}, EmptySourceError, "has no rows"),
        ("user,when\nuser1,3\n", {}, ColumnError, "no column looks like dst"),
        ("user,item\nuser1,item1\n", {"src": "usr"}, ColumnError, "Did you mean 'user'?"),
        ("user,item,score\nuser1,item1,3\n", {}, ColumnError, "has a column 'score' already"),
        (
            "user,item,ts\nuser1,item1,2024-05-20\nuser1,,2024-05-20\n",
            {},
            ValueInRowError,
            "row 2, column 'item'",
        ),
        ("user,item,ts\nuser1,item1,tomorrow\n", {}, ValueInRowError, "row 1, column 'ts' is 'tomorrow'"),
        ("user,item,ts\nuser1,item1,1715934600\n", {}, OptionError, "were read from dates"),
        ("user,item\nuser1,item1\n", {"out": Path("scores.xlsx")}, OptionError, "written as .csv"),
        ("user,item\nuser1,item1\n", {"device": "nowhere"}, OptionError, "device 'nowhere' cannot be used"),
    ],
)
def test_a_mistake_is_one_clear_line_and_nothing_is_written(
    run: Path, tmp_path: Path, text: str, options: dict[str, Any], error: type[Exception], says: str
) -> None:
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    with pytest.raises(error) as raised:
        predict(run, path, **options)
    assert says in str(raised.value) and "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == [path]


def test_no_file_is_written_over_and_a_place_that_cannot_be_written_is_said_first(
    run: Path, pairs: Path
) -> None:
    taken = pairs.with_name("pairs-scores.csv")
    taken.write_text("mine")
    with pytest.raises(StorageError, match="exists already"):
        predict(run, pairs)
    assert taken.read_text() == "mine"
    with pytest.raises(StorageError, match="is not a folder that may be written to"):
        predict(run, pairs, out=pairs / "scores.csv")
    with pytest.raises(SourceNotFoundError):
        predict(run.parent / "none", pairs, out=pairs.with_name("scores.csv"))
    with pytest.raises(SourceNotFoundError, match="no such file"):
        predict(run, pairs.with_name("none.csv"))


def test_the_result_may_be_replaced_and_a_missing_run_is_said_first(
    run: Path, pairs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    taken = pairs.with_name("pairs-scores.csv")
    taken.write_text("old")
    with pytest.raises(SourceNotFoundError, match="holds no run"):
        predict(run.parent / "none", pairs)
    predict(run, pairs, overwrite=True)
    assert pl.read_csv(taken).height == 12
    assert "scores of 12 pairs" in capsys.readouterr().out


def test_all_pairs_may_be_asked_about_at_one_time(run: Path, pairs: Path, tmp_path: Path) -> None:
    asked = pl.read_csv(pairs)
    bare = tmp_path / "bare.csv"
    asked.drop("ts").write_csv(bare)
    for path in (bare, pairs):  # the column of times counts for nothing then
        out = tmp_path / f"{path.stem}-then.csv"
        predict(run, path, at="2024-05-08 06:30", out=out)
        found = pl.read_csv(out)
        same_time = asked.with_columns(pl.lit("2024-05-08T06:30:00").alias("ts"))
        assert found["score"].to_list() == pytest.approx(expected(run, same_time), abs=1e-12)
        assert "--at" not in found.columns
    with pytest.raises(OptionError, match=r"^--at 'soon' is not a time"):
        predict(run, bare, at="soon", out=tmp_path / "new.csv")
    with pytest.raises(OptionError, match="leave out --time, or --at"):
        predict(run, pairs, at="2024-05-08", t="ts", out=tmp_path / "new.csv")
