"""Neighbours and negatives for one training epoch of Wikipedia, beside a sampler that loops over queries."""

import bisect
from collections.abc import Callable, Iterable
from typing import TypeVar

import torch
from rich.console import Console
from rich.table import Table

import pres
from benchmarks.timing import median_seconds
from pres.sampling import NegativeSampler, TemporalBatches, TemporalIndex

BATCH, K = 600, 10
T = TypeVar("T")


class LoopSampler:
    """Per-node lists and one bisection per query: how samplers are written without vectorisation."""

    def __init__(self, events: pres.EventStream) -> None:
        self.positions: list[list[int]] = [[] for _ in range(events.num_nodes)]
        self.others: list[list[int]] = [[] for _ in range(events.num_nodes)]
        for event, (src, dst) in enumerate(zip(events.src.tolist(), events.dst.tolist(), strict=True)):
            for node, other in ((src, dst), (dst, src)) if src != dst else ((src, dst),):
                self.positions[node].append(event)
                self.others[node].append(other)

    def recent(self, nodes: torch.Tensor, cutoffs: torch.Tensor, k: int) -> torch.Tensor:
        found = torch.zeros(len(nodes), k, dtype=torch.int64)
        for row, (node, cutoff) in enumerate(zip(nodes.tolist(), cutoffs.tolist(), strict=True)):
            end = bisect.bisect_left(self.positions[node], cutoff)
            recent = self.others[node][max(0, end - k) : end][::-1]
            found[row, : len(recent)] = torch.tensor(recent)
        return found


def stream() -> pres.EventStream:
    """Wikipedia where it is at hand, otherwise a synthetic stream of its size."""
    try:
        return pres.load("wikipedia")
    except pres.PresError as error:
        print(f"Wikipedia is not at hand ({error}): a synthetic stream of its size instead")
        return pres.load("synthetic", num_events=157_474, num_users=8_227, num_items=1_000)


def _each(work: Callable[[T], object], items: Iterable[T]) -> None:
    """Do the work for every item and let its result go, as a training loop does."""
    for item in items:
        work(item)


def run() -> None:
    events = stream()
    train = events.split().train
    batches = list(TemporalBatches(train, BATCH))
    index, loop = TemporalIndex(events), LoopSampler(events)
    random, historical = NegativeSampler(events), NegativeSampler(events, "historical")
    queries = []
    for batch in batches:
        roots = torch.cat([batch.src, batch.dst, random.sample(batch).nodes[:, 0]])
        queries.append((roots, index.cutoffs(batch).repeat(3)))
    for roots, cutoffs in queries[:20]:
        assert torch.equal(index.recent(roots, cutoffs, K).nodes, loop.recent(roots, cutoffs, K))

    found = median_seconds(
        {
            "recent": lambda: _each(lambda query: index.recent(*query, K), queries),
            "uniform": lambda: _each(lambda query: index.uniform(*query, K), queries),
            "negatives, random": lambda: _each(random.sample, batches),
            "negatives, historical": lambda: _each(historical.sample, batches),
            "recent, looping": lambda: _each(lambda query: loop.recent(*query, K), queries),
        }
    )
    title = f"{events.info.title}: one epoch, {3 * len(train):,} roots in batches of {BATCH}, k = {K}"
    table = Table(title=title, title_justify="left")
    for name in ("what", "seconds", "looping / this"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for name, spent in found.items():
        ratio = f"{found['recent, looping'] / spent:.1f}" if "negatives" not in name else ""
        table.add_row(name, f"{spent:.3f}", ratio)
    Console().print(table)
