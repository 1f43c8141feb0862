"""What an online model costs follows the events and pairs, not the nodes and the length of the stream."""

from collections.abc import Callable
from typing import Any

import pytest
import torch

import pres
from benchmarks.counting import counted
from pres.data import EventStream
from pres.models import APAN, JODIE, MDGNN, TGN
from pres.serving import OnlineModel
from pres.smoothing import PRES


def online_of(kind: Callable[..., MDGNN], num_events: int, further_nodes: int, **options: Any) -> OnlineModel:
    """An online model without pending events, on a stream with so many nodes that never act."""
    made = pres.load("synthetic", num_events=3_000)[-num_events:]
    nodes = made.num_nodes + further_nodes
    events = EventStream(made.src, made.dst, made.t, num_nodes=nodes)
    model = kind(events, memory_dim=8, **options)
    if not model.scans:
        model.smoothing = PRES(live=True).build(model.memory)
    model.memory.advance(num_events)  # as if all were taken in
    online = OnlineModel(model, events, batch_size=50)
    online.observe({"src": [nodes + 7], "dst": [0], "t": [int(events.t[-1])]})  # the first one makes room
    return online


@pytest.mark.parametrize(
    ("kind", "cell"), [(JODIE, "gru"), (TGN, "gru"), (APAN, "gru"), (TGN, "scan")], ids=str
)
def test_neither_nodes_nor_history_cost_anything(kind: Callable[..., MDGNN], cell: str) -> None:
    options = {} if cell == "gru" else {"cell": cell}
    found = []
    for num_events, further_nodes in (1_000, 0), (1_000, 100_000), (3_000, 0):
        online = online_of(kind, num_events, further_nodes, **options)
        t, source = int(online.events.t[-1]), int(online.events.src[-2])

        def answer(online: OnlineModel = online, t: int = t, source: int = source) -> None:
            torch.manual_seed(0)
            online.observe({"src": [source, -3], "dst": [-2, source], "t": [t, t + 1]})
            online.score([source, -3], -3)
            online.score(-9, source, unknown="new")
            online.embedding(source)

        found.append(counted(answer))
    few, many, longer = found
    assert many.read + many.written < 1.5 * (few.read + few.written)
    assert longer.read + longer.written < 2 * (few.read + few.written)
    assert many.read + many.written < 2_000_000
