"""Experiments as jobs: each done once, whoever asks for it; what was interrupted goes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from pres.errors import OptionError, StorageError
from pres.paper.experiments.available import look
from pres.paper.experiments.declaration import Experiment, Request
from pres.paper.experiments.evidence import Evidence, collect
from pres.paper.experiments.executor import Executor, NoJobs
from pres.paper.experiments.folder import JobFolder
from pres.paper.experiments.job import Job
from pres.paper.experiments.kept import KeptResults
from pres.paper.experiments.size import Size
from pres.storage import storage_errors


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
    return Request(size, seeds, copies, named), missing


def reproduce(
    experiments: Sequence[Experiment],
    size: Size,
    root: Path,
    executor: Executor,
    *,
    seeds: int | None = None,
    datasets: Sequence[str] | None = None,
    results: KeptResults | None = None,
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
        results: A file of finished jobs: those in it are not done again, and others are added as they end.
        command: The command line that gives an experiment again.
        on_progress: Called after every job.
    """
    request, missing = ask(experiments, size, seeds, datasets)
    jobs = _jobs(experiments, request)
    with storage_errors(root, "Choose another folder."):
        root.mkdir(parents=True, exist_ok=True)
    with nullcontext() if isinstance(executor, NoJobs) else _alone_in(root):
        if results is not None:
            results.restore(jobs.values(), root)
        failures, before = _do(jobs, root, executor, results, on_progress)
        evidence = tuple(
            collect(one, request, root, missing, failures, command(one.name)) for one in experiments
        )
    return Reproduction(evidence, failures, len(jobs), before)


@contextmanager
def _alone_in(root: Path) -> Iterator[None]:
    """Raise if another reproduction does jobs in the folder; keep others out of it."""
    lock = FileLock(root / ".lock")
    with storage_errors(root / ".lock", "Choose another folder."):
        try:
            lock.acquire(blocking=False)
        except Timeout:  # which is an error of the system, too
            raise StorageError(
                f"another 'pres reproduce' is at work in {root}. Wait for it, or choose another folder."
            ) from None
    try:
        yield
    finally:
        lock.release()


def _jobs(experiments: Iterable[Experiment], request: Request) -> dict[str, Job]:
    """Return every job that the experiments need, by name."""
    return {point.job.name: point.job for one in experiments for point in one.points(request)}


def _do(
    jobs: dict[str, Job],
    root: Path,
    executor: Executor,
    results: KeptResults | None,
    on_progress: Callable[[Progress], None] | None,
) -> tuple[dict[str, str], int]:
    """Do the jobs that are not done; return why some failed, and how many were done before."""
    waiting = [job for job in jobs.values() if not JobFolder(root, job).finished]
    before = finished = len(jobs) - len(waiting)
    failures: dict[str, str] = {}
    if results is not None and not isinstance(executor, NoJobs):
        for job in jobs.values():
            if job.name not in results and JobFolder(root, job).finished:  # its end was not heard of
                results.add(JobFolder(root, job))
    together = [[job for job in waiting if not job.alone], *([job] for job in waiting if job.alone)]
    for outcome in (ended for some in together for ended in executor.run(some, root)):
        finished += 1
        if outcome.error is not None:
            failures[outcome.job.name] = outcome.error
        elif results is not None:
            results.add(JobFolder(root, outcome.job))
        if on_progress is not None:
            on_progress(Progress(outcome.job, outcome.error, finished, len(jobs)))
    return failures, before
