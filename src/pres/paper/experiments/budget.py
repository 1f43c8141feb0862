"""How much is spent on the experiments: minutes, hours, or as the paper did them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PAPER_EPOCHS, PAPER_SEEDS = 50, 5


@dataclass(frozen=True)
class Budget:
    """What is cut down where there is less time; what is not here is the same at every budget."""

    name: str
    seeds: int
    epochs: int
    rate_epochs: int  # of rates
    extended_epochs: int  # of fig-extended
    events: int | None  # how many of each stream, from its beginning; None: all
    small_batches: tuple[int, ...] = (5, 10, 20, 50, 100)
    batches: tuple[int, ...] = (200, 400, 600, 1000, 1600, 2400)  # holds those of the pair, and large_batch
    pair: tuple[int, int] = (600, 2400)  # without and with PRES in the tables
    large_batch: int = 1000  # of the ablations, as the paper says
    memory_batches: tuple[int, ...] = (200, 400, 800, 1600, 3200)
    fewer_seeds: Mapping[str, int] = field(default_factory=dict)  # of streams that are long
    rounds: int = 3  # epochs that are timed, in turns with those of other arms
    theory_batch: int = 200  # of the training that the theory is measured along
    betas: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
    decoder_epochs: int = 20
    model_options: Mapping[str, Any] = field(default_factory=dict)
    theory: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # options of each measurement

    @property
    def streams(self) -> str:
        """How much of a stream that is, in words."""
        return "whole streams" if self.events is None else f"the first {self.events:,} events of a stream"

    @property
    def small(self) -> int:
        """The smaller batch of the pair."""
        return self.pair[0]

    @property
    def arms(self) -> list[tuple[str, int]]:
        """What Tables 1 and 2 compare: which PRES, at which batch size."""
        small, large = self.pair
        return [
            ("off", small),
            *((smoothing, large) for smoothing in ("off", "equations", "algorithm", "ours")),
        ]

    @property
    def steps(self) -> list[tuple[str, int, int | None]]:
        """Both batch sizes without PRES, and the larger with the steps of the smaller."""
        small, large = self.pair
        return [("off", small, None), ("off", large, None), ("off", large, small)]

    @property
    def ends(self) -> list[tuple[str, int]]:
        """The smaller batch without PRES, and the larger with it."""
        return [("off", self.pair[0]), ("equations", self.pair[1])]


_THEORY_SIZES = (100, 200, 400, 800, 1600)
_COHERENCE_SIZES = (200, 400, 800, 1600, 3200)
_SHORT = {"epochs": 2, "samples": 50, "draws": 4, "curvature_batches": 2, "iterations": 10, "limit": 4_000}
BUDGETS = {
    "quick": Budget(
        name="quick",
        seeds=1,
        rounds=1,
        epochs=2,
        rate_epochs=2,
        extended_epochs=8,
        events=12_000,
        small_batches=(5, 20, 100),
        batches=(200, 600, 1000, 2400),
        memory_batches=(200, 800, 3200),
        betas=(0.0, 0.1, 0.5, 1.0),
        decoder_epochs=10,
        theory={
            "state-space": {"seeds": 10},
            "variance": {"batch_sizes": _THEORY_SIZES, "draws": 4, "limit": 4_000},
            "coherence": {"batch_sizes": (200, 800, 1600), "samples": 100, "limit": 4_000},
            "convergence": _SHORT,
        },
    ),
    "default": Budget(
        name="default",
        seeds=3,
        epochs=10,
        rate_epochs=10,
        extended_epochs=50,
        events=None,
        theory={
            "state-space": {"seeds": 20},
            "variance": {"batch_sizes": _THEORY_SIZES, "draws": 8, "limit": 20_000},
            "coherence": {"batch_sizes": _COHERENCE_SIZES, "samples": 500, "limit": 20_000},
            "convergence": {"epochs": 3, "samples": 200, "limit": 20_000},
        },
    ),
    "full": Budget(
        name="full",
        seeds=PAPER_SEEDS,
        fewer_seeds={"mooc": 3},
        epochs=PAPER_EPOCHS,
        rate_epochs=10,
        extended_epochs=500,
        events=None,
        theory={
            "state-space": {"seeds": 100},
            "variance": {"batch_sizes": _THEORY_SIZES, "draws": 16},
            "coherence": {"batch_sizes": _COHERENCE_SIZES, "samples": 2_000},
            "convergence": {"epochs": 10, "samples": 500, "limit": 50_000},
        },
    ),
}
