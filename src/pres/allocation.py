"""Large blocks of memory that one batch gives back and the next asks for again."""

from __future__ import annotations

import torch

KEPT = 31 * 2**20  # bytes; glibc does not adapt to blocks beyond 32 MiB


def keep_large_blocks() -> None:
    """Let the C library keep freed blocks of up to 32 MiB for the next that asks.

    By default glibc gives large blocks back to the system at once, which then fills every page of the next
    one with zeros: 5,000 page faults per batch of TGN, up to a fifth of its time. It adapts to the largest
    block that it has seen freed, so it is shown one, which costs nothing as long as nothing is written to it.
    Elsewhere this does nothing.
    """
    torch.empty(KEPT, dtype=torch.uint8)
