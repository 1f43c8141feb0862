"""All experiments at a glance: what each shows, how long it takes, and what is done of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pres.paper.experiments.budget import Budget
from pres.paper.experiments.evidence import EvidenceFolder
from pres.paper.experiments.folder import JobFolder
from pres.paper.experiments.job import Job
from pres.paper.experiments.paper import DATASETS
from pres.paper.experiments.registry import EXPERIMENTS
from pres.paper.experiments.runner import ask, jobs_of
from pres.paper.experiments.table import Heading, Table

# What training took on one core of ours (`docs/results/full/jobs.parquet`), evaluations included: seconds for
# an event and an epoch, by model, and for a batch.
SECONDS_OF_EVENT, SECONDS_OF_BATCH = {"tgn": 70e-6, "jodie": 10e-6, "apan": 20e-6}, 2e-3


@dataclass(frozen=True)
class Listed:
    """One experiment at one budget."""

    name: str
    title: str
    where: str  # in the paper
    jobs: int
    done: int  # of the jobs, in the folder
    hours: float | None  # of one core, for all jobs: as they took if they are done; None: not known
    shown: bool  # whether there is evidence in the folder
    missing: tuple[str, ...]  # datasets that are not at hand

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)


def listed(budget: Budget, seeds: int | None, datasets: Sequence[str] | None, root: Path) -> list[Listed]:
    """Return all experiments, with what the folder ``root`` has of them."""
    experiments, known = list(EXPERIMENTS.values()), EvidenceFolder(root).names()
    request, missing = ask(experiments, budget, seeds, datasets)
    request.copies.update(dict.fromkeys(missing, "missing"))  # as if they were here
    found = []
    for one in experiments:
        jobs = jobs_of([one], request)
        done = {name for name, job in jobs.items() if JobFolder(root, job).finished}
        seconds = [
            float(JobFolder(root, job).result()["seconds"]) if name in done else expected_seconds(job)
            for name, job in jobs.items()
        ]
        hours = None if None in seconds else sum(each or 0.0 for each in seconds) / 3600
        lacking = tuple(name for name in one.asked(request) if name in missing)
        about = one.name, one.title, one.where, len(jobs), len(done), hours
        found.append(Listed(*about, one.name in known, lacking))
    return found


def expected_seconds(job: Job) -> float | None:
    """Return about how long a job takes, or None where nothing is known of its kind."""
    if job.kind == "dataset":
        return 1.0
    of = job.settings
    if job.kind not in ("train", "memory", "speed") or of["source"] not in DATASETS:
        return None
    events = of["events"] or DATASETS[of["source"]][1]
    arms = [of | arm for arm in of.get("arms", {"": {}}).values()]
    epochs = 1 + of["rounds"] if job.kind == "speed" else of["epochs"]
    of_event = [SECONDS_OF_EVENT[of["model"]] + SECONDS_OF_BATCH / arm["batch_size"] for arm in arms]
    return float(epochs * events * sum(of_event))


def as_table(found: Sequence[Listed]) -> Table:
    """Return the list for people."""
    headings = (
        Heading("name", "name"),
        Heading("shows", "shows"),
        Heading("where", "where"),
        Heading("jobs", "jobs"),
        Heading("done", "done"),
        Heading("hours", "hours"),
        Heading("shown", "evidence"),
        Heading("missing", "not at hand"),
    )
    rows = [
        (one.name, one.title, one.where, one.jobs, one.done, one.hours, one.shown, ", ".join(one.missing))
        for one in found
    ]
    return Table(headings, tuple(rows))
