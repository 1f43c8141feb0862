"""What a batch of training costs among ten thousand nodes and among ten million: counted, and timed.

    python -m benchmarks.cost                             # 4 GB of memory, half a minute
    python -m benchmarks.cost --nodes 10000 1000000

One TGN with PRES and anchors, on the same synthetic events. In the larger streams ids lie as far apart as the
number of nodes allows, so that a row is fetched from anywhere in its table; the other nodes never act. The
counts must be equal, batch by batch. Both take turns at the clock.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Sequence

import torch

import pres
from benchmarks.counting import counted
from benchmarks.in_turn import in_turn
from benchmarks.timing import seconds
from pres.data.stream import EventStream
from pres.smoothing import PRES
from pres.training.config import FitConfig
from pres.training.trainer import Trainer

EVENTS, BATCH = 200_000, 600  # so many events have 10,000 nodes
WARM_UP, TIMED, COUNTED = 40, 100, 10  # batches
TGN = {"memory_dim": 16, "time_dim": 16, "embedding_dim": 16, "node_encoding_dim": 0}
ANCHORS = 1_000


def trainer_among(nodes: int) -> Trainer:
    """Return a trainer of the same model on the same events, spread over so many nodes."""
    plain = pres.load("synthetic", num_events=EVENTS)
    apart = nodes // plain.num_nodes
    events = EventStream(plain.src * apart, plain.dst * apart, plain.t, x=plain.x, num_nodes=nodes)
    torch.manual_seed(0)
    model = pres.TGN(events, **TGN)  # type: ignore[arg-type]
    config = FitConfig.of({"batch_size": BATCH, "smoothing": PRES(anchors=ANCHORS)})
    return in_turn(Trainer(model, events, config))  # what another thread does is not counted


def run(nodes: Sequence[int] = (10_000, 10_000_000)) -> None:
    """Print operations, values read and written, and the time of a batch, for each number of nodes."""
    trainers = {count: trainer_among(count) for count in nodes}
    for trainer in trainers.values():
        for _ in range(WARM_UP):
            trainer.train_next_batch()
    times: dict[int, list[float]] = {count: [] for count in nodes}
    for _ in range(TIMED):
        for count, trainer in trainers.items():
            times[count].append(seconds(trainer.train_next_batch))
    counts = {
        count: [counted(trainer.train_next_batch) for _ in range(COUNTED)]
        for count, trainer in trainers.items()
    }
    title = f"TGN with PRES(anchors={ANCHORS:,}), batches of {BATCH}, {torch.get_num_threads()} threads"
    print(f"\n{title}: means of {COUNTED} batches, medians of {TIMED}")
    print(f"{'nodes':>12} {'operations':>11} {'values read':>12} {'written':>12} {'ms, median':>11}")
    for count in nodes:
        operations, read, written = (statistics.mean(each) for each in zip(*counts[count], strict=True))
        time = statistics.median(times[count])
        print(f"{count:>12,} {operations:>11,.0f} {read:>12,.0f} {written:>12,.0f} {1e3 * time:>11.2f}")
    same = all(found == counts[nodes[0]] for found in counts.values())
    print("the counts of every batch are equal" if same else "the counts DIFFER")


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--nodes", type=int, nargs="+", default=[10_000, 10_000_000], help="10,000 or more")
    run(parser.parse_args().nodes)


if __name__ == "__main__":
    main()
