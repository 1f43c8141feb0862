"""Tensors that grow at their end: what was handed out stays as it is."""

from __future__ import annotations

from torch import Tensor


class Room:
    """Rows with room behind them.

    Rows that were handed out are never written to again, so views of any earlier length stay valid. Room
    doubles when it is used up: appending costs O(new rows) in the long run.
    """

    def __init__(self, rows: Tensor) -> None:
        self._rows, self._used = rows, len(rows)

    @property
    def rows(self) -> Tensor:
        """All rows so far."""
        return self._rows[: self._used]

    def append(self, more: Tensor, behind: int | None = None) -> Tensor:
        """Return all rows, with ``more`` `[n, …]` behind those before.

        With ``behind`` only so many are kept of those: what was appended since was never handed out.
        """
        self._used = self._used if behind is None else behind
        used = self._used + len(more)
        if used > len(self._rows):
            larger = self._rows.new_empty(used + used // 2, *self._rows.shape[1:])
            larger[: self._used] = self.rows
            self._rows = larger
        self._rows[self._used : used] = more
        self._used = used
        return self.rows
