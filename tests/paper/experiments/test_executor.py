"""Processes: killed ones hurt nobody else, and a killed reproduction goes on."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from pres.paper.experiments.evidence import EvidenceFolder
from pres.paper.experiments.executor import LocalProcesses
from pres.paper.experiments.job import Job
from tests.paper.experiments.held import die_of_the_first, results
from tests.paper.experiments.small import LITTLE, Here, reproduced
from tests.waiting import PATIENCE, until

REPOSITORY = Path(__file__).parents[3]


def start(root: Path, least: int = 0) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.paper.experiments.killed", str(root), str(least)]
    return subprocess.Popen(command, cwd=REPOSITORY)


def half_done(root: Path) -> bool:
    return any(not (run.parent / "result.json").exists() for run in root.glob("jobs/*/run"))


def working_on(root: Path) -> list[int]:
    """The processes that were started for this folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"PRES_TEST_ROOT={root}".encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks at processes as Linux shows them")
def test_killed_at_any_time_it_goes_on_to_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, hold, held = (tmp_path / name for name in ("killed", "hold", "held"))
    monkeypatch.setenv("PRES_TEST_ROOT", str(root))
    hold.touch()
    for how, least in ((signal.SIGKILL, 0), (signal.SIGINT, 2)):
        process = start(root, least)
        try:
            until(lambda ended=process.poll: held.exists() or ended() is not None)  # type: ignore[misc]
            assert process.poll() is None and working_on(root)
        finally:
            process.send_signal(how)
            process.wait(PATIENCE)
        until(lambda: not working_on(root))  # nobody is left who could write
        assert least <= results(root) < 8 and half_done(root)
        held.unlink()
    hold.unlink()
    monkeypatch.delenv("PRES_TEST_ROOT")
    assert start(root).wait(PATIENCE) == 0
    reproduced([LITTLE], tmp_path / "whole", Here(), seeds=2)
    ours, theirs = (EvidenceFolder(folder).read("little") for folder in (root, tmp_path / "whole"))
    assert ours.table.repeatable() == theirs.table.repeatable()
    assert len(ours.table.rows) == 4 and ours.failed == {}


def test_a_process_that_dies_fails_its_job_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"source": "synthetic", "copy": "embedded"}
    killed, other = Job("dataset", settings | {"which": "first"}), Job("dataset", settings)
    monkeypatch.setattr("pres.paper.experiments.executor._work", die_of_the_first)
    errors = {outcome.job.name: outcome.error for outcome in LocalProcesses(1).run([killed, other], tmp_path)}
    assert "exit code -9" in str(errors[killed.name])
    assert errors[other.name] is None
    assert (tmp_path / "jobs" / other.name / "result.json").exists()
