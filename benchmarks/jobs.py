"""Training runs as jobs: each in a folder and a process of its own, so that a study can stop and go on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from pres.training.folder import RunFolder

Job = TypeVar("Job")


def command(*arguments: object) -> dict[str, Any]:
    """Return what a command of `pres` prints as JSON; it gets one thread."""
    process = subprocess.run(
        [str(Path(sys.executable).parent / "pres"), *map(str, arguments), "--json"],
        stdout=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(process.stdout)
    return found


def train(folder: Path, dataset: str, settings: Sequence[object]) -> None:
    """Train a run into ``folder``, unless that is done; one that was begun goes on."""
    if RunFolder(folder).finished:
        return
    begun = RunFolder(folder).begun
    command("train", *(["--resume", folder] if begun else [dataset, *settings, "--out", folder]))


def do_all(jobs: Sequence[Job], do: Callable[[Job], None], at_once: int) -> list[str]:
    """Do every job, so many at once; return a line about each that failed."""

    def attempt(job: Job) -> str | None:
        try:
            do(job)
        except subprocess.CalledProcessError as error:
            return f"{job} failed: {error}"
        return None

    with ThreadPoolExecutor(at_once) as pool:
        return [line for line in pool.map(attempt, jobs) if line is not None]


def spread(values: Sequence[float]) -> str:
    """Return mean ± standard deviation, in points."""
    if not len(values):
        return "–"
    return f"{100 * np.mean(values):.2f} ± {100 * np.std(values, ddof=1) if len(values) > 1 else 0:.2f}"
