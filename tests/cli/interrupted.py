"""`pres` as a process that is interrupted once: interrupted.py BATCH ARGUMENTS.

Ctrl-C comes while the model takes in its batch of that number: in the middle of the work, wherever a clock
of another process would be.
"""

import signal
import sys
from typing import Any

from pres.cli import main
from pres.models import MDGNN


def interrupt(batch: int) -> None:
    absorbed, absorb = 0, MDGNN.update_state

    def absorb_and_interrupt(self: MDGNN, *arguments: Any, **further: Any) -> None:
        nonlocal absorbed
        absorbed += 1
        if absorbed == batch:
            signal.raise_signal(signal.SIGINT)
        absorb(self, *arguments, **further)

    MDGNN.update_state = absorb_and_interrupt  # type: ignore[method-assign]


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background ignores it
    interrupt(int(sys.argv.pop(1)))
    main()
