"""`compare`: a trained model beside scorers without weights, under several kinds of negatives."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from pres.data.stream import EventStream
from pres.errors import OptionError, check_choice
from pres.evaluation.baselines import EdgeBank, Popularity
from pres.evaluation.link import Group, LinkScores, check_negatives, link_scores, seen_in
from pres.evaluation.metrics import LinkMetrics
from pres.evaluation.scorer import Scorer, replay
from pres.models import MDGNN
from pres.models.scratch import scratch_of
from pres.sampling import NegativeSampler
from pres.sampling.negatives import NegativeStrategy

STRATEGIES: tuple[NegativeStrategy, ...] = ("random", "historical", "inductive")
Pool = Literal["destinations", "nodes"]
Part = Literal["val", "test"]
Staleness = Literal["both", "batch", 0]


@dataclass(frozen=True)
class ComparisonRow:
    """One scorer under one kind of negatives, at one staleness, on one group of events."""

    scorer: str
    strategy: NegativeStrategy
    staleness: int  # events that are predicted from the same state; 0: each after all strictly earlier ones
    group: Group
    metrics: LinkMetrics | None  # None: the group has no events
    fallback_share: float | None  # share of negatives that had to be drawn from the pool


@dataclass(frozen=True)
class Comparison:
    """What `compare` found, and what it rests on."""

    dataset: str
    variant: str | None
    model: str
    part: Part
    events: int  # of the part
    batch_size: int
    begins: str  # time of the part's first event, and
    ends: str  # of its last; a date if the stream was read from dates
    negatives: int  # per event
    seed: int
    sequential: bool  # whether the model's memory moves with every event of a batch
    pool: str  # of random negatives, and of those without a history; see `NegativeSampler`
    pool_size: int
    window: float | None  # of EdgeBank (window), in the stream's unit of time; None without baselines
    memory: Literal["as given", "replayed"]  # where the model's memory just before the part came from
    rows: list[ComparisonRow]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, as ``pres evaluate --json`` prints it."""
        return dataclasses.asdict(self)


def compare(
    model: MDGNN,
    events: EventStream,
    part: Part = "test",
    *,
    strategies: Sequence[NegativeStrategy] = STRATEGIES,
    negatives: int = 100,
    batch_size: int = 200,
    seed: int = 0,
    sequential: bool = False,
    staleness: Staleness = "both",
    pool: Pool = "destinations",
    anew: bool = False,
    baselines: bool = True,
    window: float | None = None,
    on_progress: Callable[[int, int], None] | None = None,
) -> Comparison:
    """Return how well ``model``, EdgeBank and popularity predict the links of a part of the stream.

    Every scorer starts every strategy from its state just before the part, and meets the same negatives.
    If the model's memory is elsewhere in the stream, it is made anew: everything before the part is
    replayed with the weights as they are. The model itself stays as it is.

    Args:
        model: A model made from ``events``, its weights trained.
        events: The whole stream, split 70 / 15 / 15 in time.
        part: ``"val"`` or ``"test"``.
        strategies: Kinds of negatives, see `NegativeSampler`.
        negatives: Negatives per event that it is ranked among; AP and AUC go by the first of them alone.
        batch_size: Events per batch, in replay too, whatever the training batch was.
        seed: The same seed gives the same negatives.
        sequential: Whether the model's memory moves with every event of a batch, in replay too; see
            `MDGNN.update_state`.
        staleness: ``"batch"`` predicts an event from the state at the beginning of its batch, 0 from that
            after all strictly earlier events, see `link_scores`; ``"both"`` gives both. Figures at different
            staleness are not comparable.
        pool: Where random negatives come from, see `NegativeSampler`.
        anew: Whether everything before the part is replayed even if the memory is in its place.
        baselines: Whether to score EdgeBank and popularity too.
        window: How long EdgeBank (window) remembers; by default as long as the part is.
        on_progress: Called after every batch with the events done and to do.
    """
    check_choice("part", part, ("val", "test"))
    if staleness not in ("both", "batch", 0):
        raise OptionError(f"staleness={staleness!r}: give 'both', 'batch' or 0.")
    check_negatives(negatives)
    strategies = list(dict.fromkeys(strategies))
    if not strategies:
        raise OptionError(f"name at least one strategy of {', '.join(STRATEGIES)}.")
    for strategy in strategies:
        check_choice("strategy", strategy, STRATEGIES)
    events = events.to(model.memory.device)
    model.check_stream(events)
    split = events.split()
    scored: EventStream = getattr(split, part)
    if window is None:
        window = (scored.t[-1] - scored.t[0]).item()
    others: dict[str, EdgeBank | Popularity] = {}
    if baselines:
        others = {"EdgeBank": EdgeBank(events), "EdgeBank (window)": EdgeBank(events, window)}
        others |= {"popularity": Popularity(events)}
    samplers = [
        NegativeSampler(events, strategy, pool=pool, train_end=len(split.train)) for strategy in strategies
    ]
    seen = seen_in(split.train, scored)
    replayed = anew or model.memory.position != scored.offset
    levels = {"both": [batch_size, 0], "batch": [batch_size], 0: [0]}[staleness]
    to_do = len(levels) * (1 + len(others)) * len(scored) + (scored.offset if replayed else 0)
    step = _counter(to_do, on_progress)
    settings: dict[str, Any] = {
        "batch_size": batch_size,
        "negatives": negatives,
        "seed": seed,
        "sequential": sequential,
    }
    found: dict[tuple[NegativeStrategy, str, int], LinkScores] = {}
    start = scratch_of(model)  # the model as it is just before the part
    if replayed:
        replay(start, split[: 1 if part == "val" else 2], batch_size, sequential, step)

    def before(name: str) -> MDGNN | Scorer:
        """Return a scorer as it is just before the part."""
        if name not in others:
            return scratch_of(start)
        others[name].reset()
        others[name].update_state(events[: scored.offset])
        return others[name]

    scorers = [model.title, *others]
    for name, level in product(scorers, levels):
        as_it_is: Literal[0] | None = 0 if level == 0 else None
        every = link_scores(before(name), scored, samplers, staleness=as_it_is, on_batch=step, **settings)
        found |= {(of.strategy, name, level): own for of, own in zip(samplers, every, strict=True)}
    rows = []
    for strategy, name, level in product(strategies, scorers, levels):
        for group, own in found[strategy, name, level].by_group(seen).items():
            known = (None, None) if own is None else (own.metrics, own.fallback_share)
            rows.append(ComparisonRow(name, strategy, level, group, *known))
    return Comparison(
        dataset=events.info.name,
        variant=events.info.variant,
        model=model.title,
        part=part,
        events=len(scored),
        begins=events.time_text(scored.t[0].item()),
        ends=events.time_text(scored.t[-1].item()),
        **settings,
        pool=pool,
        pool_size=len(samplers[0].pool),
        window=window if baselines else None,
        memory="replayed" if replayed else "as given",
        rows=rows,
    )


def _counter(to_do: int, on_progress: Callable[[int, int], None] | None) -> Callable[[EventStream], None]:
    """Return what counts the events of batches up to ``to_do`` and tells ``on_progress``."""
    done = 0

    def step(batch: EventStream) -> None:
        nonlocal done
        done += len(batch)
        if on_progress is not None:
            on_progress(done, to_do)

    return step
