"""Processes: killed ones hurt nobody else, and a killed reproduction goes on."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from pres.experiments import EvidenceFolder, Job, LocalProcesses
from tests.experiments.small import LITTLE, Here, reproduced

pytestmark = pytest.mark.skipif(not Path("/proc").exists(), reason="looks at processes as Linux shows them")


def until(condition: Callable[[], bool], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)


def start(root: Path) -> subprocess.Popen[bytes]:
    # A shell's background job ignores Ctrl-C, and so would what it starts.
    heeding = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    command = [sys.executable, "-m", "tests.experiments.killed", str(root)]
    return subprocess.Popen(command, preexec_fn=heeding)


def results(root: Path) -> int:
    return len([*root.glob("jobs/*/result.json")])


def half_done(root: Path) -> bool:
    return any(not (run.parent / "result.json").exists() for run in root.glob("jobs/*/run"))


def stopped(process: subprocess.Popen[bytes], root: Path, how: signal.Signals, least: int) -> None:
    """Send a signal in the middle of a job, after at least so many."""
    try:
        until(lambda: results(root) >= least and half_done(root))
    finally:
        process.send_signal(how)
        process.wait()


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


def test_killed_at_any_time_it_goes_on_to_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "killed"
    monkeypatch.setenv("PRES_TEST_ROOT", str(root))
    for how, least in ((signal.SIGKILL, 0), (signal.SIGINT, 2)):
        stopped(start(root), root, how, least)
        until(lambda: not working_on(root))  # nobody is left who could write
    assert results(root) < 8
    monkeypatch.delenv("PRES_TEST_ROOT")
    assert start(root).wait(timeout=300) == 0
    reproduced([LITTLE], tmp_path / "whole", Here(), seeds=2)
    ours, theirs = (EvidenceFolder(folder).read("little") for folder in (root, tmp_path / "whole"))
    assert ours.table.repeatable() == theirs.table.repeatable()
    assert len(ours.table.rows) == 4 and ours.failed == {}


def test_a_process_that_dies_fails_its_job_alone(tmp_path: Path) -> None:
    settings = {"source": "synthetic", "copy": "embedded"}
    killed, other = Job("dataset", settings | {"which": 1}), Job("dataset", settings)

    def kill_the_first() -> None:
        until(lambda: bool(multiprocessing.active_children()))
        pid = multiprocessing.active_children()[0].pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kill_the_first)
    killer.start()
    errors = {outcome.job.name: outcome.error for outcome in LocalProcesses(1).run([killed, other], tmp_path)}
    killer.join()
    assert "exit code -9" in str(errors[killed.name])
    assert errors[other.name] is None
    assert (tmp_path / "jobs" / other.name / "result.json").exists()
