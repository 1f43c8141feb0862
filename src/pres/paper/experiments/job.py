"""A job: one measurement as plain values, named by what it measures, and the folder of its result."""

from __future__ import annotations

import hashlib
import json
import shutil
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pres.errors import UnreadableSourceError, one_line
from pres.storage import write_bytes

PICTURE = "figure.png"  # of jobs that draw one
Kind = Literal["dataset", "train", "memory", "speed", "state-space", "variance", "convergence", "coherence"]


@dataclass(frozen=True, eq=False)
class Job:
    """What to measure, described so that any machine that has the data can do it.

    Two jobs of the same settings are the same job, whoever asks for them.
    """

    kind: Kind
    settings: dict[str, Any]  # plain values; all that the result depends on

    @cached_property
    def key(self) -> str:
        """A short name for exactly these settings."""
        text = json.dumps([self.kind, self.settings], sort_keys=True, ensure_ascii=False)
        return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()

    @property
    def name(self) -> str:
        """The name of the job's folder: a few words for people, and the key."""
        words = [str(self.settings[word]) for word in ("model", "source") if word in self.settings]
        return "-".join([self.kind, *words, self.key])

    @property
    def alone(self) -> bool:
        """Whether nothing else may run beside it: what it measures is time."""
        return self.kind == "speed"

    @property
    def title(self) -> str:
        """What is measured, for people."""
        of = self.settings
        words: list[str] = [self.kind]
        words += [of["model"].upper()] if "model" in of else []
        words += [f"on {of['source']}"] if "source" in of else []
        if "arms" in of:
            return " ".join([*words, f"of {', '.join(of['arms'])}"])
        words += [f"b {of['batch_size']:,}"] if "batch_size" in of else []
        words += [f"step {of['step_size']:,}"] if of.get("step_size") else []
        words += [_smoothed(of["smoothing"])] if of.get("smoothing") is not None else []
        words += [f"β {of['beta']:g}"] if "beta" in of else []
        words += [f"lr {of['lr']:g}"] if "lr" in of else []
        words += [f"epochs {of['epochs']}"] if "epochs" in of else []
        words += [f"seed {of['seed']}"] if "seed" in of else []
        return " ".join(words)

    def to_dict(self) -> dict[str, Any]:
        """Return the job as plain values."""
        return {"kind": self.kind, "settings": self.settings}

    @classmethod
    def of(cls, saved: dict[str, Any]) -> Job:
        """Return the job of which `to_dict` made ``saved``."""
        return cls(saved["kind"], saved["settings"])


@dataclass(frozen=True)
class Point:
    """One place of the grid that an experiment spans, and the job that measures there."""

    factors: dict[str, Any]
    job: Job


def arm_name(smoothing: str, batch_size: int) -> str:
    """Return what an arm is called in a job that measures several."""
    return f"{smoothing} at {batch_size}"


def _smoothed(stated: dict[str, Any]) -> str:
    """Return what PRES does, as far as experiments vary it."""
    varied = [f"{name} {value}" for name, value in stated.items() if name != "published"]
    return " ".join([f"with PRES ({stated.get('published', 'ours')})", *varied])


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
