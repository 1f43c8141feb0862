"""The folder of a job: what to measure, and once that is done what came of it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from pres.errors import UnreadableSourceError, one_line
from pres.paper.experiments.job import Job
from pres.storage import write_bytes

PICTURE = "figure.png"  # of jobs that draw one


class JobFolder:
    """The files of one job: ``job.json``, and either ``result.json`` or ``failed.json``, written last.

    A training job also has its run in the folder ``run``, until it has a result.
    """

    def __init__(self, root: Path, job: Job) -> None:
        self.job, self.path = job, root / "jobs" / job.name

    @property
    def run(self) -> Path:
        """Where the run of a training job is."""
        return self.path / "run"

    @property
    def finished(self) -> bool:
        """Whether there is a result."""
        return (self.path / "result.json").exists()

    def begin(self) -> None:
        """Write what is to be measured; what an earlier attempt said is forgotten."""
        write_json(self.path / "job.json", self.job.to_dict())
        (self.path / "failed.json").unlink(missing_ok=True)

    def finish(self, result: dict[str, Any]) -> None:
        """Write the result, in one step."""
        write_json(self.path / "result.json", result)

    def fail(self, error: str, traceback: str) -> None:
        """Write why there is no result."""
        write_json(self.path / "failed.json", {"error": error, "traceback": traceback})

    def result(self) -> dict[str, Any]:
        """Return the result."""
        return read_json(self.path / "result.json")

    def forget_run(self) -> None:
        """Remove the run with its states; the result stays."""
        forgotten = self.path / "forgotten"
        shutil.rmtree(forgotten, ignore_errors=True)
        if self.run.exists():
            self.run.replace(forgotten)  # in one step, so that no half of it is ever taken for a run
        shutil.rmtree(forgotten, ignore_errors=True)


def write_json(path: Path, value: Any) -> Path:
    """Write plain values, in one step."""
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    return write_bytes(path, text.encode())


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a file."""
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise UnreadableSourceError(
            f"{path} is damaged: {one_line(error)}. Remove it and run again."
        ) from None
    if not isinstance(found, dict):
        raise UnreadableSourceError(f"{path} is damaged: it holds no object. Remove it and run again.")
    return found
