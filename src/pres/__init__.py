"""Train memory-based dynamic graph neural networks on event streams, at large temporal batches."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pres import (
        data,
        evaluation,
        models,
        nn,
        optim,
        paper,
        sampling,
        serving,
        smoothing,
        training,
        tuning,
    )
    from pres.data import EventStream, load, read
    from pres.data.store.folder import open_store
    from pres.data.storing import write_store
    from pres.errors import Notice, PresError
    from pres.evaluation import classify, compare, evaluate, predict
    from pres.models import APAN, JODIE, TGN
    from pres.models.registry import build_model
    from pres.serving import OnlineModel
    from pres.smoothing import PRES
    from pres.training import Run, fit, load_run
    from pres.training.batch_size import find_batch_size
    from pres.tuning import diagnose
    from pres.tuning.state_bytes import state_bytes

__version__ = "0.1.0"

__all__ = [
    "APAN",
    "JODIE",
    "PRES",
    "TGN",
    "EventStream",
    "Notice",
    "OnlineModel",
    "PresError",
    "Run",
    "build_model",
    "classify",
    "compare",
    "data",
    "diagnose",
    "evaluate",
    "evaluation",
    "find_batch_size",
    "fit",
    "load",
    "load_run",
    "models",
    "nn",
    "open_store",
    "optim",
    "paper",
    "predict",
    "read",
    "sampling",
    "serving",
    "smoothing",
    "state_bytes",
    "training",
    "tuning",
    "write_store",
]

# Where each public name lives. They are imported when first asked for: torch takes seconds to import, and
# `pres --help` should not.
_HOME = {
    "APAN": "pres.models",
    "JODIE": "pres.models",
    "PRES": "pres.smoothing",
    "TGN": "pres.models",
    "EventStream": "pres.data",
    "Notice": "pres.errors",
    "OnlineModel": "pres.serving",
    "PresError": "pres.errors",
    "Run": "pres.training",
    "find_batch_size": "pres.training.batch_size",
    "build_model": "pres.models.registry",
    "classify": "pres.evaluation",
    "compare": "pres.evaluation",
    "diagnose": "pres.tuning",
    "evaluate": "pres.evaluation",
    "fit": "pres.training",
    "load": "pres.data",
    "load_run": "pres.training",
    "open_store": "pres.data.store.folder",
    "predict": "pres.evaluation",
    "read": "pres.data",
    "state_bytes": "pres.tuning.state_bytes",
    "write_store": "pres.data.storing",
}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    if name in __all__:
        return import_module(f"pres.{name}")
    raise AttributeError(f"module 'pres' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
