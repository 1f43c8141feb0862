"""Small runs to keep, to stop and to go on with."""

from pathlib import Path
from typing import Any

import pres
from pres.models import MDGNN
from pres.models.registry import build_model

EVENTS = pres.load("synthetic", num_events=1_500)


def made(kind: str = "jodie") -> MDGNN:
    return build_model(kind, EVENTS, {"memory_dim": 16, "time_dim": 8})


def trained(out: Path, kind: str = "jodie", **options: Any) -> pres.Run:
    settings: dict[str, Any] = {"epochs": 2, "batch_size": 100, "out": out}
    return pres.fit(made(kind), EVENTS, **settings | options)


def results(run: pres.Run) -> list[Any]:
    return [run.test, *((epoch.loss, epoch.val) for epoch in run.history)]
