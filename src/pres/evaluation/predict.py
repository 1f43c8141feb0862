"""`pres.predict`: how likely any pairs are to interact, at any time of a stream or after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.data.tabular.columns import PairColumns
from pres.data.tabular.pairs import Pairs, Unknown, read_pairs
from pres.data.tabular.rows import Table, open_table
from pres.errors import DivergedError, OptionError
from pres.evaluation.scorer import BatchReading
from pres.models import MDGNN
from pres.models.sample import once_each
from pres.models.scratch import blank_reader_of, reader_of, scratch_of
from pres.sampling import TemporalBatches
from pres.sampling.index import first_at

ROWS_AT_ONCE = 5_000  # that a model scores in one go, so that any number of them fits into memory


@dataclass(frozen=True, eq=False)
class Prediction:
    """The scores of pairs, in the order in which they were given."""

    score: Tensor  # [n] float64, from 0 to 1; the higher, the likelier
    new: Tensor  # [n] bool: an id of the pair never occurs in the stream
    new_nodes: int  # how many such ids there are

    def __len__(self) -> int:
        return len(self.score)


def predict(
    model: MDGNN,
    events: EventStream,
    src: Any,
    dst: Any,
    t: Any = None,
    *,
    batch_size: int = 200,
    unknown: Unknown = "error",
    on_progress: Callable[[int, int], None] | None = None,
) -> Prediction:
    """Return how likely each source is to meet its destination at its time.

    A score is the probability that the model gives the pair against a random one, which is how it was
    trained: use it to rank pairs, not as the rate at which they meet.

    A pair is scored as evaluation scores an event: with the memory after all batches that lie before its
    time, and with neighbours before its time. Where the model's memory has not come that far, it goes on from
    where it stands; where it is beyond, the stream is replayed from the beginning with the present weights.
    The model itself stays as it is, and a score does not depend on what else is asked.

    Args:
        model: A model made from ``events``.
        events: The whole stream.
        src: Ids of the sources, as in the user's data; one alone goes with all destinations.
        dst: Ids of the destinations; one alone goes with all sources.
        t: When: one time or one per pair, in the stream's unit, or dates if the stream was read from dates.
            None asks about the moment after the last event.
        batch_size: Events per batch of a replay.
        unknown: Whether an id that the stream never saw is an ``"error"`` or a ``"new"`` node, one without
            any history.
        on_progress: Called with the number of events replayed so far, and of those to replay.
    """
    columns = PairColumns("src", "dst", None if t is None else "t")
    pairs = read_pairs(table_of_pairs(src, dst, t), columns, events, unknown=unknown, numbers_fit=True)
    return predict_pairs(model, events, pairs, batch_size=batch_size, on_progress=on_progress)


def predict_pairs(
    model: MDGNN,
    events: EventStream,
    pairs: Pairs,
    *,
    batch_size: int = 200,
    on_progress: Callable[[int, int], None] | None = None,
) -> Prediction:
    """Return the scores of pairs that were read already; see `predict`."""
    if batch_size < 1:
        raise OptionError(f"batch_size={batch_size}: a batch holds at least one event.")
    events = events.to(model.memory.device)
    model.check_stream(events)
    (src, dst, t), place = _once_each(pairs, events)
    known, train_end = model.memory.position, len(events.split().train)
    replays = _replays(known, first_at(events.t, t), len(events), batch_size)
    to_do, done = sum(replay.events for replay in replays), 0
    logits = torch.empty(len(src), dtype=torch.float64, device=src.device)
    for replay in replays:
        if replay.events or replay.start < known:
            worker = scratch_of(model)
        else:  # nothing is written
            worker = blank_reader_of(model) if bool(pairs.new.any()) else reader_of(model)
        if replay.start < known:
            worker.reset()  # trackers, too: they follow the training part again
        for position, rows in replay.stops:
            for batch in TemporalBatches(events[worker.memory.position : position], batch_size):
                follow = replay.start < known and batch.offset < train_end
                BatchReading(worker, batch).take_in(follow=follow)
                done += len(batch)
                if on_progress is not None:
                    on_progress(done, to_do)
            logits[rows] = _logits(worker, src[rows], dst[rows], t[rows])
    return _prediction(logits, place, pairs)


def predict_now(model: MDGNN, events: EventStream, pairs: Pairs) -> Prediction:
    """Return the scores of pairs after all events, which the model, in evaluation mode, has taken in."""
    (src, dst, t), place = _once_each(pairs, events)
    reader = blank_reader_of(model) if bool(pairs.new.any()) else model
    return _prediction(_logits(reader, src, dst, t), place, pairs)


def _once_each(pairs: Pairs, events: EventStream) -> tuple[list[Tensor], Tensor]:
    """Return each distinct pair's source, destination and time, and where each of the pairs is among them.

    They are in one order: equal rows get equal bits, wherever they stand.
    """
    _, couple = torch.unique(pairs.src * (events.num_nodes + 1) + pairs.dst, return_inverse=True)
    chosen, place = once_each(couple, torch.unique(pairs.t, return_inverse=True)[1])
    return [column[chosen].to(events.t.device) for column in (pairs.src, pairs.dst, pairs.t)], place


@torch.no_grad()
def _logits(model: MDGNN, src: Tensor, dst: Tensor, t: Tensor) -> Tensor:
    found = []
    for some in torch.split(torch.arange(len(src), device=src.device), ROWS_AT_ONCE):
        subgraph = model.sample_pairs(src[some], dst[some], t[some])
        found.append(model.score(subgraph, model.updated_memory(subgraph.nodes))[0].double())
    return torch.cat(found)


def _prediction(logits: Tensor, place: Tensor, pairs: Pairs) -> Prediction:
    if not bool(logits.isfinite().all()):
        raise DivergedError("the model's scores are not finite numbers. Train it with a smaller lr.")
    return Prediction(logits.sigmoid().cpu()[place], pairs.new, pairs.new_nodes)


@dataclass(frozen=True, eq=False)
class _Replay:
    """One way along a stream, with stops at which pairs are scored."""

    start: int
    stops: list[tuple[int, Tensor]]  # how many events are known there, and which pairs are scored

    @property
    def events(self) -> int:
        """Number of events to take in on the way."""
        return self.stops[-1][0] - self.start


def _replays(known: int, reached: Tensor, n: int, batch_size: int) -> list[_Replay]:
    """Return the ways along ``n`` events that lead to pairs which lie behind the first ``reached`` `[q]`.

    One goes on from the ``known`` events; one starts at the beginning, for pairs that lie before these.
    """
    replays = []
    for start, wanted in ((0, reached < known), (known, reached >= known)):
        pairs = wanted.nonzero().squeeze(1)
        if len(pairs):
            # A pair inside a batch is scored where that begins, one after the last event at the end.
            begun = reached[pairs] - (reached[pairs] - start) % batch_size
            begun, order = torch.where(reached[pairs] < n, begun, n).sort(stable=True)
            positions, counts = torch.unique_consecutive(begun, return_counts=True)
            parts = torch.split(pairs[order], counts.tolist())
            replays.append(_Replay(start, list(zip(positions.tolist(), parts, strict=True))))
    return replays


def table_of_pairs(src: Any, dst: Any, t: Any) -> Table:
    """Return pairs given in any form as a table; what is given once goes with every row."""
    given = {"src": src, "dst": dst} | ({} if t is None else {"t": t})
    sizes = [len(values) for values in given.values() if not _single(values)]
    rows = max(sizes, default=1)
    columns = {name: [values] * rows if _single(values) else values for name, values in given.items()}
    return open_table(columns, what="the pairs")


def _single(values: Any) -> bool:
    return isinstance(values, str) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0
