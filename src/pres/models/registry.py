"""A model by its name."""

from __future__ import annotations

import inspect
from typing import Any, Literal

import torch

from pres.data.stream import EventStream
from pres.errors import OptionError, check_choice, nearest
from pres.models.apan import APAN
from pres.models.base import MDGNN
from pres.models.jodie import JODIE
from pres.models.tgn import TGN

MODELS: dict[str, type[MDGNN]] = {"tgn": TGN, "jodie": JODIE, "apan": APAN}

# What differs from our defaults in each model of TGL (its config files and memorys.py).
TGL: dict[str, dict[str, Any]] = {
    "tgn": {"dropout": 0.2, "node_encoding_dim": 0},
    "jodie": {"cell": "rnn", "node_encoding_dim": 0},
    "apan": {"gate": False, "dropout": 0.1, "node_encoding_dim": 0},
}


def build_model(
    name: str,
    events: EventStream,
    options: dict[str, Any] | None = None,
    seed: int = 0,
    protocol: Literal["tgl"] | None = None,
) -> MDGNN:
    """Return a new model of that name; the same seed gives the same weights.

    Args:
        name: ``"tgn"``, ``"jodie"`` or ``"apan"``.
        events: The whole stream.
        options: Arguments of the model's class.
        seed: Of the weights.
        protocol: ``"tgl"`` makes TGL's settings the defaults; its copy of MOOC has no features.
    """
    check_choice("model", name, MODELS)
    kind, options = MODELS[name], options or {}
    if protocol is not None:
        check_choice("protocol", protocol, ("tgl",))
        without = {"edge_features": False} if events.info.name == "mooc" else {}
        options = TGL[name] | without | options
    known = [p for p in inspect.signature(kind.__init__).parameters if p not in ("self", "events")]
    for option in options:
        if option not in known:
            raise OptionError(f"{kind.__name__} has no option {option!r}.{nearest(option, known)}")
    torch.manual_seed(seed)
    try:
        return kind(events, **options)
    except (TypeError, ValueError) as error:  # of the wrong type or size, wherever it is first used
        raise OptionError(f"{kind.__name__} cannot be made with {options}: {error}.") from None
