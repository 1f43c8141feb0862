"""Training of memory models, and the runs that it leaves."""

from pres.training.checkpoint import EpochResult, TrainingState
from pres.training.config import FitConfig, TrainConfig
from pres.training.fit import fit
from pres.training.folder import load_run
from pres.training.opened import OpenedRun, open_run
from pres.training.run import Run
from pres.training.trainer import Trainer

__all__ = [
    "EpochResult",
    "FitConfig",
    "OpenedRun",
    "Run",
    "TrainConfig",
    "Trainer",
    "TrainingState",
    "fit",
    "load_run",
    "open_run",
]
