"""What a report tells, gathered from a folder: evidence, jobs, saved runs, and what they ran on."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pres.errors import SourceNotFoundError
from pres.experiments.evidence import Evidence, EvidenceFolder
from pres.experiments.folder import read_json
from pres.experiments.job import Job
from pres.experiments.registry import EXPERIMENTS
from pres.experiments.table import Heading, Table

_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
_RUN_HEADINGS = (
    Heading("run", "run"),
    Heading("dataset", "dataset"),
    Heading("model", "model"),
    Heading("batch_size", "b"),
    Heading("step_size", "step"),
    Heading("smoothing", "PRES"),
    Heading("seed", "seed"),
    Heading("epochs", "epochs"),
    Heading("val_ap", "validation AP (%)", digits=2),
    Heading("ap", "AP (%)", digits=2),
    Heading("seconds", "s / epoch", repeatable=False),
)
_JOB_HEADINGS = (
    Heading("job", "job"),
    Heading("seconds", "seconds", repeatable=False),
    Heading("state", "state"),
)


@dataclass(frozen=True)
class Picture:
    """A picture with all its bytes in its address."""

    name: str
    address: str


@dataclass(frozen=True)
class Section:
    """One experiment with its pictures."""

    evidence: Evidence
    pictures: tuple[Picture, ...]


@dataclass(frozen=True)
class Settings:
    """What a job or a run was told, word for word, and how to do it again."""

    name: str
    title: str
    text: str
    command: str | None
    picture: Picture | None = None


@dataclass(frozen=True)
class Contents:
    """Everything that a report shows."""

    folder: str
    sections: tuple[Section, ...]
    jobs: Table
    runs: Table
    settings: tuple[Settings, ...]
    environments: tuple[dict[str, Any], ...]

    @property
    def failed(self) -> dict[str, str]:
        """The jobs without a result, of all experiments."""
        return {job: why for section in self.sections for job, why in section.evidence.failed.items()}

    @property
    def skipped(self) -> dict[str, str]:
        """The datasets that are not at hand, of all experiments."""
        return {name: how for section in self.sections for name, how in section.evidence.skipped.items()}


def gather(folder: Path) -> Contents:
    """Return what a folder of `pres reproduce`, or one with saved runs in it, has to tell."""
    if not folder.is_dir():
        raise SourceNotFoundError(
            f"{folder} is not a folder. Give that of 'pres reproduce', or one with runs."
        )
    sections = _sections(folder)
    jobs = list(_jobs(folder))
    runs = [(path.parent, read_json(path)) for path in sorted(folder.rglob("run.json")) if _is_run(path)]
    own = [(path, run) for path, run in runs if path.name != "run" or not (path.parent / "job.json").exists()]
    if not (sections or jobs or own):
        raise SourceNotFoundError(
            f"{folder} holds neither results of 'pres reproduce' nor a finished run of 'pres train --out'."
        )
    environments = [run["environment"] for _, run in own]
    environments += [result["environment"] for _, result, _ in jobs if result is not None]
    return Contents(
        folder=folder.name or str(folder),
        sections=sections,
        jobs=Table(_JOB_HEADINGS, tuple(_job_row(*job) for job in jobs)),
        runs=Table(_RUN_HEADINGS, tuple(_run_row(path.relative_to(folder), run) for path, run in own)),
        settings=(*map(_job_settings, jobs), *(_run_settings(folder, *run) for run in own)),
        environments=_distinct(environments),
    )


def picture(path: Path) -> Picture:
    """Return a picture file as one address."""
    content = base64.b64encode(path.read_bytes()).decode()
    return Picture(path.stem, f"data:{_TYPES[path.suffix]};base64,{content}")


def _sections(folder: Path) -> tuple[Section, ...]:
    kept = EvidenceFolder(folder)
    order = list(EXPERIMENTS)
    names = sorted(kept.names(), key=lambda name: order.index(name) if name in order else len(order))
    sections = []
    for name in names:
        evidence = kept.read(name)
        drawn = [folder / "figures" / figure for figure in evidence.drawn]
        sections.append(Section(evidence, tuple(picture(path) for path in drawn if path.exists())))
    return tuple(sections)


_DoneJob = tuple[Job, dict[str, Any] | None, str]


def _jobs(folder: Path) -> Iterable[_DoneJob]:
    """Yield every job, its result if there is one, and how it stands."""
    for path in sorted((folder / "jobs").glob("*/job.json")):
        job = Job.of(read_json(path))
        if (path.parent / "result.json").exists():
            yield job, read_json(path.parent / "result.json"), "done"
        elif (path.parent / "failed.json").exists():
            yield job, None, "failed: " + str(read_json(path.parent / "failed.json")["error"])
        else:
            yield job, None, "not finished"


def _job_row(job: Job, result: dict[str, Any] | None, state: str) -> tuple[str, float | None, str]:
    return job.title, None if result is None else float(result["seconds"]), state


def _job_settings(done: _DoneJob) -> Settings:
    job, _, state = done
    text = json.dumps(job.to_dict(), indent=1, ensure_ascii=False)
    return Settings(job.name, f"{job.title} ({state})", text, None)


def _is_run(path: Path) -> bool:
    return (path.parent / "config.json").exists()


def _run_row(path: Path, run: dict[str, Any]) -> tuple[Any, ...]:
    variant = "" if run["variant"] is None else f" ({run['variant']})"
    scores = 100 * run["val"]["ap"], 100 * run["test"]["ap"], float(run["seconds_per_epoch"])
    smoothed = "without" if run["config"]["smoothing"] is None else "PRES"
    sizes = run["batch_size"], run["step_size"], smoothed, run["seed"], run["epochs"]
    return (str(path), run["dataset"] + variant, run["model"], *sizes, *scores)


def _run_settings(folder: Path, path: Path, run: dict[str, Any]) -> Settings:
    shown = path.relative_to(folder)
    curve = path / "learning.png"
    return Settings(
        name=str(shown),
        title=f"{run['model']} on {run['dataset']}: {shown}",
        text=json.dumps(read_json(path / "config.json"), indent=1, ensure_ascii=False),
        command=shlex.join(
            ["pres", "train", "--config", str(path / "config.json"), "--out", f"{path}-again"]
        ),
        picture=picture(curve) if curve.exists() else None,
    )


def _distinct(environments: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], ...]:
    return tuple({json.dumps(one, sort_keys=True): one for one in environments}.values())
