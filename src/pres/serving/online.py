"""`pres.OnlineModel`: a model that takes in new events and answers about now."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self

import polars as pl
import torch
from torch import Tensor

from pres.data.growing import GrowingStream
from pres.data.incidence import distinct
from pres.data.room import Room
from pres.data.stream import EventStream
from pres.data.tabular.columns import PairColumns
from pres.data.tabular.more import MoreEvents
from pres.data.tabular.pairs import Pairs, Unknown, just_after, read_pairs
from pres.errors import OptionError, RowCountError, check_choice
from pres.evaluation.predict import Prediction, predict_now, table_of_pairs
from pres.models import MDGNN
from pres.nn.ops import rows
from pres.sampling import TemporalBatches, TemporalIndex, grown
from pres.serving.live import open_live
from pres.serving.pending import PendingBatch
from pres.training.checkpoint import Tensors, state_of

Late = Literal["refuse", "arrival"]
Find = Callable[[pl.Series], Tensor]  # ids into nodes


@dataclass(frozen=True, eq=False)
class Observed:
    """What became of events that were observed."""

    rows: Tensor  # [accepted] which of the events are in the stream now
    duplicates: int  # their id was observed before; they are left out
    late: int  # of the accepted, those whose time was put to that of their arrival
    new_nodes: int  # ids that occurred for the first time
    position: int  # events of the stream now

    @property
    def accepted(self) -> int:
        """How many events are in the stream now."""
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class Recommended:
    """Destinations for a source, the likeliest first."""

    ids: list[Any]  # [k] the user's
    score: Tensor  # [k] float64, from 0 to 1


class OnlineModel:
    """A model on a stream that grows: it takes in events with their new nodes, and answers about now.

    Memory is cut at fixed positions of the stream, every ``batch_size`` events from where the model's memory
    stands. The events after the last cut are pending: every answer sees them, as a batch that ends there, but
    the next events see memory without them. So scores do not depend on how events arrive, one by one or in
    chunks, and are those of `pres.predict` on the grown stream.

    A call costs O(events and pairs), whatever the number of nodes and the length of the stream; room for both
    doubles now and then. It is not for several threads at once.

    Args:
        model: The model. It is changed from now on.
        events: The whole stream that it was made from.
        batch_size: Events from one cut to the next: those of an evaluation's batch.
        late: What happens to an event that is earlier than one observed before: ``"refuse"`` refuses it, and
            all that come with it; ``"arrival"`` takes it in at the time of the latest event.
        event_ids: Ids of events that are in the stream already; 7 and ``"7"`` are the same.
    """

    def __init__(
        self,
        model: MDGNN,
        events: EventStream,
        *,
        batch_size: int = 200,
        late: Late = "refuse",
        event_ids: Iterable[Hashable] = (),
    ) -> None:
        if batch_size < 1:
            raise OptionError(f"batch_size={batch_size}: a batch holds at least one event.")
        check_choice("late", late, ("refuse", "arrival"))
        events = events.to(model.memory.device)
        model.check_stream(events)
        self.model, self.batch_size, self.late = model.eval(), batch_size, late
        self._stream = GrowingStream(events)
        self._event_ids = set(map(str, event_ids))
        self._destinations, self._is_destination = Room(events.dst[:0]), set[int]()
        self._index: TemporalIndex | None = None  # for a model that has none
        self._pending: PendingBatch | None = None
        self._followed = 0  # events that the model knows of
        self._catch_up()

    @classmethod
    def open(
        cls, folder: str | Path, device: str = "cpu", source: str | Path | None = None, late: Late = "refuse"
    ) -> Self:
        """Return the model of a saved run, which has taken in all events of the run and of its updates.

        Memory goes on from where it stood after the best validation, in batches as those of the evaluation.
        The arguments are those of `pres.training.open_run`.
        """
        run = open_live(folder, device, source)
        size = run.config["eval_batch_size"]
        return cls(run.model, run.events, batch_size=size, late=late, event_ids=run.event_ids)

    @property
    def events(self) -> EventStream:
        """The stream so far."""
        return self._stream.events

    @property
    def position(self) -> int:
        """How many events were observed, the stream's first ones included."""
        return len(self.events)

    @property
    def committed(self) -> int:
        """How many of them lie before the last cut."""
        return self.position - self._waiting

    def observe(
        self, source: Any, *, features: Any = None, event_ids: Iterable[Hashable] | None = None
    ) -> Observed:
        """Take in events; every answer from now on sees them.

        Either all of them are taken in or, if one cannot be, none. Where memory runs out they may be in
        already: with ``event_ids`` it does no harm to ask again.

        Args:
            source: Anything that `pres.read` takes, in the user's ids, with the columns that the stream was
                read from or with ``src``, ``dst`` and ``t``.
            features: The events' numeric features, one row each, where they are not among the columns.
            event_ids: An id of each event: one that was observed before is left out.
        """
        more = self._stream.read(source, features)
        given = len(more)
        rows, ids = self._not_known(given, event_ids)
        more, late = self._in_time(more if len(rows) == given else more.at(rows))
        before = self.events
        events = self._stream.extend(more)
        self._event_ids.update(ids)
        self._catch_up()
        new = events.num_nodes - before.num_nodes
        return Observed(rows, given - len(rows), late, new, len(events))

    def score(self, src: Any, dst: Any, t: Any = None, *, unknown: Unknown = "error") -> Prediction:
        """Return how likely each source is to meet its destination; see `pres.predict`.

        Args:
            src: Ids of the sources; one alone goes with all destinations.
            dst: Ids of the destinations; one alone goes with all sources.
            t: When: one time or one per pair; None for just after the last event. A time that is not later
                than the last event counts as that too.
            unknown: Whether an id that never occurred is an ``"error"`` or a ``"new"`` node.
        """
        columns = PairColumns("src", "dst", None if t is None else "t")
        pairs = read_pairs(
            table_of_pairs(src, dst, t),
            columns,
            self.events,
            unknown=unknown,
            numbers_fit=True,
            ids=self._stream,
        )
        now = torch.maximum(pairs.t, just_after(self.events))
        return self._scored(Pairs(pairs.src, pairs.dst, now, pairs.new, pairs.new_nodes))

    def recommend(
        self, source: Any, k: int = 10, *, exclude_known: bool = False, unknown: Unknown = "error"
    ) -> Recommended:
        """Return the ``k`` destinations that a source is likeliest to meet next, of all that ever were one.

        Args:
            source: Its id.
            k: How many; fewer if there are no more.
            exclude_known: Whether those that it met already are left out.
            unknown: Whether a source that never occurred is an ``"error"`` or a ``"new"`` node.
        """
        if k < 1:
            raise OptionError(f"k={k}: ask for at least one destination.")
        pairs = self._nodes(source, self._stream.find_src, unknown)
        if len(pairs) != 1:
            raise OptionError("recommend takes the id of one source.")
        node = int(pairs.src)
        candidates = self._destinations.rows
        if exclude_known and node < self.events.num_nodes:
            candidates = candidates[~torch.isin(candidates, self._met(node))]
        if not len(candidates):
            return Recommended([], torch.empty(0, dtype=torch.float64))
        src = torch.full_like(candidates, node)
        new = src == self.events.num_nodes
        t = just_after(self.events).repeat(len(src))
        score = self._scored(Pairs(src, candidates, t, new, int(new.any()))).score
        best = torch.argsort(score, descending=True, stable=True)[:k]
        return Recommended(self.events.ids.decode(candidates.cpu()[best]).to_list(), score[best])

    @torch.no_grad()
    def embedding(self, ids: Any, side: Literal["src", "dst"] = "src") -> Tensor:
        """Return the embeddings `[n, dim]` of nodes just after the last event.

        Args:
            ids: Ids of the nodes.
            side: In a bipartite stream, whether they are sources or destinations.
        """
        check_choice("side", side, ("src", "dst"))
        find = self._stream.find_src if side == "src" else self._stream.find_dst
        nodes = self._nodes(ids, find).src.to(self.model.memory.device)
        self._take_in_pending()
        subgraph = self.model.sample_pairs(nodes, nodes, just_after(self.events).repeat(len(nodes)))
        states = self.model.updated_memory(subgraph.nodes)
        return rows(self.model.embed(subgraph, states), subgraph.src).cpu()

    def state(self) -> Tensors:
        """Return a copy of weights, memory and mail as they are at the last cut.

        A model that has grown with the same events, was given this state, and takes in what lies behind the
        cut is as this one, bit for bit.
        """
        if self._followed < self.position:
            self._catch_up()
        self._take_out()
        return state_of(self.model)

    def _nodes(self, ids: Any, find: Find, unknown: Unknown = "error") -> Pairs:
        """Return pairs of nodes with themselves."""
        both = _Finder(find, find)
        columns = PairColumns("src", "src", None)
        return read_pairs(table_of_pairs(ids, ids, None), columns, self.events, unknown=unknown, ids=both)

    def _scored(self, pairs: Pairs) -> Prediction:
        self._take_in_pending()
        return predict_now(self.model, self.events, pairs)

    @property
    def _waiting(self) -> int:
        """How many events lie behind the last cut."""
        if self._pending is not None:
            return self._pending.size
        return self.position - self.model.memory.position

    @torch.no_grad()
    def _catch_up(self) -> None:
        """Let the model follow the stream, and take in all whole batches.

        Where that fails, for want of memory or by a signal, the next call does what is left.
        """
        self._take_out()
        self.model.grow(self.events)
        self._note_destinations(self.events.dst[self._followed :])
        known = self.model.memory.position
        whole = (self.position - known) // self.batch_size * self.batch_size
        for batch in TemporalBatches(self.events[known : known + whole], self.batch_size):
            PendingBatch(self.model, batch)  # and is never undone
        self._followed = self.position

    @torch.no_grad()
    def _take_in_pending(self) -> None:
        if self._followed < self.position:
            self._catch_up()
        if self._pending is None and self._waiting:
            self._pending = PendingBatch(self.model, self.events[self.model.memory.position :])

    @torch.no_grad()
    def _take_out(self) -> None:
        if self._pending is not None:
            self._pending.undo()
            self._pending = None

    def _not_known(self, count: int, event_ids: Iterable[Hashable] | None) -> tuple[Tensor, list[str]]:
        """Return which of so many events were not observed before, each once, and their ids."""
        if event_ids is None:
            return torch.arange(count), []
        given = list(event_ids)
        if len(given) != count:
            raise RowCountError(f"there are {len(given):,} event_ids for {count:,} events: give one each.")
        if None in given:  # two of them would pass for one event
            raise OptionError(f"event {given.index(None) + 1:,} of {count:,} has no id: give one each.")
        first: dict[str, int] = {}
        for row, event in enumerate(map(str, given)):
            if event not in self._event_ids:
                first.setdefault(event, row)
        return torch.tensor(list(first.values()), dtype=torch.int64), list(first)

    def _in_time(self, more: MoreEvents) -> tuple[MoreEvents, int]:
        """Return the events with late ones at the time of their arrival, if so they are taken in."""
        if self.late == "refuse" or not len(more):
            return more, 0
        t = more.t.clamp(min=self.events.t[-1].item()).cummax(0).values
        return MoreEvents(more.src, more.dst, t, more.x, more.categories), int((t != more.t).sum())

    def _note_destinations(self, nodes: Tensor) -> None:
        new = [node for node in distinct(nodes).tolist() if node not in self._is_destination]
        if new:
            self._destinations.append(nodes.new_tensor(new), len(self._is_destination))
            self._is_destination.update(new)

    def _met(self, node: int) -> Tensor:
        """Return the nodes that one has met."""
        index = self.model.index
        if index is None:
            index = grown(self._index or TemporalIndex(self.events), self.events)
            self._index = index
        asked = self.events.src.new_tensor([node])
        end = asked.new_tensor([self.position])
        count = int(index.counts(asked, end))
        return index.recent(asked, end, max(count, 1)).nodes[0, :count]


@dataclass(frozen=True)
class _Finder:
    find_src: Find
    find_dst: Find
