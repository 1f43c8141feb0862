"""How jobs are run, apart from what they are: processes of this machine now, a cluster's engine later."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import threading
from collections.abc import Iterator, Sequence
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from pres.paper.experiments.job import Job

PRELOADED = ["pres.paper.experiments.work", "torch._dynamo"]  # the second is what every optimiser imports
PATIENCE = 60.0  # seconds that a job asked to stop has to reach the end of its batch and keep its state


class Outcome(NamedTuple):
    """That a job has ended, and why without a result if so; the result itself is in its folder."""

    job: Job
    error: str | None


class Executor(Protocol):
    """Runs jobs that do not depend on each other."""

    def run(self, jobs: Sequence[Job], root: Path) -> Iterator[Outcome]:
        """Do all jobs, in any order and place, and yield each as it ends.

        A job is done by `perform`, which leaves its result in the job's folder under ``root``. Whoever stops
        listening stops the jobs.
        """
        ...


class LocalProcesses:
    """Runs so many jobs at once, each in a process of its own with one thread.

    A process that dies (killed, out of memory) is a failure of its job alone. If this process dies, however
    it does, the others follow at once, so that none writes where a later attempt goes on.
    """

    def __init__(self, at_once: int = 1) -> None:
        self.at_once = at_once
        methods = multiprocessing.get_all_start_methods()
        # A server that has imported everything once makes a fresh process in no time.
        self.context: Any = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
        if "forkserver" in methods:
            self.context.set_forkserver_preload(PRELOADED)

    def run(self, jobs: Sequence[Job], root: Path) -> Iterator[Outcome]:
        """Do all jobs and yield each as it ends."""
        waiting = list(reversed(jobs))
        working: dict[Any, tuple[BaseProcess, Job, Any]] = {}
        try:
            while waiting or working:
                while waiting and len(working) < self.at_once:
                    job = waiting.pop()
                    process, answer = self._start(job, root)
                    working[process.sentinel] = (process, job, answer)
                for sentinel in wait(list(working)):
                    process, job, answer = working.pop(sentinel)
                    process.join()
                    yield Outcome(job, _answer(answer, process.exitcode))
        finally:
            _stop([process for process, _, _ in working.values()])

    def _start(self, job: Job, root: Path) -> tuple[BaseProcess, Any]:
        receiver, sender = self.context.Pipe(duplex=False)
        process = self.context.Process(target=_work, args=(job.to_dict(), str(root), sender))
        process.start()
        sender.close()
        return process, receiver


def _work(job: dict[str, Any], root: str, sender: Any) -> None:
    """Do one job, as the whole life of a process."""
    if hasattr(os, "setpgid"):
        os.setpgid(0, 0)  # Ctrl-C is for the process that asks; it asks this one to stop
    threading.Thread(target=_die_with_the_parent, daemon=True).start()
    from pres.paper.experiments.work import perform

    try:
        sender.send(perform(Job.of(job), Path(root)))
    except KeyboardInterrupt:  # asked to stop, with the state kept
        os._exit(130)


def _die_with_the_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    wait([parent.sentinel])
    os._exit(1)


def _answer(receiver: Any, exit_code: int | None) -> str | None:
    """Return what the process said of its job, or how it died without a word."""
    try:
        error: str | None = receiver.recv()
    except (EOFError, OSError):
        return f"its process ended with exit code {exit_code}, without a word (killed, or out of memory?)"
    finally:
        receiver.close()
    return error


def _stop(processes: Sequence[BaseProcess]) -> None:
    """Ask processes to stop between two batches, and end those that do not."""
    for process in processes:
        process.terminate()
    for process in processes:
        process.join(PATIENCE)
        if process.is_alive():
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            process.join()
