"""The paper's tables and figures by name: declarations, the jobs they expand to, and what came of them."""

from pres.experiments.declaration import Experiment, Request
from pres.experiments.evidence import Evidence, EvidenceFolder
from pres.experiments.executor import Executor, LocalProcesses, NoJobs, Outcome
from pres.experiments.job import Job
from pres.experiments.registry import EXPERIMENTS, find
from pres.experiments.runner import Reproduction, reproduce
from pres.experiments.size import SIZES, Size
from pres.experiments.table import Spread, Table

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
