"""The paper's tables and figures by name: declarations, the jobs they expand to, and what came of them."""

from pres.paper.experiments.budget import BUDGETS, Budget
from pres.paper.experiments.declaration import Experiment, Request
from pres.paper.experiments.evidence import Evidence, EvidenceFolder
from pres.paper.experiments.executor import Executor, LocalProcesses, Outcome
from pres.paper.experiments.job import Job
from pres.paper.experiments.registry import EXPERIMENTS, find
from pres.paper.experiments.runner import Reproduction, reproduce
from pres.paper.experiments.table import Spread, Table

__all__ = [
    "BUDGETS",
    "EXPERIMENTS",
    "Budget",
    "Evidence",
    "EvidenceFolder",
    "Executor",
    "Experiment",
    "Job",
    "LocalProcesses",
    "Outcome",
    "Reproduction",
    "Request",
    "Spread",
    "Table",
    "find",
    "reproduce",
]
