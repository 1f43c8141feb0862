"""A reproduction as a process, to be killed: python -m tests.paper.experiments.killed FOLDER LEAST.

Its jobs hold in their middle once there are so many results, see `hold`.
"""

import signal
import sys
from functools import partial
from pathlib import Path

from pres.paper.experiments import executor
from pres.paper.experiments.executor import LocalProcesses
from tests.paper.experiments.held import hold
from tests.paper.experiments.small import LITTLE, TINY, reproduced

if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell runs in the background ignores it
    executor._work = partial(hold, int(sys.argv[2]))
    reproduced([LITTLE], Path(sys.argv[1]), LocalProcesses(2), budget=TINY, seeds=2)
