"""Memory that runs out at any place of a call: nothing is lost, nothing is taken in twice."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch

import pres
from pres.data import EventStream
from pres.data.room import Room
from pres.evaluation.scorer import BatchReading
from pres.models import MDGNN
from pres.nn import NodeEncoding
from pres.nn.memory import Memory, MemoryStore
from pres.nn.scan_memory import ScanMemory
from pres.serving import OnlineModel
from pres.smoothing import PRES
from tests.models.conftest import make

PLACES: list[tuple[Any, str]] = [
    (Room, "append"),
    (MemoryStore, "add_nodes"),
    (NodeEncoding, "grow"),
    (Memory, "write"),
    (Memory, "write_mail"),
    (Memory, "write_last_event"),
    (ScanMemory, "write"),
    (BatchReading, "take_in"),
]


class Faults:
    """Lets the n-th entry into any of the places fail, just before or just after its work."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.left = -1
        for owner, name in PLACES:
            patch.setattr(owner, name, self.failing(getattr(owner, name)))

    def failing(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(*given: Any, **named: Any) -> Any:
            self.count()
            result = function(*given, **named)
            self.count()
            return result

        return wrapped

    def count(self) -> None:
        self.left -= 1
        if self.left == 0:
            raise MemoryError("a fault for a test")


def row(i: int) -> dict[str, list[Any]]:
    """An event with a new user or item every now and then."""
    return {"src": [f"u{i * 7 % (4 + i // 6)}"], "dst": [f"i{i * 5 % (3 + i // 9)}"], "t": [i // 2]}


def online(kind: str, cell: str | None) -> OnlineModel:
    first = [row(i) for i in range(12)]
    table = {name: [one[name][0] for one in first] for name in ("src", "dst", "t")}
    stream: EventStream = pres.read(table, src="src", dst="dst", t="t", bipartite=True, time_unit="s")
    options: dict[str, Any] = {} if cell is None else {"cell": cell}
    model: MDGNN = make(kind, stream, node_encoding_dim=2, **options)
    if not model.scans:
        model.smoothing = PRES(live=True).build(model.memory)
    return OnlineModel(model, stream, batch_size=5)


@pytest.mark.parametrize(("kind", "cell"), [("tgn", None), ("apan", None), ("jodie", None), ("tgn", "scan")])
def test_a_fault_anywhere_changes_nothing(
    kind: str, cell: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = online(kind, cell)
    for i in range(12, 40):
        expected.observe(row(i))
        expected.score("u1", "i1")
    faults, seen = Faults(monkeypatch), 0
    model = online(kind, cell)
    for i in range(12, 40):
        faults.left = 1 + i * 3 % 11
        calls = partial(model.observe, row(i), event_ids=[i]), partial(model.score, "u1", "i1")
        for work in calls:
            try:
                work()
            except MemoryError:
                seen += 1
                work()
    assert seen > 10 and model.position == expected.position == 40
    assert model.events.fingerprint() == expected.events.fingerprint()
    assert torch.equal(model.score("u2", ["i0", "i1"]).score, expected.score("u2", ["i0", "i1"]).score)
    states = model.state(), expected.state()
    assert all(torch.equal(value, states[1][name]) for name, value in states[0].items())
