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

# By the name of its class in small letters, which is how saved runs find it again.
MODELS: dict[str, type[MDGNN]] = {
    "tgn": TGN,
    "jodie": JODIE,
    "apan": APAN,
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
        name: A name in `MODELS`.
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
        options = kind.tgl | without | options
    known = [p for p in inspect.signature(kind.__init__).parameters if p not in ("self", "events")]
    for option in options:
        if option not in known:
            raise OptionError(f"{kind.__name__} has no option {option!r}.{nearest(option, known)}")
    torch.manual_seed(seed)
    try:
        model = kind(events, **options)
    except (TypeError, ValueError) as error:  # of the wrong type or size, wherever it is first used
        raise OptionError(f"{kind.__name__} cannot be made with {options}: {error}.") from None
    if model.options is None:
        model.options = dict(options)
    return model
