"""Large blocks of memory: kept from batch to batch, and taken from the system only as they are used."""

from __future__ import annotations

import ctypes
import mmap
from contextlib import suppress

import torch
from torch import Tensor

from pres.errors import OptionError, one_line

LARGE = 2**20  # bytes
KEPT = 31 * 2**20  # bytes; glibc does not adapt to blocks beyond 32 MiB


def keep_large_blocks() -> None:
    """Let the C library keep freed blocks of up to 32 MiB for the next that asks.

    By default glibc gives large blocks back to the system at once, which then fills every page of the next
    one with zeros: 5,000 page faults per batch of TGN, up to a fifth of its time. It adapts to the largest
    block that it has seen freed, so it is shown one, which costs nothing as long as nothing is written to it.
    Elsewhere this does nothing.
    """
    torch.empty(KEPT, dtype=torch.uint8)


def give_back_free_blocks() -> None:
    """Let glibc give back to the system all that it keeps free; other C libraries do nothing here."""
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):  # the last is Windows'
        return
    trim(0)


def zeros_when_used(*shape: int) -> Tensor:
    """Return zeros of float32 that take no room before something is written there, page by page.

    `torch.zeros` writes them all. So a state of many nodes is as large as what happened to them.
    """
    size = 4 * torch.Size(shape).numel()
    if size < LARGE or not hasattr(mmap, "MAP_ANONYMOUS"):
        return torch.zeros(shape, dtype=torch.float32, device="cpu")
    try:
        block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except OSError as error:
        raise OptionError(
            f"there is no room for a state of {size / 2**30:,.1f} GiB: {one_line(error)}."
        ) from None
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        with suppress(OSError):  # of a kernel that has no large pages
            block.madvise(mmap.MADV_NOHUGEPAGE)  # or they would be filled for a single node
    return torch.frombuffer(block, dtype=torch.float32).view(shape)


def lengthened(rows: Tensor, count: int, fill: Tensor | float = 0, dim: int = 0) -> Tensor:
    """Return a state's ``rows`` with ``count`` further ones along ``dim``, which hold ``fill``.

    The result may have room behind it, which the next call uses: a row at a time costs O(1) in the long run.
    It takes the place of ``rows``, whose storage must be its own.
    """
    if not count:
        return rows
    size, wanted = rows.shape[dim], rows.shape[dim] + count
    room = _room(rows, dim)
    shape = list(rows.shape)
    if room >= wanted:
        shape[dim] = wanted
        longer = rows.as_strided(shape, rows.stride())
    else:
        shape[dim] = wanted + wanted // 2
        longer = _with_rows(rows, shape, dim).narrow(dim, 0, wanted)
    longer.narrow(dim, size, count).copy_(torch.as_tensor(fill, dtype=rows.dtype, device=rows.device))
    return longer


def _room(rows: Tensor, dim: int) -> int:
    """Return how many rows along ``dim`` there is room for."""
    if rows.numel() == 0 or rows.stride(dim) == 0 or rows.storage_offset():
        return rows.shape[dim]
    if dim:
        return rows.stride(dim - 1) // rows.stride(dim)
    return rows.untyped_storage().nbytes() // rows.element_size() // rows.stride(0)


def _with_rows(rows: Tensor, shape: list[int], dim: int) -> Tensor:
    """Return room of a shape that begins with ``rows``; those of zeros take none, see `zeros_when_used`."""
    if rows.dtype != torch.float32 or rows.device.type != "cpu" or rows.ndim == 1 or dim:
        whole = rows.new_empty(shape)
        whole.narrow(dim, 0, rows.shape[dim]).copy_(rows)
        return whole
    whole = zeros_when_used(*shape)
    used = rows.flatten(1).any(1).nonzero().squeeze(1)
    whole[used] = rows[used]
    return whole
