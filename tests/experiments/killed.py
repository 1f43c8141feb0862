"""A reproduction as a process of its own, to be killed: python -m tests.experiments.killed FOLDER."""

import sys
from pathlib import Path

from pres.experiments import LocalProcesses
from tests.experiments.small import LITTLE, TINY, reproduced

if __name__ == "__main__":
    reproduced([LITTLE], Path(sys.argv[1]), LocalProcesses(2), size=TINY, seeds=2)
