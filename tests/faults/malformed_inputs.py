"""Malformed inputs of all kinds, and what comes of them in processes that run one command after another."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.faults import malformed_commands, malformed_files, malformed_values
from tests.faults.kinds import HEAVY, KINDS
from tests.waiting import PATIENCE

__all__ = ["KINDS", "names", "results"]
MODULES = (malformed_commands, malformed_files, malformed_values)  # their kinds are taken in by the import


def names(each: int, heavy: int) -> list[str]:
    """Return the names of so many cases of each kind, and of each kind whose cases take long."""
    return [f"{kind}:{seed}" for kind in KINDS for seed in range(heavy if kind in HEAVY else each)]


def results(folder: Path, cases: list[str]) -> list[dict[str, Any]]:
    """Return what came of each case; one that ends its process is told, and the next begin in a new one."""
    found: list[dict[str, Any]] = []
    while left := cases[len(found) :]:
        command = [sys.executable, "-m", "tests.faults.cases", str(folder), *left]
        done = subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
        told = [json.loads(line) for line in done.stdout.splitlines()]
        found += [one for one in told if "code" in one]
        if done.returncode != 0 or len(found) < len(cases):
            assert len(found) < len(cases), done.stderr
            ended = f"the process ended with {done.returncode}"
            found.append({"case": cases[len(found)], "code": ended, "said": [done.stderr[-300:]]})
    return found
