"""What processes of jobs do in place of their work: hold in the middle of it, or die."""

import os
import signal
from pathlib import Path
from types import FrameType
from typing import Any

from pres.models import MDGNN
from pres.paper.experiments.executor import _work
from tests.waiting import until


def results(root: Path) -> int:
    return len([*root.glob("jobs/*/result.json")])


def hold(least: int, job: dict[str, Any], root: str, sender: Any) -> None:
    """Do a job, but if there is a file `hold`, then hold after a batch once there are so many results.

    A file `held`, beside the folder too, says that a job holds: until it is asked to stop.
    """
    beside, absorb = Path(root).parent, MDGNN.update_state

    def absorb_and_hold(self: MDGNN, *arguments: Any, **further: Any) -> None:
        absorb(self, *arguments, **further)
        if (beside / "hold").exists() and results(Path(root)) >= least:
            (beside / "held").touch()
            until_asked_to_stop()

    MDGNN.update_state = absorb_and_hold  # type: ignore[method-assign]
    _work(job, root, sender)


def until_asked_to_stop() -> None:
    handler, asked = signal.getsignal(signal.SIGTERM), False

    def ask(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        asked = True
        assert callable(handler)
        handler(number, frame)

    signal.signal(signal.SIGTERM, ask)
    until(lambda: asked)
    signal.signal(signal.SIGTERM, handler)


def die_of_the_first(job: dict[str, Any], root: str, sender: Any) -> None:
    """Do a job, but be killed instead if it says that it is the first."""
    if job["settings"].get("which") == "first":
        os.kill(os.getpid(), signal.SIGKILL)
    _work(job, root, sender)
