"""The command line as a user meets it: a process, its two streams and its exit code."""

import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from pres.cli.commands import app
from tests.waiting import PATIENCE

PRES = Path(sys.executable).parent / "pres"
INTERRUPTED = Path(__file__).parent / "interrupted.py"


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return _finished([PRES, *arguments], cwd)


def interrupted(
    *arguments: str | Path, batch: int, cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """What a command does on Ctrl-C while its model takes in a batch, counted from 1."""
    return _finished([sys.executable, INTERRUPTED, str(batch), *arguments], cwd)


def _finished(command: list[str | Path], cwd: Path | None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*map(str, command)], capture_output=True, text=True, cwd=cwd, timeout=PATIENCE, check=False
    )


def theory(*arguments: str | Path) -> str:
    """What a command of `pres theory` that works prints to stdout, in this process."""
    return printed("theory", *arguments)


def printed(*arguments: str | Path) -> str:
    """What a command that works prints to stdout, in this process: a new one takes seconds to start."""
    done = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stdout
