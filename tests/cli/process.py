"""The command line as a user meets it: a process, its two streams and its exit code."""

import subprocess
import sys
from pathlib import Path

PRES = Path(sys.executable).parent / "pres"


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(PRES), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, cwd=cwd, timeout=120, check=False)
