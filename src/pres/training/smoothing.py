"""The filter of a model: a new one for training, or that of a saved state."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pres.events import EventStream
from pres.models import MDGNN, time_units
from pres.smoothing import PRES, Filter


def new_filter(model: MDGNN, smoothing: PRES | None, events: EventStream) -> Filter | None:
    """Return the filter that ``smoothing`` asks for on a whole stream; None if it asks for none."""
    if smoothing is None or not smoothing.filter:
        return None
    train, anchors = events.split().train, None
    if smoothing.anchors is not None:
        of_src, of_dst = (torch.bincount(side, minlength=events.num_nodes) for side in (train.src, train.dst))
        activity = of_src + of_dst
        anchors = torch.argsort(activity, descending=True, stable=True)[: smoothing.anchors]
    made = Filter(smoothing, events.num_nodes, model.memory.dim, time_units(events)[1], anchors)
    return made.to(model.memory.memory.device, model.memory.memory.dtype)


def saved_filter(model: MDGNN, smoothing: dict[str, Any] | None, state: dict[str, Tensor]) -> Filter | None:
    """Return a filter that can take up what a saved state holds of one; None if that had none."""
    if smoothing is None or not smoothing["filter"]:
        return None
    anchors = state.get("correction.trackers.anchors")
    made = Filter(PRES(**smoothing), len(model.memory.last_update), model.memory.dim, anchors=anchors)
    return made.to(model.memory.memory.device, model.memory.memory.dtype)
