"""How the measurements of the theory are done as jobs; each leaves its picture beside its result."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol

from pres.data.stream import EventStream
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.paper.experiments.folder import JobFolder
from pres.paper.experiments.stream import stream
from pres.paper.theory.coherence import memory_coherence
from pres.paper.theory.convergence import convergence_terms
from pres.paper.theory.state_space import state_space_errors
from pres.paper.theory.variance import gradient_variance
from pres.smoothing import PRES
from pres.training.fit import fit

PICTURE = "figure.png"


class Result(Protocol):
    """What every measurement gives."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        ...

    def save_png(self, path: str | Path) -> Path:
        """Draw it at ``path``."""
        ...


def state_space(settings: dict[str, Any], folder: JobFolder) -> dict[str, Any]:
    """Proposition 1, on a simulated system."""
    return _kept(state_space_errors(**settings), folder)


def variance(settings: dict[str, Any], folder: JobFolder) -> dict[str, Any]:
    """Theorem 1, at the weights after an epoch."""
    model, events, weights = _trained(settings)
    found = gradient_variance(model, events, seed=settings["seed"], weights=weights, **settings["options"])
    return _kept(found, folder)


def coherence(settings: dict[str, Any], folder: JobFolder) -> dict[str, Any]:
    """Definition 3, at the weights after an epoch, with or without the objective that is to raise it."""
    model, events, weights = _trained(settings)
    found = memory_coherence(model, events, seed=settings["seed"], weights=weights, **settings["options"])
    return _kept(found, folder)


def convergence(settings: dict[str, Any], folder: JobFolder) -> dict[str, Any]:
    """Theorem 2, along a training of its own."""
    events = stream(settings)
    model = build_model(settings["model"], events, settings["model_options"], settings["seed"])
    seed, batch_size = settings["seed"], settings["batch_size"]
    found = convergence_terms(model, events, batch_size=batch_size, seed=seed, **settings["options"])
    return _kept(found, folder)


def _trained(settings: dict[str, Any]) -> tuple[MDGNN, EventStream, str]:
    """Return a model after one epoch, its events, and where its weights come from."""
    events = stream(settings)
    seed, beta, batch_size = settings["seed"], settings.get("beta", 0), settings["batch_size"]
    model = build_model(settings["model"], events, settings["model_options"], seed)
    smoothing = PRES(beta=beta, filter=False) if beta else None
    whole = {"batch_size": batch_size, "negative_window": None}  # what negatives avoid, as in the paper
    fit(model, events, epochs=1, seed=seed, smoothing=smoothing, **whole)
    objective = f", β {beta:g}" if beta else ""
    return model, events, f"of epoch 1 (batch_size {batch_size}, seed {seed}{objective})"


def _kept(found: Result, folder: JobFolder) -> dict[str, Any]:
    """Return the result as plain values, once its picture is in the folder."""
    found.save_png(folder.path / PICTURE)
    plain: dict[str, Any] = json.loads(json.dumps(found.to_dict()))
    return plain
