"""All experiments at a glance: what each shows, how long it takes, and what is done of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pres.paper.experiments.budget import Budget
from pres.paper.experiments.evidence import EvidenceFolder
from pres.paper.experiments.job import Job, JobFolder
from pres.paper.experiments.paper import DATASETS
from pres.paper.experiments.registry import EXPERIMENTS
from pres.paper.experiments.runner import ask, jobs_of
from pres.paper.experiments.table import Heading, Table

# What training took on one core of ours (`docs/results/full/jobs.parquet`), evaluations included: seconds for
# an event and an epoch, by model, and for a batch.
SECONDS_OF_EVENT, SECONDS_OF_BATCH = {"tgn": 70e-6, "jodie": 10e-6, "apan": 20e-6}, 2e-3


_HEADINGS = {"title": "shows", "shown": "evidence", "missing": "not at hand"}  # others are called as they are


def listed(
    budget: Budget, seeds: int | None, datasets: Sequence[str] | None, root: Path
) -> list[dict[str, Any]]:
    """Return all experiments, with what the folder ``root`` has of them.

    ``hours`` are of one core, for all jobs: as they took if they are done, None if they are not known.
    ``shown`` is whether there is evidence in the folder.
    """
    experiments, known = list(EXPERIMENTS.values()), EvidenceFolder(root).names()
    request, missing = ask(experiments, budget, seeds, datasets)
    request.copies.update(dict.fromkeys(missing, "missing"))  # as if they were here
    found = []
    for one in experiments:
        folders = [JobFolder(root, job) for job in jobs_of([one], request).values()]
        done = [float(folder.result()["seconds"]) for folder in folders if folder.finished]
        seconds = [*done, *(expected_seconds(folder.job) for folder in folders if not folder.finished)]
        found.append(
            {
                "name": one.name,
                "title": one.title,
                "where": one.where,
                "jobs": len(folders),
                "done": len(done),
                "hours": None if None in seconds else sum(each or 0.0 for each in seconds) / 3600,
                "shown": one.name in known,
                "missing": [name for name in one.asked(request) if name in missing],
            }
        )
    return found


def as_table(found: Sequence[dict[str, Any]]) -> Table:
    """Return the list for people."""
    headings = tuple(Heading(name, _HEADINGS.get(name, name)) for name in found[0])
    return Table(headings, tuple((*list(one.values())[:-1], ", ".join(one["missing"])) for one in found))


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
