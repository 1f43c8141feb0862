"""Training and evaluation of memory models."""

from pres.training.baselines import EdgeBank, Popularity
from pres.training.classification import Classification, LabelMetrics, classify
from pres.training.comparison import Comparison, ComparisonRow, compare
from pres.training.config import FitConfig, TrainConfig
from pres.training.embeddings import source_embeddings
from pres.training.evaluation import (
    LinkScores,
    ModelScorer,
    Scorer,
    evaluate,
    link_scores,
    link_scores_of_each,
    seen_in,
)
from pres.training.fit import fit
from pres.training.folder import load_run
from pres.training.metrics import LinkMetrics
from pres.training.opened import OpenedRun, open_run
from pres.training.prediction import Prediction, predict
from pres.training.run import Run
from pres.training.state import EpochResult, TrainingState
from pres.training.trainer import Trainer

__all__ = [
    "Classification",
    "Comparison",
    "ComparisonRow",
    "EdgeBank",
    "EpochResult",
    "FitConfig",
    "LabelMetrics",
    "LinkMetrics",
    "LinkScores",
    "ModelScorer",
    "OpenedRun",
    "Popularity",
    "Prediction",
    "Run",
    "Scorer",
    "TrainConfig",
    "Trainer",
    "TrainingState",
    "classify",
    "compare",
    "evaluate",
    "fit",
    "link_scores",
    "link_scores_of_each",
    "load_run",
    "open_run",
    "predict",
    "seen_in",
    "source_embeddings",
]
