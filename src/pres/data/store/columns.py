"""The columns of events that come in parts: written to files, and put into the order of time there."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import torch
from torch import Tensor

from pres.data.store.arrays import ArrayFile, mapped, spans, write_tensor
from pres.data.store.order import AT_ONCE, Show, write_time_order


class ColumnFiles:
    """The columns of a stream as files ``<name>.npy``, each made when its first rows come.

    Args:
        place: Their folder.
        rows: How many rows there will be.
        at_once: Rows in memory at a time where they are sorted.
        show: Told how many events are done.
    """

    def __init__(self, place: Path, rows: int, at_once: int = AT_ONCE, show: Show = lambda _: None) -> None:
        self.place, self.rows, self.at_once, self._show = place, rows, at_once, show
        self._files: dict[str, ArrayFile] = {}

    def append(self, **columns: Tensor | None) -> None:
        """Put the next rows of columns in; one that is None is not there."""
        for name, column in columns.items():
            if column is not None:
                values = column.numpy()
                if name not in self._files:
                    shape = (self.rows, *values.shape[1:])
                    self._files[name] = ArrayFile(self.place / f"{name}.npy", values.dtype, shape)
                self._files[name].append(values)

    def sort(self) -> None:
        """Put all rows into the order of time, and add the column ``row`` of where each was before."""
        self.close()
        order = self.place / "row.npy"
        write_time_order(mapped(self.place / "t.npy").numpy(), order, self.at_once, self._show)
        rows = mapped(order).numpy()
        for name in self._files:
            path, ordered = self.place / f"{name}.npy", self.place / f"{name}.ordered"
            values = mapped(path).numpy()
            with ArrayFile(ordered, values.dtype, values.shape) as file:
                for start, stop in spans(len(rows), self.at_once):
                    file.append(values[rows[start:stop]])
            del values
            ordered.replace(path)

    def add(self, name: str, values: Tensor) -> None:
        """Put in a column that is there as a whole."""
        write_tensor(values, self.place / f"{name}.npy", self.at_once)

    def tensors(self) -> dict[str, Tensor]:
        """Return the columns by name, as maps of their files."""
        self.close()
        return {path.stem: mapped(path) for path in self.place.glob("*.npy")}

    def close(self) -> None:
        """Leave no file open: from here on nothing is appended."""
        for file in self._files.values():
            file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class ColumnLists:
    """The columns of a stream in memory, as `ColumnFiles` has them on disk."""

    def __init__(self) -> None:
        self._columns: dict[str, list[Tensor]] = {}

    def append(self, **columns: Tensor | None) -> None:
        """Put the next rows of columns in."""
        for name, values in columns.items():
            if values is not None:
                self._columns.setdefault(name, []).append(values)

    def add(self, name: str, values: Tensor) -> None:
        """Put in a column that is there as a whole."""
        self._columns[name] = [values]

    def sort(self) -> None:
        """Put all rows into the order of time, and add the column ``row``."""
        order = torch.argsort(self.tensors()["t"], stable=True)
        self._columns = {name: [values[order]] for name, values in self.tensors().items()} | {"row": [order]}

    def tensors(self) -> dict[str, Tensor]:
        """Return the columns by name."""
        return {
            name: parts[0] if len(parts) == 1 else torch.cat(parts) for name, parts in self._columns.items()
        }
