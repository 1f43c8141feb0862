"""Training and evaluation of memory models."""

from pres.training.evaluation import LinkMetrics, evaluate
from pres.training.fit import FitConfig, fit
from pres.training.run import EpochResult, Run, load_run

__all__ = ["EpochResult", "FitConfig", "LinkMetrics", "Run", "evaluate", "fit", "load_run"]
