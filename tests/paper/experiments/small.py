"""A size at which everything is done in seconds, and an executor that is no process."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pres.paper.experiments.budget import Budget
from pres.paper.experiments.columns import columns
from pres.paper.experiments.declaration import Experiment
from pres.paper.experiments.executor import Executor, Outcome
from pres.paper.experiments.figures import curves
from pres.paper.experiments.job import Job
from pres.paper.experiments.registry import find
from pres.paper.experiments.runner import Reproduction, reproduce
from pres.paper.experiments.work import perform

TINY = Budget(
    name="tiny",
    seeds=1,
    epochs=2,
    rate_epochs=1,
    extended_epochs=3,
    events=1_600,
    small_batches=(20, 40),
    batches=(50, 100, 200),
    pair=(50, 200),
    large_batch=100,
    memory_batches=(50, 200),
    rounds=1,
    theory_batch=50,
    betas=(0.0, 0.1),
    decoder_epochs=2,
    model_options={"memory_dim": 8, "time_dim": 4},
    theory={
        "state-space": {"noise": [0.5, 1.0], "missing": [0, 2], "seeds": 2, "nodes": 4, "steps": 6},
        "variance": {"batch_sizes": (50, 100), "draws": 2, "limit": 400},
        "coherence": {"batch_sizes": (50, 100), "samples": 8, "limit": 400},
        "convergence": {
            "epochs": 1,
            "samples": 4,
            "draws": 2,
            "curvature_batches": 1,
            "iterations": 2,
            "limit": 400,
        },
    },
)


class Here:
    """Does jobs one after the other in this process, and remembers which."""

    def __init__(self, stop_after: int | None = None) -> None:
        self.done: list[str] = []
        self.stop_after = stop_after

    def run(self, jobs: Sequence[Job], root: Path) -> Iterator[Outcome]:
        for job in jobs:
            if self.stop_after is not None and len(self.done) == self.stop_after:
                raise KeyboardInterrupt
            self.done.append(job.name)
            yield Outcome(job, perform(job, root))


LITTLE = Experiment(
    name="little",
    title="JODIE with and without PRES",
    where="nowhere",
    says="nothing",
    kind="train",
    datasets=("synthetic",),
    vary={
        "model": ["jodie"],
        "batch_size": [100],
        "smoothing": ["off", "equations", "algorithm", "ours"],
    },
    table=columns("dataset", "model", "smoothing", "batch_size", "ap", "val_ap", "gain", "seconds"),
    draw=curves(),
)


def reproduced(
    experiments: Sequence[Experiment],
    root: Path,
    executor: Executor | None = None,
    budget: Budget = TINY,
    **options: Any,
) -> Reproduction:
    options = {"datasets": ["synthetic"]} | options
    return reproduce(experiments, budget, root, executor or Here(), **options)


def small(name: str, root: Path, executor: Executor | None = None, **options: Any) -> Reproduction:
    return reproduced(find(name), root, executor, **options)
