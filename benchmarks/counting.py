"""What a piece of work costs, counted: operations, and the values that they read and write."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

# Of a table, these read only the rows that they are asked for. A search counts what it looks for, not its
# steps, whose number grows with the logarithm of the table.
PICKING = ("index", "index_select", "gather", "searchsorted")
# These write only those rows.
PUTTING = ("index_put_", "_index_put_impl_", "index_copy_", "index_add_", "index_fill_")
# These read a row of the table for each of the places in another argument: where the two are.
BAGS = {
    "_embedding_bag": (0, 1),
    "_embedding_bag_forward_only": (0, 1),
    "_embedding_bag_per_sample_weights_backward": (1, 2),
}


class Counts(NamedTuple):
    """What some work costs."""

    operations: int
    read: int  # values
    written: int


def counted(work: Callable[[], object]) -> Counts:
    """Return what one call costs; a table counts by the rows touched.

    Only operations of torch in this thread are seen, not what NumPy does with the same memory.
    """
    counter = _Counter()
    with counter:
        work()
    return Counts(counter.operations, counter.read, counter.written)


class _Counter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations, self.read, self.written = 0, 0, 0

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        found = operation(*arguments, **(named or {}))
        self.operations += 1
        if operation.is_view:
            return found
        name = operation.__name__.split(".")[0]
        given = (*arguments, *(named or {}).values())
        if name in PUTTING:
            self.read += _size(given[1:])
            self.written += max(map(_size, given[1:]))  # a single value may go to many places
            return found
        if name in PICKING:
            self.read += _size(given[1:]) + _size(found)
        elif name in BAGS:
            table, places = BAGS[name]
            rest = [value for at, value in enumerate(given) if at != table]
            self.read += _size(rest) + given[places].numel() * given[table].shape[1]
        elif name == "sparse_sampled_addmm":  # it reads a column of the table for each place of the first
            wanted, vectors, table = given[:3]
            self.read += _size((wanted, vectors)) + _size(wanted) * table.shape[0]
        else:
            self.read += _size(given)
        self.written += _size(found)
        return found


def _size(found: Any) -> int:
    """Return how many values there are in tensors, however they are nested."""
    if isinstance(found, Tensor):
        return found._nnz() if found.layout == torch.sparse_csr else found.numel()
    return sum(map(_size, found)) if isinstance(found, tuple | list) else 0
