"""A process that trains and dies at a step of its storage, forked from one that has imported everything."""

from __future__ import annotations

import os
import signal
import sys
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
import torch._dynamo  # which the first optimiser imports; here it is done once for all children

import pres
from pres.errors import Notice, PresError
from pres.models.registry import build_model
from pres.storage import write_bytes
from pres.training import folder
from pres.training.checkpoint import EpochResult
from pres.training.trainer import Trainer

FORKSERVER = get_context("forkserver")
FORKSERVER.set_forkserver_preload(["tests.faults.child"])
SMALL: dict[str, dict[str, Any]] = {
    "tgn": {"memory_dim": 8, "embedding_dim": 8, "time_dim": 4, "neighbours": 2},
    "jodie": {"memory_dim": 8, "time_dim": 4},
    "apan": {"memory_dim": 8, "time_dim": 4},
}
REFUSED, INTERRUPTED, TRACEBACK = 1, 130, 99
OF_THE_SYSTEM = ("os.rename", "os.link", "os.remove", "os.mkdir", "os.rmdir", "os.truncate")


@dataclass(frozen=True)
class Case:
    """A training of a small stream, and where it is killed."""

    out: str
    model: str = "jodie"
    smoothing: bool = False
    scan: bool = False  # with the settings of the preset
    resume: bool = False
    step: int | None = None  # of storage, counted from 1; None: it is not killed there
    batch: int | None = None  # counted from 1
    signal: int = signal.SIGKILL
    options: dict[str, Any] = field(default_factory=dict)


EVENTS = pres.load("synthetic", num_events=300)


def train(case: Case) -> pres.Run:
    """Train, or go on."""
    options = SMALL[case.model]
    settings: dict[str, Any] = {"batch_size": 70, "epochs": 2, "patience": None, "step_size": 140}
    if case.scan:
        options = options | {"cell": "scan"}
        settings["preset"] = "large"
    if case.smoothing:
        settings["smoothing"] = pres.PRES(filter=not case.scan)
    torch.manual_seed(0)
    model = build_model(case.model, EVENTS, options)
    return pres.fit(model, EVENTS, out=case.out, resume=case.resume, **settings | case.options)


class Killing:
    """Counts what a process does to the files of a run and its batches, and kills it at one of them.

    A step is the opening of a file to write, a rename, a link, a removal, a new folder, or a wait for the
    disk.
    """

    def __init__(self, case: Case) -> None:
        self.case, self.steps, self.batches = case, "", 0  # a letter for each step: w for a wait
        self.root = str(Path(case.out).parent)

    def step(self, letter: str) -> None:
        """Count a step of storage, before it is done."""
        self.steps += letter
        if len(self.steps) == self.case.step:
            os.kill(os.getpid(), self.case.signal)

    def batch(self) -> None:
        """Count a batch, before it is trained on."""
        self.batches += 1
        if self.batches == self.case.batch:
            os.kill(os.getpid(), self.case.signal)

    def heard(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Hear of everything that Python asks of the system."""
        writing = event == "open" and isinstance(arguments[2], int) and arguments[2] & os.O_ACCMODE
        if (writing or event in OF_THE_SYSTEM) and str(arguments[0]).startswith(self.root):
            self.step(event[-1])


def draw_nothing(history: Sequence[EpochResult], path: Path) -> Path:
    """Write a picture that takes no time."""
    return write_bytes(path, b"a picture")


def work(case: Case, told: str) -> None:
    """Train in this process, and die of what the case says; write what came of it to the file ``told``."""
    torch.set_num_threads(1)
    folder.draw_learning_curve = draw_nothing  # type: ignore[attr-defined]
    said = Path(told).open("w", buffering=1)  # noqa: SIM115 (until the process ends)
    killing = Killing(case)
    train_next_batch = Trainer.train_next_batch

    def counted(self: Trainer) -> None:
        killing.batch()
        train_next_batch(self)

    def synced(fd: Any) -> None:  # a killed process loses nothing of what the system has
        killing.step("w")

    Trainer.train_next_batch = counted  # type: ignore[method-assign]
    os.fsync = synced
    sys.addaudithook(killing.heard)
    code = 0
    try:
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always", Notice)
            train(case)
        said.writelines(f"note: {note.message}\n" for note in notes)
        said.write(f"steps: {killing.steps} {killing.batches}\n")
    except KeyboardInterrupt as stopped:
        said.write(f"{stopped}\n")
        code = INTERRUPTED
    except PresError as error:
        said.write(f"{error}\n")
        code = REFUSED
    except BaseException:
        traceback.print_exc(file=said)
        code = TRACEBACK
    said.close()
    os._exit(code)


def run(case: Case, told: Path) -> tuple[int, str]:
    """Return how such a process ended, negative for a signal, and what it said."""
    process = FORKSERVER.Process(target=work, args=(case, str(told)))
    process.start()
    process.join()
    assert process.exitcode is not None
    return process.exitcode, told.read_text()
