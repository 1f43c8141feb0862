"""From an event stream to everything a training step needs, prepared one batch ahead.

Run it on the embedded stream, on a dataset, or on your own file:

    python examples/prepare_batches.py
    python examples/prepare_batches.py wikipedia
    python examples/prepare_batches.py clicks.csv
"""

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import torch

import pres
from pres.sampling import NegativeSampler, Neighbours, TemporalBatches, TemporalIndex, prefetch

Step = tuple[pres.EventStream, torch.Tensor, Neighbours]


def steps(events: pres.EventStream, part: pres.EventStream, batch_size: int, epoch: int) -> Iterator[Step]:
    """Yield each batch of a part with its negatives and the neighbours of all its roots."""
    index, sampler = TemporalIndex(events), NegativeSampler(events)
    for batch in TemporalBatches(part, batch_size):
        negatives = sampler.sample(batch, seed=epoch).nodes[:, 0]
        roots = torch.cat([batch.src, batch.dst, negatives])
        yield batch, negatives, index.recent(roots, index.cutoffs(batch).repeat(3), k=10)


def main() -> None:
    """Go through one epoch and say how fast it was prepared."""
    source = sys.argv[1] if len(sys.argv) > 1 else "synthetic"
    events = pres.read(source) if Path(source).exists() else pres.load(source)
    print(events)
    start, neighbours_found = time.perf_counter(), 0
    for _, _, neighbours in prefetch(steps(events, events.split().train, batch_size=200, epoch=0)):
        neighbours_found += int(neighbours.mask.sum())  # a model would train here
    seconds = time.perf_counter() - start
    print(f"one epoch prepared in {seconds:.2f} s, {neighbours_found:,} neighbours in all")


if __name__ == "__main__":
    main()
