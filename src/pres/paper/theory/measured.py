"""What a measurement on a model is of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pres.data.stream import EventStream
from pres.models import MDGNN


@dataclass(frozen=True, kw_only=True)
class Measured:
    """A result that belongs to one stream, one model and one set of weights."""

    dataset: str
    variant: str | None
    model: str
    weights: str  # where they come from

    @property
    def title(self) -> str:
        """All of it, for people."""
        dataset = self.dataset if self.variant is None else f"{self.dataset} ({self.variant})"
        return f"{self.model} on {dataset}, weights {self.weights}"


def about(model: MDGNN, events: EventStream, weights: str) -> dict[str, Any]:
    """Return the fields of `Measured`."""
    info = events.info
    return {
        "dataset": info.name,
        "variant": info.variant,
        "model": model.title,
        "weights": weights,
    }
