"""What scores links along a stream, and how a model's memory takes in events without training."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal, Protocol

import torch
from torch import Tensor

from pres.data.incidence import distinct
from pres.data.stream import EventStream
from pres.models import MDGNN, States
from pres.models.sample import Subgraph
from pres.models.scanned import Scanned
from pres.models.sequential import SequentialMemory, sequential_memory
from pres.sampling import TemporalBatches

PAIRS_AT_ONCE = 20_000  # pairs that a model scores in one go, so that many negatives fit into memory


class Scorer(Protocol):
    """Anything that scores links along a stream: each batch is scored first, and taken in then."""

    def score(self, batch: EventStream, negatives: Tensor) -> tuple[Tensor, Tensor]:
        """Return scores of the events `[b]` and of their negatives `[b, count]`; higher is likelier."""
        ...

    def update_state(self, batch: EventStream) -> None:
        """Take the batch in: from now on its events are the past."""
        ...


class BatchReading:
    """A batch of a model's stream: what its events are predicted from, and then taken in, without training.

    Args:
        model: The model, its memory as just before the batch.
        batch: The next events.
        staleness: With 0 each event sees memory after all that are strictly earlier, if batches do not cut
            ties; memory is then sequential. None: as the batch finds it.
    """

    def __init__(self, model: MDGNN, batch: EventStream, staleness: Literal[0] | None = None) -> None:
        self.model, self.batch, self.staleness = model, batch, staleness
        self._states: States | None = None
        self._inside: SequentialMemory | None = None
        self._scanned: Scanned | None = None

    def read(self, negatives: Tensor) -> tuple[Subgraph, States]:
        """Return what scoring the events and their negatives `[b, count]` needs to see, and its memory."""
        model, batch = self.model, self.batch
        if model.scans:
            if self._scanned is None:
                self._scanned = model.scanned(model.window(batch.offset, batch.offset + len(batch)))
            staleness = len(batch) if self.staleness is None else self.staleness
            seen = model.sample_window(self._scanned.window, negatives, staleness)
            return model.prepared(seen), self._scanned.updated_memory(seen.nodes, seen.version)
        if self.staleness == 0:
            self._inside = self._inside or sequential_memory(model, batch)
            inside = self._inside.sample(batch, negatives, strictly=True)
            return inside, self._inside.states_of(inside)
        subgraph = model.sample(batch, negatives)
        self._states = model.updated_memory(subgraph.nodes)
        return subgraph, self._states

    def take_in(self, sequential: bool = False, follow: bool = False) -> None:
        """Move the model's memory past the batch; what reading has measured is used again.

        Smoothing is frozen, unless it is live or is told to ``follow`` the events. See also
        `MDGNN.update_state`.
        """
        if self._scanned is not None:
            self._scanned.commit()
            return
        model, batch, states, smoothing = self.model, self.batch, self._states, self.model.smoothing
        update = None
        if smoothing is not None and "event" in smoothing.observes and (smoothing.live or follow):
            endpoints = distinct(torch.cat([batch.src, batch.dst]))
            states = model.updated_memory(endpoints) if states is None else states
            update = model.pending_update({"event": endpoints}, states)
        if (sequential or self.staleness == 0) and not model.scans:
            (self._inside or sequential_memory(model, batch, states)).commit()
        else:
            model.update_state(batch, states)
        if smoothing is not None and update is not None:
            smoothing.observe(*update)


class ModelScorer:
    """A model as a scorer; it is in evaluation mode while it works.

    Args:
        model: The model.
        sequential: Whether its memory moves with every event, see `MDGNN.update_state`.
        staleness: See `BatchReading`.
    """

    def __init__(self, model: MDGNN, sequential: bool = False, staleness: Literal[0] | None = None) -> None:
        self.model, self.sequential, self.staleness = model, sequential, staleness
        self._reading: BatchReading | None = None

    def score(self, batch: EventStream, negatives: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the events `[b]` and of their negatives `[b, count]`."""
        columns = max(1, PAIRS_AT_ONCE // max(len(batch), 1))
        self._reading = BatchReading(self.model, batch, self.staleness)
        against: list[Tensor] = []
        with _evaluating(self.model):
            for some in torch.split(negatives, columns, dim=1):
                positive, negative = self.model.score(*self._reading.read(some))
                against.append(negative)
        return positive, torch.cat(against, dim=1)

    def update_state(self, batch: EventStream) -> None:
        """Move the model's memory past the batch; what scoring it has measured is used again."""
        reading, self._reading = self._reading, None
        if reading is None or reading.batch is not batch:
            reading = BatchReading(self.model, batch, self.staleness)
        with _evaluating(self.model):
            reading.take_in(self.sequential)


def replay(
    model: MDGNN,
    parts: Sequence[EventStream],
    batch_size: int,
    sequential: bool = False,
    on_batch: Callable[[EventStream], None] | None = None,
) -> None:
    """Let the model's memory take in the stream from its first event on, by the weights that it has.

    ``parts`` follow each other, the training part first; batches do not run across their edges. Trackers
    begin anew with the memory and follow the training part, as they do in training; the other parts only if
    they are live.
    """
    model.reset()
    with _evaluating(model):
        for number, part in enumerate(parts):
            for batch in TemporalBatches(part, batch_size):
                BatchReading(model, batch).take_in(sequential, follow=number == 0)
                if on_batch is not None:
                    on_batch(batch)


def catch_up(model: MDGNN, part: EventStream, batch_size: int) -> None:
    """Let the model's memory and smoothing take in a part of the training events, without training."""
    with _evaluating(model):
        for batch in TemporalBatches(part, batch_size):
            BatchReading(model, batch).take_in(follow=True)


@contextmanager
def _evaluating(model: MDGNN) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
