"""A batch that a model has taken in for now: its memory can go back to where it was."""

from __future__ import annotations

import torch
from torch import Tensor

from pres.data.incidence import distinct
from pres.data.stream import EventStream
from pres.evaluation.scorer import BatchReading
from pres.models import MDGNN


class PendingBatch:
    """The last events of a stream, taken in by a model that has taken in all before; `undo` takes them out.

    What they change is kept row by row: that costs as much as they do, however large the state is. The model
    is as it was if they cannot be taken in.

    Args:
        model: The model, in evaluation mode.
        batch: The next events.
    """

    def __init__(self, model: MDGNN, batch: EventStream) -> None:
        self._memory, self.size = model.memory, len(batch)
        self._nodes = _written(model, batch)
        self._rows = {
            name: buffer.index_select(0, self._nodes) if buffer.ndim else buffer.clone()
            for name, buffer in model.memory.named_buffers()
        }
        smoothing, self._put_back = model.smoothing, None
        if smoothing is not None and smoothing.live:
            self._put_back = smoothing.kept(distinct(torch.cat([batch.src, batch.dst])))
        try:
            BatchReading(model, batch).take_in()
        except BaseException:  # out of memory, or stopped
            self.undo()
            raise

    def undo(self) -> None:
        """Let the model be as it was before the batch, bit for bit."""
        for name, buffer in self._memory.named_buffers():
            if buffer.ndim:
                buffer.index_copy_(0, self._nodes, self._rows[name])
            else:
                buffer.copy_(self._rows[name])
        if self._put_back is not None:
            self._put_back()


def _written(model: MDGNN, batch: EventStream) -> Tensor:
    """Return the nodes `[u]` whose state a batch changes: those it moves, and those it sends mail to."""
    if model.scans:
        window = model.window(batch.offset, batch.offset + len(batch))
        nodes = window.chains.node
        if window.mail is not None:
            nodes = torch.cat([nodes, torch.div(window.mail.keys, len(window.events), rounding_mode="floor")])
        return distinct(nodes)
    routing = model.route(batch)
    return distinct(torch.cat([routing.endpoints, routing.last.to]))
