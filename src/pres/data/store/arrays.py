"""Arrays in files, written piece by piece."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor

Array = np.ndarray[Any, Any]


class ArrayFile:
    """A ``.npy`` file of a known shape, written and read in pieces of rows.

    Pieces go through ordinary reads and writes, not through a map: a full disk is then an error that can be
    told, and no signal that ends the process.

    Args:
        path: The file, which is made anew.
        dtype: The type of its elements.
        shape: Its shape, rows first.
    """

    def __init__(self, path: Path, dtype: Any, shape: tuple[int, ...]) -> None:
        self.path, self.dtype, self.shape = path, np.dtype(dtype), shape
        self._row_bytes = self.dtype.itemsize * int(np.prod(shape[1:]))
        self._file = path.open("w+b")
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)
        self._begin = self._file.tell()
        self.end = 0  # where `append` writes next

    def write(self, values: Array, at: int) -> None:
        """Put rows in from the row ``at`` on."""
        self._file.seek(self._begin + at * self._row_bytes)
        self._file.write(np.ascontiguousarray(values, dtype=self.dtype).data)

    def append(self, values: Array) -> None:
        """Put rows in behind those appended before."""
        self.write(values, self.end)
        self.end += len(values)

    def read(self, at: int, stop: int) -> Array:
        """Return the rows from ``at`` to ``stop``."""
        self._file.seek(self._begin + at * self._row_bytes)
        count = (stop - at) * int(np.prod(self.shape[1:]))
        return np.fromfile(self._file, self.dtype, count).reshape(stop - at, *self.shape[1:])

    def close(self) -> None:
        """Close the file; it may be closed already."""
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def write_tensor(values: Tensor, path: Path, rows: int) -> None:
    """Write a tensor, so many rows at once."""
    with ArrayFile(path, values[:0].cpu().numpy().dtype, tuple(values.shape)) as file:
        for start, stop in spans(len(values), rows):
            file.append(values[start:stop].cpu().numpy())


def spans(count: int, rows: int) -> Iterator[tuple[int, int]]:
    """Yield the consecutive ranges of at most ``rows`` that make up ``count``."""
    for start in range(0, count, rows):
        yield start, min(start + rows, count)


def mapped(path: Path) -> Tensor:
    """Return the array in a file as a tensor that stays there."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    with warnings.catch_warnings():  # that it cannot be written to is what is wanted
        warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
        return torch.from_numpy(array)
