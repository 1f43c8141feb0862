"""Streams larger than memory: time per event and anonymous memory from 1 M to 100 M events. Linux only.

``python -m benchmarks.scale --sizes 1000000 10000000 100000000 --folder FOLDER --png scale.png`` writes each
synthetic stream into a store, opens it, and iterates it in batches of 2,000; ``--train`` also trains TGN with
PRES at several places of each. Every step is a process of its own. Times are those of the processor, so that
a busy machine does not count; memory is the anonymous part of what a process holds (RssAnon), as pages of a
store can be dropped at any time.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table

import pres
from pres.sampling import NegativeSampler, TemporalBatches, TemporalIndex
from pres.training.config import FitConfig
from pres.training.trainer import Trainer

BATCH, K = 2_000, 10
PLACES, WARM_UP, MEASURED = 5, 3, 20  # places of a stream at which training is timed, and batches at each
TGN = {"memory_dim": 32, "time_dim": 32, "embedding_dim": 32, "node_encoding_dim": 0, "embed": "node"}


def anonymous_bytes() -> int:
    """What this process holds that is not a page of some file."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("RssAnon:")[1].split()[0])


@contextmanager
def watched() -> Iterator[dict[str, float]]:
    """Fill in the seconds and the peak of anonymous memory of what is done meanwhile."""
    found: dict[str, float] = {"peak": 0}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(0.02):
            found["peak"] = max(found["peak"], anonymous_bytes())

    thread = threading.Thread(target=watch)
    thread.start()
    wall, processor = time.perf_counter(), time.process_time()
    try:
        yield found
    finally:
        found |= {"wall": time.perf_counter() - wall, "seconds": time.process_time() - processor}
        done.set()
        thread.join()


def build(folder: Path, size: int, nodes: int | None) -> dict[str, Any]:
    """Write a synthetic store; with ``nodes``, so many users and no more items than usual."""
    more: dict[str, Any] = {} if nodes is None else {"num_users": nodes}
    with watched() as found:
        pres.write_store("synthetic", folder, num_events=size, **more)
    return found | {"bytes": sum(path.stat().st_size for path in folder.iterdir())}


def iterate(folder: Path) -> dict[str, Any]:
    """Open a store, and go through it: neighbours of sources, destinations and random negatives, features."""
    with watched() as opening:
        events = pres.open_store(folder, verify=False)
        index, sampler = TemporalIndex(events), NegativeSampler(events)
    tenths: list[float] = []
    with watched() as found:
        for part in range(10):
            bounds = [len(events) * edge // 10 for edge in (part, part + 1)]
            start = time.process_time()
            for batch in TemporalBatches(events[bounds[0] : bounds[1]], BATCH):
                drawn = sampler.sample(batch).nodes[:, 0]
                seen = index.recent(
                    torch.cat([batch.src, batch.dst, drawn]), index.cutoffs(batch).repeat(3), K
                )
                if events.x is not None:
                    events.x[seen.events]
            tenths.append((time.process_time() - start) / (bounds[1] - bounds[0]))
    return found | {"opening": opening["seconds"], "tenths": tenths}


def train(folder: Path) -> dict[str, Any]:
    """Train TGN with PRES on some batches at several places of the training part."""
    events = pres.open_store(folder, verify=False)
    with watched() as making:
        torch.manual_seed(0)
        model = pres.TGN(events, **TGN)  # type: ignore[arg-type]
        smoothing = pres.PRES(anchors=min(100_000, events.num_nodes))
        trainer = Trainer(model, events, FitConfig.of({"batch_size": BATCH, "smoothing": smoothing}))
    state = pres.state_bytes(events.num_nodes, 32, features=_width(events), smoothing=smoothing)
    rates: list[float] = []
    with watched() as found:
        trainer.train_next_batch()  # resets the memory
        last = len(trainer.batches) - WARM_UP - MEASURED
        for place in range(PLACES):
            trainer.batch = max(trainer.batch, last * place // (PLACES - 1))
            for _ in range(WARM_UP):
                trainer.train_next_batch()
            start = time.process_time()
            for _ in range(MEASURED):
                trainer.train_next_batch()
            rates.append((time.process_time() - start) / (MEASURED * BATCH))
    peak = max(found["peak"], making["peak"])
    return (
        found
        | {"making": making["seconds"], "peak": peak, "places": rates, "state": state}
        | {
            "nodes": events.num_nodes,
            "train_events": len(trainer.split.train),
        }
    )


def _width(events: pres.EventStream) -> int:
    return 0 if events.x is None else events.x.shape[1]


STEPS: dict[str, Callable[..., dict[str, Any]]] = {"build": build, "iterate": iterate, "train": train}


def apart(step: str, *arguments: object) -> dict[str, Any]:
    """What a step finds in a process of its own, with one thread."""
    code = f"from benchmarks import scale; scale.step({step!r}, {[str(a) for a in arguments]!r})"
    process = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(process.stdout)
    return found


def step(name: str, arguments: list[str]) -> None:
    """Do a step in this process, and print what it finds."""
    torch.set_num_threads(1)
    folder, *numbers = arguments
    print(json.dumps(STEPS[name](Path(folder), *(None if n == "None" else int(n) for n in numbers))))


def measure(size: int, folder: Path, nodes: int | None, with_training: bool) -> dict[str, Any]:
    """Every step on a stream of so many events; the store is removed afterwards."""
    store = folder / f"synthetic-{size}"
    try:
        found = {
            "events": size,
            "build": apart("build", store, size, nodes),
            "iterate": apart("iterate", store),
        }
        return found | ({"train": apart("train", store)} if with_training else {})
    finally:
        shutil.rmtree(store, ignore_errors=True)


def show(rows: list[dict[str, Any]]) -> None:
    title = (
        f"Synthetic stores: nanoseconds per event (batches of {BATCH}, k = {K}), peaks of anonymous memory"
    )
    table = Table(title=title, title_justify="left")
    names = (
        "events",
        "store, GB",
        "build",
        "build, GiB",
        "open, s",
        "iterate",
        "iterate, GiB",
        "last / first tenth",
    )
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        built, gone = row["build"], row["iterate"]
        table.add_row(
            f"{row['events']:,}",
            f"{built['bytes'] / 1e9:.2f}",
            f"{built['seconds'] / row['events'] * 1e9:,.0f}",
            f"{built['peak'] / 2**30:.2f}",
            f"{gone['opening']:.2f}",
            f"{gone['seconds'] / row['events'] * 1e9:,.0f}",
            f"{gone['peak'] / 2**30:.2f}",
            f"{gone['tenths'][-1] / gone['tenths'][0]:.2f}",
        )
    Console(width=140).print(table)
    for row in rows:
        if "train" in row:
            print(training_line(row))


def training_line(row: dict[str, Any]) -> str:
    """Training on one store, in words."""
    found = row["train"]
    places = ", ".join(f"{1e6 * each:.1f}" for each in found["places"])
    mean = sum(found["places"]) / len(found["places"])
    return (
        f"TGN with PRES, {row['events']:,} events, {found['nodes']:,} nodes: {places} µs per event at "
        f"{PLACES} places of the training part ({1 / mean:,.0f} events/s; an epoch of "
        f"{found['train_events']:,} events takes {mean * found['train_events'] / 3600:.1f} h), made in "
        f"{found['making']:.0f} s, state {found['state'] / 2**30:.2f} GiB, "
        f"peak {found['peak'] / 2**30:.2f} GiB"
    )


def draw(rows: list[dict[str, Any]], png: Path) -> None:
    """Time per event against the number of events."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3.5))
    sizes = [row["events"] for row in rows]
    for name, label in (("build", "write and index"), ("iterate", "iterate, 30 neighbours per event")):
        axes.plot(
            sizes, [row[name]["seconds"] / row["events"] * 1e9 for row in rows], marker="o", label=label
        )
    axes.set(xscale="log", xlabel="events", ylabel="ns per event", ylim=(0, None))
    axes.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(png, dpi=150)


def run() -> None:
    """The smallest size, as one of all benchmarks."""
    with tempfile.TemporaryDirectory() as folder:
        show([measure(1_000_000, Path(folder), None, False)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000_000], help="events of each stream")
    parser.add_argument("--nodes", type=int, help="users of each stream; by default one per 25 events")
    parser.add_argument("--folder", type=Path, help="where the stores are written, to be removed again")
    parser.add_argument("--train", action="store_true", help="also train TGN with PRES at several places")
    parser.add_argument("--json", type=Path, help="also keep the figures here")
    parser.add_argument("--png", type=Path, help="also draw time per event here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        rows = [measure(size, Path(folder), given.nodes, given.train) for size in given.sizes]
    show(rows)
    if given.json is not None:
        given.json.write_text(json.dumps(rows))
    if given.png is not None:
        draw(rows, given.png)


if __name__ == "__main__":
    main()
