"""What all measurements share: what they are of, and how they are shown and drawn."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from matplotlib.axes import Axes
from rich.console import Console, Group
from rich.progress import track

from pres.data.stream import EventStream
from pres.figure import save_panels
from pres.models import MDGNN

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Result(ABC):
    """What a measurement gives: plain values, tables, and a picture."""

    @property
    @abstractmethod
    def title(self) -> str:
        """What was measured, for people."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``pres theory NAME --json`` prints it."""
        return dataclasses.asdict(self)

    @abstractmethod
    def shown(self) -> Group:
        """Return the tables for a terminal."""

    @abstractmethod
    def panels(self) -> tuple[str, Sequence[Callable[[Axes], None]]]:
        """Return the title of the picture, and what draws each of its panels."""

    def save_png(self, path: str | Path) -> Path:
        """Draw the result as one picture at ``path`` and return it."""
        title, draw = self.panels()
        return save_panels(Path(path), title, *draw)


@dataclass(frozen=True, kw_only=True)
class Measured(Result):
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
    return {"dataset": info.name, "variant": info.variant, "model": model.title, "weights": weights}


def tracked(items: Iterable[T], what: str, progress: bool) -> Iterable[T]:
    """Return items with a progress bar on stderr, if there is to be one."""
    return track(items, what, transient=True, disable=not progress, console=Console(stderr=True))


def number(value: float | None, form: str = ".3g") -> str:
    """Return a number as people read it, or a dash for one that is not known."""
    return "–" if value is None else format(value, form)
