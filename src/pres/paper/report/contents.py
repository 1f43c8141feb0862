"""What a report tells, gathered from a folder: evidence, jobs, saved runs, and what they ran on."""

from __future__ import annotations

import base64
import json
import os
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pres import storage
from pres.errors import SourceNotFoundError, UnreadableSourceError, one_line
from pres.paper.experiments.evidence import Evidence, EvidenceFolder
from pres.paper.experiments.job import Job, read_json
from pres.paper.experiments.registry import EXPERIMENTS
from pres.paper.experiments.table import Cell, Heading, Table
from pres.training.folder import RunFolder

EVALUATION = "evaluation.json"  # in a run's folder: what `pres evaluate --out` wrote
_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}
_SETTINGS = [Heading(name, name) for name in ("run", "dataset", "model")]
_SETTINGS += [Heading("batch_size", "b"), Heading("step_size", "step")]
_SETTINGS += [Heading(name, name) for name in ("preset", "smoothing", "seed", "epochs")]
_VALIDATION = Heading("val_ap", "validation AP (%)", digits=2)
_AP, _AUC = Heading("ap", "AP (%)", digits=2), Heading("auc", "AUC (%)", digits=2)
_SECONDS = Heading("seconds", "seconds", repeatable=False)
_RUN = (*_SETTINGS, _VALIDATION, _AP, Heading("seconds", "s / epoch", repeatable=False))
_VALIDATION_AUC = Heading("auc", "validation AUC (%)", digits=2)
_EPOCH = (
    Heading("epoch", "epoch"),
    Heading("loss", "loss", digits=4),
    _VALIDATION,
    _VALIDATION_AUC,
    _SECONDS,
)
_GROUP = [Heading("scorer", "scorer"), Heading("strategy", "negatives")]
_GROUP += [Heading(name, name) for name in ("staleness", "group", "events")]
_RANKS = Heading("mrr", "MRR", digits=4), Heading("hits_10", "Hits@10 (%)")
_JOB = (Heading("job", "job"), _SECONDS, Heading("state", "state"))
Row = tuple[Cell, ...]


@dataclass(frozen=True)
class Picture:
    """A picture with all its bytes in its address."""

    name: str
    address: str


@dataclass(frozen=True)
class RunPage:
    """How one run went and how good it is."""

    name: str
    curve: Picture | None
    epochs: Table
    evaluation: Table | None
    evaluated: str  # what the evaluation is of, or the command that makes it
    grouped: bool  # whether it has rows of seen and unseen events


@dataclass(frozen=True)
class Told:
    """What a job or a run has to tell: its row, what it was told word for word, and how to do it again."""

    row: Row
    title: str
    settings: str
    command: str | None
    environment: dict[str, Any] | None  # None: there is no result yet
    page: RunPage | None = None  # of a run


@dataclass(frozen=True)
class Contents:
    """Everything that a report shows."""

    folder: str
    sections: tuple[tuple[Evidence, list[Picture]], ...]
    jobs: Table
    runs: Table
    pages: tuple[RunPage, ...]  # of the runs
    unfinished: tuple[str, ...]  # the folders of runs without a result
    told: tuple[Told, ...]  # of jobs and runs
    environments: tuple[dict[str, Any], ...]

    @property
    def failed(self) -> dict[str, str]:
        """The jobs without a result, of all experiments."""
        return {job: why for evidence, _ in self.sections for job, why in evidence.failed.items()}

    @property
    def skipped(self) -> dict[str, str]:
        """The datasets that are not in every table that asks for them, and why."""
        return {name: how for evidence, _ in self.sections for name, how in evidence.skipped.items()}


def gather(folder: Path) -> Contents:
    """Return what a folder of `pres reproduce`, or one with saved runs in it, has to tell."""
    if not folder.is_dir():
        raise SourceNotFoundError(
            f"{folder} is not a folder. Give that of 'pres reproduce', or one with runs."
        )
    sections = _sections(folder)
    jobs = [_told(_job, path) for path in sorted((folder / "jobs").glob("*/job.json"))]
    begun = [path.parent for path in sorted(folder.rglob("config.json")) if _is_run(path.parent)]
    runs = [_told(_run, path / "run.json", folder) for path in begun if RunFolder(path).finished]
    if not (sections or jobs or runs):
        raise SourceNotFoundError(
            f"{folder} holds neither results of 'pres reproduce' nor a finished run of 'pres train --out'."
        )
    environments = [one.environment for one in (*jobs, *runs) if one.environment is not None]
    return Contents(
        folder=folder.resolve().name or str(folder),
        sections=sections,
        jobs=Table(_JOB, tuple(job.row for job in jobs)),
        runs=Table(_RUN, tuple(run.row for run in runs)),
        pages=tuple(run.page for run in runs if run.page is not None),
        unfinished=tuple(str(path) for path in begun if not RunFolder(path).finished),
        told=(*jobs, *runs),
        environments=tuple({json.dumps(one, sort_keys=True): one for one in environments}.values()),
    )


def picture(path: Path) -> Picture:
    """Return a picture file as one address."""
    check_no_link(path)
    content = base64.b64encode(path.read_bytes()).decode()
    return Picture(path.stem, f"data:{_TYPES[path.suffix]};base64,{content}")


def check_no_link(path: Path) -> None:
    """Raise if a file to be shown is a link: a report holds nothing from outside the folder."""
    if path.is_symlink():
        raise UnreadableSourceError(
            f"{path} is a link, and a report shows only what lies in the folder. Put the file there, or "
            "remove the link."
        )


def _sections(folder: Path) -> tuple[tuple[Evidence, list[Picture]], ...]:
    """Return every experiment's evidence with its pictures, in the order of the experiments."""
    kept, order = EvidenceFolder(folder), list(EXPERIMENTS)
    names = sorted(kept.names(), key=lambda name: order.index(name) if name in order else len(order))
    found = [kept.read(name) for name in names]
    drawn = [[folder / "figures" / figure for figure in evidence.drawn] for evidence in found]
    pictures = [[picture(path) for path in paths if path.exists()] for paths in drawn]
    return tuple(zip(found, pictures, strict=True))


def _told(tell: Callable[..., Told], path: Path, *more: Path) -> Told:
    """Return what the job or run that a file is about has to tell."""
    for beside in path.parent.iterdir():
        check_no_link(beside)
    try:
        return tell(path, *more)
    except (AttributeError, KeyError, TypeError) as error:
        raise UnreadableSourceError(
            f"{path} or a file beside it is damaged: {one_line(error)}. Remove its folder and run again."
        ) from None


def _job(path: Path) -> Told:
    job, folder = Job.of(read_json(path)), path.parent
    result = read_json(folder / "result.json") if (folder / "result.json").exists() else None
    if result is not None:
        state = "done"
    elif (folder / "failed.json").exists():
        state = f"failed: {read_json(folder / 'failed.json')['error']}"
    else:
        state = "not finished"
    row = job.title, None if result is None else float(result["seconds"]), state
    environment = None if result is None else result["environment"]
    return Told(row, f"{job.title} ({state})", _shown(job.to_dict()), None, environment)


def _shown(settings: dict[str, Any]) -> str:
    return json.dumps(settings, indent=1, ensure_ascii=False)


def _is_run(path: Path) -> bool:
    """Return whether a folder holds a run of its own, not that of a job."""
    a_job = path.name == "run" and (path.parent / "job.json").exists()
    return (path / "events.json").exists() and not a_job


def _run(file: Path, root: Path) -> Told:
    path, run = file.parent, RunFolder(file.parent).result()
    shown = str(path.relative_to(root)) if path != root else path.resolve().name
    variant = "" if run["variant"] is None else f" ({run['variant']})"
    smoothing = run["config"]["smoothing"]
    smoothed = "none" if smoothing is None else smoothing["method"]
    sizes = run["batch_size"], run["step_size"], run["config"]["preset"], smoothed
    about = shown, run["dataset"] + variant, run["model"], *sizes, run["seed"], run["epochs"]
    scores = 100 * run["val"]["ap"], 100 * run["test"]["ap"], float(run["seconds_per_epoch"])
    return Told(
        row=(*about, *scores),
        title=f"{run['model']} on {run['dataset']}: {shown}",
        settings=_shown(RunFolder(path).config()),
        command=_train_again(path) if RunFolder(path).repeatable else None,
        environment=run["environment"],
        page=_page(path, shown, run),
    )


def _page(path: Path, shown: str, run: dict[str, Any]) -> RunPage:
    """Return how a run went and, if it was evaluated, how good it is beside the baselines."""
    epochs = tuple(
        (one["epoch"], one["loss"], *_percent(one["val"]), float(one["seconds"])) for one in run["history"]
    )
    curve, kept = path / "learning.png", path / EVALUATION
    found = evaluation_of(path)
    evaluation, grouped = None, False
    evaluated = shlex.join(["pres", "evaluate", str(path), "--out", str(kept)])
    if found is not None:
        rows = [row for row in found["rows"] if row["metrics"] is not None]
        grouped = len(rows) == len(found["rows"])
        if not grouped:  # all events are seen, or all unseen: groups say nothing
            rows = [row for row in rows if row["group"] == "all"]
        evaluation = Table((*_GROUP, _AP, _AUC, *_RANKS), tuple(map(_evaluated, rows)))
        part = {"test": "test", "val": "validation"}[found["part"]]
        evaluated = (
            f"{found['events']:,} events of the {part} part, from {found['begins']} to {found['ends']}. "
            f"AP and AUC are against one negative per event, ranks among {found['negatives']:,}."
        )
    drawn = picture(curve) if curve.exists() else None
    return RunPage(shown, drawn, Table(_EPOCH, epochs), evaluation, evaluated, grouped)


def evaluation_of(path: Path) -> dict[str, Any] | None:
    """Return the evaluation kept with a run; None if there is none, or of weights that it had before."""
    kept = path / EVALUATION
    found = storage.read_json(kept) if kept.exists() else None
    of_its_weights = found is not None and found["best_epoch"] == RunFolder(path).result()["best_epoch"]
    return found if of_its_weights else None


def _evaluated(row: dict[str, Any]) -> Row:
    of, found = (row["scorer"], row["strategy"], row["staleness"], row["group"]), row["metrics"]
    return (*of, found["events"], *_percent(found), found["mrr"], 100 * found["hits_10"])


def _percent(metrics: dict[str, Any]) -> tuple[float, float]:
    """Return AP and AUC in per cent."""
    return 100 * metrics["ap"], 100 * metrics["auc"]


def _train_again(path: Path) -> str:
    """Return the command that trains a run once more, in a folder beside it."""
    beside = os.path.normpath(path / ".." / f"{path.resolve().name}-again")
    return shlex.join(["pres", "train", "--config", str(path / "config.json"), "--out", beside])
