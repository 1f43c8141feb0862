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


NO_KEY = torch.iinfo(torch.int64).max
BLOCK = 32  # keys from one landmark to the next


class IndexArrays(NamedTuple):
    """What a `TemporalIndex` is made of.

    Behind the ``m`` entries of neighbour and time is one more, which stands for no neighbour. Keys and
    landmarks are followed by ``NO_KEY``: keys by at least one, and both up to a whole number of blocks.
    """

    keys: Tensor  # [≥ m + 1] int64, of the incidences
    landmarks: Tensor  # [≥ len(keys) / BLOCK] int64, the first key of each block
    neighbour: Tensor  # [m + 1] int64, the other endpoint
    time: Tensor  # [m + 1], of the event
    start: Tensor  # [num_nodes + 1] int64, where the entries of each node begin
    first_of_equal: Tensor  # [n] int64, the first event at the time of each


def whole_blocks(count: int) -> int:
    """Return the least size of whole blocks that holds so many."""
    return -(-count // BLOCK) * BLOCK


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


def occurring(num_nodes: int, *sides: Tensor) -> Tensor:
    """Return a mask `[num_nodes]` of the nodes among ``sides``, without a copy of any side."""
    there = torch.zeros(num_nodes, dtype=torch.bool, device=sides[0].device)
    for nodes in sides:
        there.index_fill_(0, nodes, True)
    return there


def distinct(values: Tensor) -> Tensor:
    """Return the distinct values in increasing order."""
    found: Tensor = torch.unique(values)
    return found
