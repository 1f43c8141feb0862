"""What a run came to, to the bit, and how it is brought to its end after a kill."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import pres
from pres.training.checkpoint import Tensors
from pres.training.folder import RunFolder
from tests.faults.child import Case, run

FILES = {
    *("config.json", "environment.json", "events.json", "run.json", "metrics.parquet", "learning.png"),
    *("best.safetensors", "best-previous.safetensors", "last.safetensors", "last-previous.safetensors"),
    ".lock",
}


def outcome(run: pres.Run) -> list[Any]:
    """Everything that a training gives but the time it took."""
    history = [dataclasses.replace(done, seconds=0.0) for done in run.history]
    states = (run.state, run.last.model, run.last.optimiser, run.last.gradients, run.last.random)
    return [run.best_epoch, run.val, run.test, history, *map(bits, states)]


def bits(tensors: Tensors) -> dict[str, str]:
    """The bits of tensors, by name."""
    plain = {name: value.contiguous().numpy().tobytes() for name, value in tensors.items()}
    return {name: hashlib.sha256(value).hexdigest() for name, value in sorted(plain.items())}


def again(case: Case) -> Case:
    """The command that a user gives after a kill: the same, or to go on if there is a run."""
    return dataclasses.replace(case, resume=RunFolder(case.out).begun)


def end(case: Case, told: Path) -> list[Any]:
    """What comes of a run that is brought to its end, and leaves nothing beside it."""
    if not RunFolder(case.out).finished:
        code, said = run(again(case), told)
        assert code == 0, (case, said)
    out = Path(case.out)
    assert {path.name for path in out.iterdir()} <= FILES, case
    assert [path.name for path in out.parent.iterdir()] == [out.name], case
    return outcome(pres.load_run(out))
