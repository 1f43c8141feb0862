"""The paper's tables and figures by name: declarations, the jobs they expand to, and what came of them."""

from pres.paper.experiments.declaration import Experiment, Request
from pres.paper.experiments.evidence import Evidence, EvidenceFolder
from pres.paper.experiments.executor import Executor, LocalProcesses, NoJobs, Outcome
from pres.paper.experiments.job import Job
from pres.paper.experiments.registry import EXPERIMENTS, find
from pres.paper.experiments.runner import Reproduction, reproduce
from pres.paper.experiments.size import SIZES, Size
from pres.paper.experiments.table import Spread, Table

__all__ = [
    "EXPERIMENTS",
    "SIZES",
    "Evidence",
    "EvidenceFolder",
    "Executor",
    "Experiment",
    "Job",
    "LocalProcesses",
    "NoJobs",
    "Outcome",
    "Reproduction",
    "Request",
    "Size",
    "Spread",
    "Table",
    "find",
    "reproduce",
]
