"""How fast training is beside PyG's TGN: the same stream, sizes, negatives and machine, in turns.

    python -m benchmarks.peers                       # 24,000 training events, 5 rounds
    python -m benchmarks.peers --events 110232       # all there are in Wikipedia

"TGN per node" with ``visibility="batch"`` does what PyG's `TGNMemory` and `TransformerConv` do; "TGN per
event" with ``"fresh"`` embeds every endpoint at its own event, which is what TGN and TGL do, and more work.
All have the same threads, and no other: ours do not prepare batches in a further one, as a trainer does where
torch leaves a core idle.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import torch

import pres
from benchmarks.in_turn import in_turn
from benchmarks.pyg_tgn import PyGTrainer
from benchmarks.timing import median_seconds, seconds
from pres.data.stream import EventStream
from pres.errors import PresError
from pres.models.registry import build_model
from pres.sampling import NegativeSampler, TemporalBatches
from pres.training.config import FitConfig
from pres.training.trainer import Trainer

PYG = "PyG TGN"
OURS: dict[str, tuple[str, dict[str, Any]]] = {  # what PyG's has not is left out: codes
    "TGN per node": ("tgn", {"embed": "node", "visibility": "batch", "node_encoding_dim": 0}),
    "TGN per event": ("tgn", {"node_encoding_dim": 0}),
    "JODIE, plain cell": ("jodie", {"cell": "rnn", "node_encoding_dim": 0}),
    "JODIE": ("jodie", {}),
    "APAN": ("apan", {}),
}
EVENTS, ROUNDS, BATCH_SIZES = 24_000, 5, (200, 600, 2_400)
FEATURES = 172  # of Wikipedia's edges; seeded random numbers where the real ones are not at hand


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("--batch-sizes", type=int, nargs="+", default=BATCH_SIZES)
    parser.add_argument("--contestants", nargs="+", choices=list(OURS), default=list(OURS))
    parser.add_argument("--events", type=int, default=EVENTS, help="training events, the first of them")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, default=None, help="where to write the figures, too")
    given = parser.parse_args()
    run(given.batch_sizes, given.contestants, given.events, given.rounds, given.json)


def run(
    batch_sizes: Sequence[int] = BATCH_SIZES,
    contestants: Sequence[str] = tuple(OURS),
    limit: int = EVENTS,
    rounds: int = ROUNDS,
    path: Path | None = None,
) -> None:
    """Print seconds, events per second, share of the machine's peak, peak memory and the ratio to PyG."""
    stream, peak, threads = featured(), matrix_peak(), torch.get_num_threads()
    print(f"{stream.info.title}, {FEATURES} features, matrix peak {peak / 1e9:.0f} GFLOP/s")
    print(f"threads: PyG {threads}, ours {threads}; no batch is prepared in a further thread")
    titles = f"{'s per epoch':>11} {'events/s':>9} {'GFLOP':>7} {'of peak':>8} {'peak MB':>8} {'x PyG':>6}"
    print(f"{'b':>5} {'':<18} {titles}")
    found = []
    for b in batch_sizes:
        names, events = [PYG, *contestants], len(training_part(stream, limit, b))
        epochs = {name: contestant(name, stream, b, limit) for name in names}
        work = {name: floating_point_work(epoch) for name, epoch in epochs.items()}
        times = median_seconds(epochs, rounds)
        for name in names:
            row = {
                "b": b,
                "threads": threads,
                "contestant": name,
                "seconds": times[name],
                "events_per_second": events / times[name],
                "gflop": work[name] / 1e9,
                "of_peak": work[name] / times[name] / peak,
                "peak_mb": peak_memory(name, b, limit),
                "ratio": times[PYG] / times[name],
            }
            found.append(row)
            speed = f"{row['seconds']:>11.2f} {row['events_per_second']:>9,.0f} {row['gflop']:>7.0f}"
            share = f"{row['of_peak']:>8.1%} {row['peak_mb']:>8,.0f} {row['ratio']:>6.2f}"
            print(f"{b:>5} {name:<18} {speed} {share}", flush=True)
    if path is not None:
        path.write_text(json.dumps(found, indent=1))


def featured() -> EventStream:
    """Return Wikipedia, or the embedded stream where that is not at hand, with features of its edges."""
    try:
        events = pres.load("wikipedia")
    except PresError:
        events = pres.load("synthetic", num_events=157_474)
    generator = torch.Generator().manual_seed(0)
    return dataclasses.replace(events, x=torch.randn(len(events), FEATURES, generator=generator))


def training_part(events: EventStream, limit: int, b: int) -> EventStream:
    """Return the whole batches of the first training events."""
    train = events.split().train
    return train[: min(limit, len(train)) // b * b]


def contestant(name: str, events: EventStream, b: int, limit: int) -> Callable[[], object]:
    """Return what trains one epoch of a contestant."""
    train = training_part(events, limit, b)
    if name == PYG:
        sampler = NegativeSampler(events)
        negatives = torch.cat([sampler.sample(batch).nodes[:, 0] for batch in TemporalBatches(train, b)])
        torch.manual_seed(0)
        return partial(PyGTrainer(train, b).train_epoch, negatives)
    kind, options = OURS[name]
    trainer = Trainer(
        build_model(kind, events, options), events, FitConfig.of({"batch_size": b, "negative_window": None})
    )
    return partial(train_epoch, in_turn(trainer), len(train) // b)


def train_epoch(trainer: Trainer, batches: int) -> None:
    trainer.batch = 0
    for _ in range(batches):
        trainer.train_next_batch()


def floating_point_work(epoch: Callable[[], object]) -> int:
    """Return the operations of the matrix products of one epoch."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        epoch()
    return int(counter.get_total_flops())


def matrix_peak(size: int = 2_048) -> float:
    """Return the operations per second of a large matrix product, the best of several."""
    a = torch.randn(size, size)
    return 2 * size**3 / min(seconds(lambda: a @ a) for _ in range(8))


def peak_memory(name: str, b: int, limit: int) -> float:
    """Return the peak resident memory in MB of a process that trains one epoch, and nothing else (Linux).

    What it took to load the stream, more than any contestant takes, does not count.
    """
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak_of, (name, b, limit))


def _peak_of(name: str, b: int, limit: int) -> float:
    events = featured()
    Path("/proc/self/clear_refs").write_text("5")  # the peak counts from here on
    contestant(name, events, b, limit)()
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    main()
