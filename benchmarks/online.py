"""What one event and one pair cost an online model, among few and among many nodes.

``OMP_NUM_THREADS=1 python -m benchmarks online``. Times are the processor's: other work on the machine does
not count, and neither does what a service adds.
"""

import statistics
import time

from rich.console import Console
from rich.table import Table

import pres
from pres.data import EventStream
from pres.models import JODIE, MDGNN, TGN

KINDS: dict[str, tuple[type[MDGNN], dict[str, str]]] = {
    "TGN": (TGN, {}),
    "JODIE": (JODIE, {}),
    "TGN-scan": (TGN, {"cell": "scan"}),
    "JODIE-scan": (JODIE, {"cell": "scan"}),
}
EVENTS, ROUNDS, NODES = 20_000, 600, (0, 1_000_000)  # the last: further nodes, that never act


def measure(kind: str, further_nodes: int) -> dict[str, list[float]]:
    """Return the milliseconds of each call, events and pairs in turn, over three cuts."""
    made = pres.load("synthetic", num_events=EVENTS)
    events = EventStream(made.src, made.dst, made.t, num_nodes=made.num_nodes + further_nodes)
    build, options = KINDS[kind]
    model = build(events, **options)  # type: ignore[arg-type]
    model.memory.advance(len(events))  # what it holds does not matter to the time
    online, t = pres.OnlineModel(model, events), int(events.t[-1])
    found: dict[str, list[float]] = {"observe": [], "score": []}
    for i in range(ROUNDS):
        src, dst, _ = events[len(made) - 1 - i]
        begun = time.process_time()
        online.observe({"src": [src], "dst": [dst], "t": [t + i]})
        seen = time.process_time()
        online.score(src, dst)
        found["observe"].append(1e3 * (seen - begun))
        found["score"].append(1e3 * (time.process_time() - seen))
    return found


def run() -> None:
    table = Table(
        "model", "further nodes", *(f"{call} {q}" for call in ("observe", "score") for q in ("p50", "p99"))
    )
    for kind in KINDS:
        for nodes in NODES:
            found = measure(kind, nodes)
            cells = [f(times) for times in found.values() for f in (statistics.median, _p99)]
            table.add_row(kind, f"{nodes:,}", *(f"{cell:.1f}" for cell in cells))
    Console().print(table)


def _p99(times: list[float]) -> float:
    return statistics.quantiles(times, n=100)[98]


if __name__ == "__main__":
    run()
