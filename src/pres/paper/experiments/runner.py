"""Experiments as jobs: each done once, whoever asks for it; what was interrupted goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from pres.errors import OptionError
from pres.paper.experiments.available import copies_at_hand
from pres.paper.experiments.budget import Budget
from pres.paper.experiments.declaration import Experiment, Request
from pres.paper.experiments.evidence import Evidence, collect
from pres.paper.experiments.executor import Executor
from pres.paper.experiments.job import Job, JobFolder
from pres.paper.experiments.kept import KeptResults
from pres.storage import storage_errors, taken


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
    budget: Budget,
    seeds: int | None = None,
    datasets: Sequence[str] | None = None,
) -> tuple[Request, dict[str, str]]:
    """Return what is asked for, and the datasets that it wants but that are not at hand."""
    if seeds is not None and seeds < 1:
        raise OptionError(f"seeds={seeds}: repeat at least once.")
    wanted = datasets or [name for experiment in experiments for name in experiment.datasets]
    copies, missing = copies_at_hand(wanted)
    named = None if not datasets else tuple(dict.fromkeys(name.casefold() for name in datasets))
    return Request(budget, seeds, copies, named), missing


def jobs_of(experiments: Iterable[Experiment], request: Request) -> dict[str, Job]:
    """Return every job that the experiments need, by name."""
    return {point.job.name: point.job for one in experiments for point in one.points(request)}


def reproduce(
    experiments: Sequence[Experiment],
    budget: Budget,
    root: Path,
    executor: Executor | None,
    *,
    seeds: int | None = None,
    datasets: Sequence[str] | None = None,
    results: KeptResults | None = None,
    command: Callable[[str], str] = lambda name: f"pres reproduce {name}",
    on_progress: Callable[[Progress], object] = lambda progress: None,
) -> Reproduction:
    """Do what the experiments need and is not done yet, and return what they found.

    Interrupted at any moment, the same call goes on: finished jobs stay, a training run goes on from its last
    state, and the tables are those of a call that was never interrupted, times apart.

    Args:
        experiments: Those to do; jobs that several need are done once.
        budget: How much is spent.
        root: The folder that keeps jobs, evidence and figures.
        executor: What runs the jobs; None runs none and shows what is done so far.
        seeds: How often each is repeated; as the budget says by default.
        datasets: Instead of those of each experiment.
        results: A file of finished jobs: those in it are not done again, and others are added as they end.
        command: The command line that gives an experiment again.
        on_progress: Called after every job.
    """
    request, missing = ask(experiments, budget, seeds, datasets)
    jobs = jobs_of(experiments, request)
    with storage_errors(root, "Choose another folder."):
        root.mkdir(parents=True, exist_ok=True)
    failures: dict[str, str] = {}
    with nullcontext() if executor is None else taken(root / ".lock", root):
        if results is not None:
            results.restore(jobs.values(), root)
        waiting = [job for job in jobs.values() if not JobFolder(root, job).finished]
        done = before = len(jobs) - len(waiting)
        if executor is not None:
            if results is not None:
                results.add_missing(JobFolder(root, job) for job in jobs.values())
            for job, error in _outcomes(waiting, root, executor):
                done += 1
                if error is not None:
                    failures[job.name] = error
                elif results is not None:
                    results.add(JobFolder(root, job))
                on_progress(Progress(job, error, done, len(jobs)))
        evidence = tuple(
            collect(one, request, root, missing, failures, command(one.name)) for one in experiments
        )
    return Reproduction(evidence, failures, len(jobs), before)


def _outcomes(jobs: Sequence[Job], root: Path, executor: Executor) -> Iterator[tuple[Job, str | None]]:
    """Do the jobs, those that measure time by themselves at the end, and yield each as it ends."""
    yield from executor.run([job for job in jobs if not job.alone], root)
    for job in jobs:
        if job.alone:
            yield from executor.run([job], root)
