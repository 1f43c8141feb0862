"""Which nodes take part in which events: the one ordering that index, pending sets and levels share."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pres.errors import IndexOverflowError


class Incidences(NamedTuple):
    """One entry per (node, event) it takes part in, sorted by node and then by event.

    A self-loop is one entry. ``keys = node * n + event`` are strictly increasing.
    """

    keys: Tensor  # [m] int64
    nodes: Tensor  # [m] int64
    events: Tensor  # [m] int64


def incidences(src: Tensor, dst: Tensor, num_nodes: int, direction: str = "both") -> Incidences:
    """Return the entries of events; directions ``"out"`` and ``"in"`` keep only sources or destinations."""
    n = len(src)
    check_key_range(num_nodes, n)
    ends = {"both": (src, dst), "out": (src,), "in": (dst,)}[direction]
    keys = empty(n * len(ends), torch.int64, src.device)
    for place, nodes_of_end in enumerate(ends):
        of_end = keys[place * n : (place + 1) * n]
        torch.arange(n, out=of_end)
        of_end.add_(nodes_of_end, alpha=n)  # int64 throughout: keys do not fit 32 bits
    if direction == "both":
        loops = src == dst
        if bool(loops.any()):
            keys = keys[torch.cat([torch.ones_like(loops), ~loops])]
    keys = sorted_keys(keys)
    nodes, events = (empty(len(keys), torch.int64, src.device) for _ in range(2))
    torch.div(keys, max(n, 1), rounding_mode="floor", out=nodes)
    return Incidences(keys, nodes, torch.add(keys, nodes, alpha=-n, out=events))


def empty(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """Return uninitialised memory, on the CPU by NumPy: it asks the system for large pages, torch does not.

    At ten million events that halves the time to build an index.
    """
    if device.type != "cpu":
        return torch.empty(size, dtype=dtype, device=device)
    return torch.from_numpy(np.empty(size, dtype=torch.empty(0, dtype=dtype).numpy().dtype))


def check_key_range(num_nodes: int, num_events: int) -> None:
    """Raise unless every key ``node * num_events + event`` fits into 64 bits."""
    if num_nodes * num_events > torch.iinfo(torch.int64).max:
        raise IndexOverflowError(
            f"{num_nodes:,} nodes x {num_events:,} events exceed 64-bit keys. Cut the stream into parts."
        )


def sorted_keys(keys: Tensor) -> Tensor:
    """Return int64 keys in increasing order; the given tensor may be overwritten."""
    if keys.device.type == "cpu":  # NumPy's vectorised sort is several times faster than torch's
        keys.numpy().sort()
        return keys
    return torch.sort(keys).values


def run_starts(changed: Tensor) -> Tensor:
    """Return, for each position, where its run starts; ``changed`` `[m]` is True at the first of each run."""
    starts = changed.nonzero().squeeze(1)
    return starts.index_select(0, changed.cumsum(0).sub_(1))


def first_of_equal(t: Tensor) -> Tensor:
    """Return, for each of the sorted times `[n]`, the position of the first one equal to it."""
    changed = torch.ones(len(t), dtype=torch.bool, device=t.device)
    changed[1:] = t[1:] != t[:-1]
    return run_starts(changed)


def distinct(values: Tensor) -> Tensor:
    """Return the distinct values in increasing order."""
    found: Tensor = torch.unique(values)
    return found
