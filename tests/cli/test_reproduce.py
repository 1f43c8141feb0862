"""`pres reproduce` and `pres report` as a user meets them."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from pres.cli.report import report
from pres.cli.reproduce import reproduce
from pres.errors import (
    JobsFailedError,
    OptionError,
    StorageError,
    UnknownDatasetError,
    UnknownExperimentError,
)
from pres.paper.experiments.budget import BUDGETS
from pres.paper.experiments.registry import EXPERIMENTS
from tests.cli.process import run as pres_command
from tests.paper.experiments.small import TINY


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    monkeypatch.setitem(BUDGETS, "quick", TINY)
    for name in ("PRES_DATA", "PRES_CACHE"):
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp("empty")))


def test_a_table_is_shown_and_reported_and_json_is_one_object(
    tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given: dict[str, Any] = {
        "quick": True,
        "datasets": ["synthetic,Reddit"],
        "out": tmp_path / "a",
        "jobs": 2,
    }
    reproduce("table-datasets", **given)
    shown = capsys.readouterr()
    assert "table-datasets: The datasets (Table 3 (appendix))" in shown.out
    assert "synthetic" in shown.out and "50,000" in shown.out
    assert "1 of 1" in shown.err and (tmp_path / "a" / "report.html").exists()
    reproduce("table-datasets", **given, as_json=True)
    found = json.loads(capsys.readouterr().out)
    assert found["jobs"] == found["done_before"] == 1 and found["failed"] == {}
    (only,) = found["experiments"]
    assert only["name"] == "table-datasets" and only["table"]["rows"][0][0] == "synthetic"
    assert only["command"] == "pres reproduce table-datasets --tiny --datasets synthetic,Reddit"
    report(tmp_path / "a", out=tmp_path / "b.html", as_json=True)
    assert json.loads(capsys.readouterr().out)["report"] == str(tmp_path / "b.html")


def test_jobs_that_fail_are_listed_and_the_command_says_so(
    tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    of_jodie = dataclasses.replace(
        EXPERIMENTS["table2"], vary={**EXPERIMENTS["table2"].vary, "model": ["jodie"]}
    )
    monkeypatch.setitem(EXPERIMENTS, "table2", of_jodie)
    monkeypatch.setitem(BUDGETS, "quick", dataclasses.replace(TINY, pair=(50, 100_000)))
    with pytest.raises(JobsFailedError, match=r"4 of 5 jobs failed.*makes one batch of"):
        reproduce("table2", quick=True, datasets=["synthetic"], out=tmp_path, jobs=2)
    assert "Failed: train JODIE on synthetic b 100,000" in capsys.readouterr().out


def test_all_experiments_are_listed_with_what_is_done_of_them(
    tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reproduce(list_=True, out=tmp_path)
    shown = capsys.readouterr().out
    for name, experiment in EXPERIMENTS.items():
        (line,) = [line for line in shown.splitlines() if line.split(maxsplit=1)[:1] == [name]]
        assert experiment.title in line
    reproduce("table-datasets", quick=True, datasets=["synthetic"], out=tmp_path, jobs=1)
    capsys.readouterr()
    reproduce(list_=True, quick=True, datasets=["synthetic"], out=tmp_path, as_json=True)
    found = json.loads(capsys.readouterr().out)
    listed = {one["name"]: one for one in found["experiments"]}
    assert list(listed) == list(EXPERIMENTS) and found["budget"] == "tiny"
    done = [name for name, one in listed.items() if one["done"]]
    assert done == ["table-datasets"] and listed["table-datasets"]["shown"]
    assert listed["table-datasets"]["jobs"] == 1 and 0 < listed["table-datasets"]["hours"] < 0.01
    assert listed["table1"]["jobs"] == 18 and not listed["table1"]["shown"]
    with pytest.raises(OptionError, match="--list names them"):
        reproduce()


def test_what_cannot_be_is_one_line_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="two budgets"):
        reproduce("table1", quick=True, full=True)
    with pytest.raises(OptionError, match="at least one at a time"):
        reproduce("table1", jobs=0)
    with pytest.raises(UnknownExperimentError, match="Did you mean 'table2'"):
        reproduce("tabel2")
    with pytest.raises(UnknownDatasetError, match="Did you mean 'mooc'"):
        reproduce("table1", datasets=["moocs"], out=tmp_path)
    with pytest.raises(OptionError, match="name at least one"):
        reproduce("table1", datasets=[" ,"], out=tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="cannot write"):
        reproduce("table-datasets", datasets=["synthetic"], out=tmp_path / "file" / "out")


def test_a_process_says_it_in_one_line_too() -> None:
    done = pres_command("reproduce", "fig-abblation")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(
        "error: there is no experiment 'fig-abblation'. Did you mean 'fig-ablation'?"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("command", ["reproduce", "report"])
def test_help_has_an_example(command: str) -> None:
    done = pres_command(command, "--help")
    assert done.returncode == 0 and f"Example: pres {command}" in done.stdout
