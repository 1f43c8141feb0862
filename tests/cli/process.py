"""The command line as a user meets it: a process, its two streams and its exit code."""

import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from pres.cli import app

PRES = Path(sys.executable).parent / "pres"


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(PRES), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False)


def theory(*arguments: str | Path) -> str:
    """What a command of `pres theory` that works prints to stdout, in this process."""
    done = CliRunner().invoke(app, ["theory", *map(str, arguments)], catch_exceptions=False)
    assert done.exit_code == 0, done.stderr
    return done.stdout
