"""Experiments as jobs: each done once, whoever asks for it; what was interrupted goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from filelock import FileLock, Timeout

from pres.errors import OptionError, StorageError
from pres.experiments.available import look
from pres.experiments.declaration import Experiment, Request
from pres.experiments.evidence import Evidence, collect
from pres.experiments.executor import Executor
from pres.experiments.folder import JobFolder
from pres.experiments.job import Job
from pres.experiments.registry import EXPERIMENTS
from pres.experiments.size import Size
from pres.storage import storage_errors
from pres.training.folder import RunFolder


@dataclass(frozen=True)
class Progress:
    """Where a reproduction stands, after a job has ended."""

    job: Job
    error: str | None
    done: int  # jobs, with those that were finished before
    total: int


@dataclass(frozen=True)
class Reproduction:
    """What the asked experiments found, and the jobs that have no result."""

    evidence: tuple[Evidence, ...]
    failures: dict[str, str]  # by the name of the job's folder
    jobs: int  # that all experiments together needed
    repeated: int  # of them, those that were finished before


def ask(
    experiments: Sequence[Experiment],
    size: Size,
    seeds: int | None = None,
    datasets: Sequence[str] | None = None,
) -> tuple[Request, dict[str, str]]:
    """Return what is asked for, and the datasets that it wants but that are not at hand."""
    if seeds is not None and seeds < 1:
        raise OptionError(f"seeds={seeds}: repeat at least once.")
    wanted = datasets or [name for experiment in experiments for name in experiment.datasets]
    copies, missing = look(wanted)
    named = None if not datasets else tuple(dict.fromkeys(name.casefold() for name in datasets))
    return Request(size, seeds or size.seeds, copies, named), missing


def reproduce(
    experiments: Sequence[Experiment],
    size: Size,
    root: Path,
    executor: Executor,
    *,
    seeds: int | None = None,
    datasets: Sequence[str] | None = None,
    command: Callable[[str], str] = lambda name: f"pres reproduce {name}",
    on_progress: Callable[[Progress], None] | None = None,
) -> Reproduction:
    """Do what the experiments need and is not done yet, and return what they found.

    Interrupted at any moment, the same call goes on: finished jobs stay, a training run goes on from its last
    state, and the tables are those of a call that was never interrupted, times apart.

    Args:
        experiments: Those to do; jobs that several need are done once.
        size: How large.
        root: The folder that keeps jobs, evidence and figures.
        executor: What runs the jobs.
        seeds: How often each is repeated; as the size says by default.
        datasets: Instead of those of each experiment.
        command: The command line that gives an experiment again.
        on_progress: Called after every job.
    """
    request, missing = ask(experiments, size, seeds, datasets)
    jobs = _jobs(experiments, request)
    with storage_errors(root, "Choose another folder."):
        root.mkdir(parents=True, exist_ok=True)
    lock = FileLock(root / ".lock")
    with storage_errors(root / ".lock", "Choose another folder."):
        try:
            lock.acquire(blocking=False)
        except Timeout:  # which is an error of the system, too
            raise StorageError(
                f"another 'pres reproduce' is at work in {root}. Wait for it, or choose another folder."
            ) from None
    try:
        failures, before = _do(jobs, partial(_needed_states, request, root), root, executor, on_progress)
        evidence = tuple(
            collect(one, request, root, missing, failures, command(one.name)) for one in experiments
        )
    finally:
        lock.release()
    return Reproduction(evidence, failures, len(jobs), before)


def _jobs(experiments: Iterable[Experiment], request: Request) -> dict[str, Job]:
    """Return every job that the experiments need, by name, those first that others need."""
    asked = [point.job for experiment in experiments for point in experiment.points(request)]
    needed = [job.needs for job in asked if job.needs is not None]
    return {job.name: job for job in (*needed, *asked)}


def _needed_states(request: Request, root: Path) -> set[str]:
    """Return the training jobs whose state some experiment of this size still needs, now or later."""
    points = [point for experiment in EXPERIMENTS.values() for point in experiment.points(request)]
    open_jobs = [point.job for point in points if not JobFolder(root, point.job).finished]
    return {job.needs.name for job in open_jobs if job.needs is not None}


def _do(
    jobs: dict[str, Job],
    needed_states: Callable[[], set[str]],
    root: Path,
    executor: Executor,
    on_progress: Callable[[Progress], None] | None,
) -> tuple[dict[str, str], int]:
    """Do the jobs that are not done; return why some failed, and how many were done before."""
    wanted = {job.needs.name for job in jobs.values() if job.needs and not JobFolder(root, job).finished}

    def done(job: Job) -> bool:
        folder = JobFolder(root, job)
        return folder.finished and (job.name not in wanted or RunFolder(folder.run).finished)

    waves: tuple[list[Job], list[Job]] = ([], [])
    for job in jobs.values():
        if not done(job):
            waves[job.needs is not None].append(job)
    before = finished = len(jobs) - sum(map(len, waves))
    failures: dict[str, str] = {}
    needed = needed_states()

    def ended(job: Job, error: str | None) -> None:
        nonlocal finished
        finished += 1
        if error is not None:
            failures[job.name] = error
        elif job.kind == "train" and job.name not in needed:
            JobFolder(root, job).forget_run()
        if on_progress is not None:
            on_progress(Progress(job, error, finished, len(jobs)))

    for wave in waves:
        possible = []
        for job in wave:
            if job.needs is not None and job.needs.name in failures:
                ended(job, f"what it needs failed: {failures[job.needs.name]}")
            else:
                possible.append(job)
        for outcome in executor.run(possible, root):
            ended(outcome.job, outcome.error)
    needed = needed_states() | failures.keys()
    for job in jobs.values():
        if job.kind == "train" and job.name not in needed:
            JobFolder(root, job).forget_run()
    return failures, before
