"""Copies of a model to work with, so that the model itself stays as it is."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import TypeVar

import torch
from torch import Tensor

from pres.models.base import MDGNN
from pres.nn.allocation import lengthened

Model = TypeVar("Model", bound=MDGNN)


def reader_of(model: Model) -> Model:
    """Return a copy in evaluation mode that shares every tensor: to score with, not to move its memory."""
    return _copy(model, [*model.parameters(), *model.buffers()])


def blank_reader_of(model: Model) -> Model:
    """Return a `reader_of` the model that knows one node more, as `scratch_of` does.

    It shares the rows of all others, where the model's state has room behind them.
    """
    reader = reader_of(model)
    _add_blank(reader)
    return reader


def scratch_of(model: Model) -> Model:
    """Return a `copy_of` the model to score and to move memory with.

    It knows one node more, the stream's ``num_nodes``: nothing ever happened to that one, so it has no
    memory, no mail and no neighbours.
    """
    copied = copy_of(model)
    _add_blank(copied)
    return copied


def copy_of(model: Model) -> Model:
    """Return a copy in evaluation mode that shares weights and stream, but has a state of its own."""
    state = {id(value) for value in model.state_dict(keep_vars=True).values()}
    return _copy(model, [*model.parameters(), *(b for b in model.buffers() if id(b) not in state)])


def _add_blank(copied: MDGNN) -> None:
    copied.memory.add_nodes(1)
    copied.node_encoding.table = lengthened(copied.node_encoding.table, 1)
    if copied.node_x is not None:
        copied.node_x = torch.cat([copied.node_x, torch.zeros_like(copied.node_x[:1])])
    if copied.index is not None:
        # Where the last node's entries end, those of the next would start: it has none, and the index knows.
        copied.index = copy.copy(copied.index)
        copied.index.num_nodes += 1


def _copy(model: Model, shared: Iterable[Tensor]) -> Model:
    # What is known of the stream alone is shared; so are levels, wherever they are found first.
    kept = {id(part): part for part in (*shared, model.index, model._events, model._t, model.levels)}
    return copy.deepcopy(model, kept).eval()
