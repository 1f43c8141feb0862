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


class ModelScorer:
    """A model as a scorer; it is in evaluation mode while it works.

    Args:
        model: The model.
        sequential: Whether its memory moves with every event, see `MDGNN.update_state`.
        staleness: With 0 each event sees memory after all that are strictly earlier, if batches do not cut
            ties; memory is then sequential. None: as its batch finds it.
    """

    def __init__(self, model: MDGNN, sequential: bool = False, staleness: Literal[0] | None = None) -> None:
        self.model, self.sequential, self.staleness = model, sequential or staleness == 0, staleness
        self._scored: tuple[EventStream, States | None, SequentialMemory | None] | None = None
        self._scanned: Scanned | None = None

    def score(self, batch: EventStream, negatives: Tensor) -> tuple[Tensor, Tensor]:
        """Return the logits of the events `[b]` and of their negatives `[b, count]`."""
        columns = max(1, PAIRS_AT_ONCE // max(len(batch), 1))
        if self.model.scans:
            return self._score_by_scan(batch, torch.split(negatives, columns, dim=1))
        against: list[Tensor] = []
        states, inside = None, None
        with _evaluating(self.model):
            if self.staleness == 0:
                inside = sequential_memory(self.model, batch)
            for some in torch.split(negatives, columns, dim=1):
                if inside is None:
                    subgraph = self.model.sample(batch, some)
                    states = self.model.updated_memory(subgraph.nodes)
                else:
                    subgraph = inside.sample(batch, some, strictly=True)
                    states = inside.states_of(subgraph)
                positive, negative = self.model.score(subgraph, states)
                against.append(negative)
        self._scored = (batch, states if inside is None else None, inside)
        return positive, torch.cat(against, dim=1)

    def _score_by_scan(self, batch: EventStream, parts: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        model, against = self.model, []
        staleness = len(batch) if self.staleness is None else self.staleness
        with _evaluating(model):
            window = model.window(batch.offset, batch.offset + len(batch))
            self._scanned = model.scanned(window)
            for some in parts:
                subgraph = model.with_prepared(model.sample_window(window, some, staleness))
                assert subgraph.version is not None
                positive, negative = model.score(
                    subgraph, self._scanned.updated_memory(subgraph.nodes, subgraph.version)
                )
                against.append(negative)
        return positive, torch.cat(against, dim=1)

    def update_state(self, batch: EventStream) -> None:
        """Move the model's memory past the batch; what scoring it has measured is used again."""
        scanned, self._scanned = self._scanned, None
        if scanned is not None and scanned.window.batch.offset == batch.offset:
            scanned.commit()
            return
        states, inside = None, None
        if self._scored is not None and self._scored[0] is batch:
            _, states, inside = self._scored
        self._scored = None
        with _evaluating(self.model):
            take_in(self.model, batch, states, self.sequential, inside)


def take_in(
    model: MDGNN,
    batch: EventStream,
    states: States | None = None,
    sequential: bool = False,
    inside: SequentialMemory | None = None,
    follow: bool = False,
) -> None:
    """Take in a batch without training on it; see `MDGNN.update_state`.

    Smoothing is frozen, unless it is live or is told to ``follow`` the events.
    """
    smoothing = model.smoothing
    if smoothing is None or "event" not in smoothing.observes or not (smoothing.live or follow):
        _update_state(model, batch, states, sequential, inside)
        return
    endpoints = distinct(torch.cat([batch.src, batch.dst]))
    states = model.updated_memory(endpoints) if states is None else states
    update = model.pending_update({"event": endpoints}, states)
    _update_state(model, batch, states, sequential, inside)
    smoothing.observe(*update)


def _update_state(
    model: MDGNN,
    batch: EventStream,
    states: States | None,
    sequential: bool,
    inside: SequentialMemory | None,
) -> None:
    if sequential and not model.scans:
        (inside or sequential_memory(model, batch, states)).commit()
    else:
        model.update_state(batch, states)


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
                take_in(model, batch, sequential=sequential, follow=number == 0)
                if on_batch is not None:
                    on_batch(batch)


def catch_up(model: MDGNN, part: EventStream, batch_size: int) -> None:
    """Let the model's memory and smoothing take in a part of the training events, without training."""
    with _evaluating(model):
        for batch in TemporalBatches(part, batch_size):
            take_in(model, batch, follow=True)


@contextmanager
def _evaluating(model: MDGNN) -> Iterator[None]:
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(was_training)
