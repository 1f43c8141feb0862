import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import pres
from benchmarks import peers
from pres.cli.commands import app
from pres.errors import OptionError
from tests.cli.process import run
from tests.waiting import PATIENCE


def invoke(*arguments: str) -> str:
    return CliRunner().invoke(app, ["benchmark", *arguments], catch_exceptions=False).stdout


def test_what_is_measured_is_what_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the measurement, its own parser is asked what it was told."""

    def measured(command: list[str], **options: Any) -> subprocess.CompletedProcess[str]:
        assert command[1:3] == ["-m", "benchmarks.peers"] and (options["cwd"] / "benchmarks").is_dir()
        monkeypatch.setattr("sys.argv", command[2:])
        monkeypatch.setattr(peers, "run", lambda *given: given[-1].write_text(json.dumps(list(given[:-1]))))
        peers.main()
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr("subprocess.run", measured)
    found = json.loads(invoke("--batch-size", "300", "--batch-size", "50", "--rounds", "2", "--json"))
    assert found == {"peers": [[300, 50], list(peers.OURS), 24_000, 2]}
    assert invoke("--events", "2400") == ""


def test_what_is_missing_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    failed: subprocess.CompletedProcess[str] = subprocess.CompletedProcess(["python"], 3)
    monkeypatch.setattr("subprocess.run", lambda *given, **options: failed)
    with pytest.raises(OptionError, match="exit code 3"):
        invoke()
    for wrong in (["--batch-size", "0"], ["--batch-size", "500", "--events", "400"]):
        with pytest.raises(OptionError, match="do not fit"):
            invoke(*wrong)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(OptionError, match=r"pip install -c constraints.txt '.\[pyg\]'"):
        invoke()


def test_it_is_listed_where_the_benchmarks_are_and_nowhere_else(tmp_path: Path) -> None:
    assert "benchmark" in run("--help", cwd=tmp_path).stdout  # these tests are run from a clone
    installed = tmp_path / "installed"
    shutil.copytree(Path(pres.__file__).parent, installed / "pres")
    where = {**os.environ, "PYTHONPATH": str(installed), "COLUMNS": "80"}
    command = [sys.executable, "-m", "pres"]
    told: dict[str, Any] = {
        "cwd": tmp_path,
        "env": where,
        "capture_output": True,
        "text": True,
        "timeout": PATIENCE,
    }
    listed = subprocess.run([*command, "--help"], check=True, **told)
    assert "diagnose" in listed.stdout and "benchmark" not in listed.stdout
    refused = subprocess.run([*command, "benchmark"], check=False, **told)
    assert refused.returncode == 2 and "no such command 'benchmark'" in refused.stderr
