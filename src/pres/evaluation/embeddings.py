"""Embeddings along a stream: every source as the model saw it just before the event."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import DivergedError
from pres.evaluation.scorer import BatchReading
from pres.models import MDGNN
from pres.models.scratch import scratch_of
from pres.nn.ops import rows
from pres.sampling import TemporalBatches


@torch.no_grad()
def source_embeddings(
    model: MDGNN,
    events: EventStream,
    *,
    batch_size: int = 200,
    on_progress: Callable[[int, int], None] | None = None,
) -> Tensor:
    """Return the embedding `[n, dim]` of every event's source just before the event, on the CPU.

    The stream is replayed from its first event with the weights as they are: each batch is embedded first and
    taken in then. Where memory is scanned no event at the same time is seen either. Trackers of a filter
    begin anew and follow the training part; see `pres.evaluation.scorer.replay`. The model itself
    stays as it is.

    Args:
        model: A model made from ``events``.
        events: The whole stream.
        batch_size: Events per batch of the replay.
        on_progress: Called with the number of events replayed so far, and of those to replay.
    """
    model.check_stream(events)
    replayed, train_end = scratch_of(model), len(events.split().train)
    replayed.reset()
    found = torch.empty(len(events), model.embedding.dim, dtype=model.memory.dtype)
    for batch in TemporalBatches(events.to(model.memory.device), batch_size):
        stop = batch.offset + len(batch)
        reading = BatchReading(replayed, batch)
        subgraph, states = reading.read(batch.dst.new_empty(len(batch), 0))
        found[batch.offset : stop] = rows(replayed.embed(subgraph, states), subgraph.src)
        reading.take_in(follow=batch.offset < train_end)
        if on_progress is not None:
            on_progress(stop, len(events))
    if not bool(found.isfinite().all()):
        event = int((~found.isfinite().all(dim=1)).nonzero()[0])
        raise DivergedError(
            f"the embedding of event {event:,}'s source is not finite. Train the model with a smaller lr, or "
            "see whether features before the event are huge."
        )
    return found
