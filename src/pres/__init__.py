"""Train memory-based dynamic graph neural networks on event streams, at large temporal batches."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pres import datasets, experiments, models, nn, sampling, smoothing, theory, training
    from pres.datasets import load
    from pres.diagnosis import diagnose
    from pres.errors import Notice, PresError
    from pres.events import EventStream
    from pres.io import read
    from pres.models import APAN, JODIE, TGN
    from pres.models.build import build_model
    from pres.smoothing import PRES
    from pres.store.folder import open_store
    from pres.store.write import write_store
    from pres.training import Run, classify, compare, evaluate, fit, load_run, predict
    from pres.training.advice import advise
    from pres.training.state_bytes import state_bytes

__version__ = "0.1.0"

__all__ = [
    "APAN",
    "JODIE",
    "PRES",
    "TGN",
    "EventStream",
    "Notice",
    "PresError",
    "Run",
    "advise",
    "build_model",
    "classify",
    "compare",
    "datasets",
    "diagnose",
    "evaluate",
    "experiments",
    "fit",
    "load",
    "load_run",
    "models",
    "nn",
    "open_store",
    "predict",
    "read",
    "sampling",
    "smoothing",
    "state_bytes",
    "theory",
    "training",
    "write_store",
]

# Where each public name lives. They are imported when first asked for: torch takes seconds to import, and
# `pres --help` should not.
_HOME = {
    "APAN": "pres.models",
    "JODIE": "pres.models",
    "PRES": "pres.smoothing",
    "TGN": "pres.models",
    "EventStream": "pres.events",
    "Notice": "pres.errors",
    "PresError": "pres.errors",
    "Run": "pres.training",
    "advise": "pres.training.advice",
    "build_model": "pres.models.build",
    "classify": "pres.training",
    "compare": "pres.training",
    "diagnose": "pres.diagnosis",
    "evaluate": "pres.training",
    "fit": "pres.training",
    "load": "pres.datasets",
    "load_run": "pres.training",
    "open_store": "pres.store.folder",
    "predict": "pres.training",
    "read": "pres.io",
    "state_bytes": "pres.training.state_bytes",
    "write_store": "pres.store.write",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in __all__:
        return import_module(f"pres.{name}")
    raise AttributeError(f"module 'pres' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
