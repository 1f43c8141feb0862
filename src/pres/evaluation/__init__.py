"""How good a trained model is: links, nodes, and any pairs that are asked for."""

from pres.evaluation.baselines import EdgeBank, Popularity
from pres.evaluation.compare import Comparison, ComparisonRow, compare
from pres.evaluation.embeddings import source_embeddings
from pres.evaluation.link import (
    LinkScores,
    ModelScorer,
    Scorer,
    evaluate,
    link_scores,
    link_scores_of_each,
    seen_in,
)
from pres.evaluation.metrics import LinkMetrics
from pres.evaluation.nodes import Classification, LabelMetrics, classify
from pres.evaluation.predict import Prediction, predict

__all__ = [
    "Classification",
    "Comparison",
    "ComparisonRow",
    "EdgeBank",
    "LabelMetrics",
    "LinkMetrics",
    "LinkScores",
    "ModelScorer",
    "Popularity",
    "Prediction",
    "Scorer",
    "classify",
    "compare",
    "evaluate",
    "link_scores",
    "link_scores_of_each",
    "predict",
    "seen_in",
    "source_embeddings",
]
