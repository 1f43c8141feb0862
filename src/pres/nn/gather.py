"""Rows by position, with a gradient that is the same bits every time."""

from __future__ import annotations

from torch import Tensor


def rows(values: Tensor, places: Tensor) -> Tensor:
    """Return `[..., d]`, the rows of ``values`` `[n, d]` at ``places`` `[...]`.

    The backward pass adds in order. That of ``values[places]`` adds in parallel on the CPU, in whatever order
    threads arrive, so that two runs differ in their last bits.
    """
    return values.index_select(0, places.flatten()).view(*places.shape, values.shape[1])
