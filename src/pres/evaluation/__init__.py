"""How good a trained model is: links, nodes, and any pairs that are asked for."""

from pres.evaluation.baselines import EdgeBank, Popularity
from pres.evaluation.compare import Comparison, ComparisonRow, compare
from pres.evaluation.embeddings import source_embeddings
from pres.evaluation.link import LinkScores, evaluate, link_scores, seen_in
from pres.evaluation.metrics import LabelMetrics, LinkMetrics
from pres.evaluation.nodes import Classification, classify
from pres.evaluation.predict import Prediction, predict
from pres.evaluation.scorer import ModelScorer, Scorer

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
    "predict",
    "seen_in",
    "source_embeddings",
]
