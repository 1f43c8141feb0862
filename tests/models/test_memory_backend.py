"""Nothing but the methods of a memory reaches per-node state: rows may be kept anywhere."""

from collections import defaultdict
from itertools import chain
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import pres
from pres.nn import Memory, ScanMemory
from pres.nn.memory import Mail, NodeRows
from pres.nn.ops import Picked, Slots
from pres.nn.scan_memory import ScanRows


class Rows:
    """State that is a dictionary of nodes, each a dictionary of what is known of it."""

    device, dtype, position = torch.device("cpu"), torch.float32, 0
    times: tuple[str, ...] = ()  # no buffer holds one

    def __init__(self, of: Memory | ScanMemory) -> None:
        nn.Module.__init__(self)  # type: ignore[arg-type]
        self.num_nodes, self.dim, self.begin = of.num_nodes, of.dim, of.start
        self.slots, self.mail_dim = getattr(of, "slots", 0), getattr(of, "mail_dim", 0)
        self.reset()

    def reset(self) -> None:
        zero, start, nothing = torch.zeros(self.dim), self.begin, torch.tensor(0)
        blank = {"memory": zero, "last_update": start, "last_event": start, "received": nothing}
        self.rows: dict[int, dict[str, Any]] = defaultdict(lambda: blank | {"mail": []})

    def advance(self, position: int) -> None:
        self.position = position

    def of(self, nodes: Tensor, name: str) -> Tensor:
        rows = [self.rows[node][name] for node in (-1, *nodes.tolist())]  # one more: there may be no nodes
        return torch.stack(rows)[1:]

    def keep(self, nodes: Tensor, **values: Tensor) -> None:
        for name, of_all in values.items():
            for node, value in zip(nodes.tolist(), of_all.detach().clone(), strict=True):
                self.rows[node][name] = value

    def read_memory(self, nodes: Tensor) -> Tensor:
        return self.of(nodes, "memory")


class MailRows(Rows, Memory):
    def read(self, nodes: Tensor) -> NodeRows:
        names = "memory", "last_update", "last_event", "received"
        return NodeRows(*(self.of(nodes, name) for name in names))

    def received(self, nodes: Tensor) -> Tensor:
        return self.of(nodes, "received")

    def read_mail(self, nodes: Tensor) -> Mail:
        boxes = [self.rows[node]["mail"] for node in nodes.tolist()]
        slots = Slots.of(torch.tensor([[i < len(box) for i in range(self.slots)] for box in boxes]))
        content, event, t = (torch.stack(column) for column in zip(*chain(*boxes), strict=True))
        return Mail(Picked(content), event, t, torch.stack([box[-1][2] for box in boxes]), slots)

    def write(self, nodes: Tensor, memory: Tensor, last_update: Tensor) -> None:
        self.keep(nodes, memory=memory, last_update=last_update)

    def write_mail(self, nodes: Tensor, content: Tensor, event: Tensor, t: Tensor, rank: Any = None) -> None:
        assert rank is None
        columns = content.detach().clone(), event.clone(), t.clone()
        for node, *mail in zip(nodes.tolist(), *columns, strict=True):
            row = self.rows[node]
            row["mail"], row["received"] = [*row["mail"], mail][-self.slots :], row["received"] + 1

    def write_last_event(self, nodes: Tensor, t: Tensor) -> None:
        self.keep(nodes, last_event=t)


class ScanRowsStore(Rows, ScanMemory):
    def read(self, nodes: Tensor) -> ScanRows:
        return ScanRows(self.of(nodes, "memory"), self.of(nodes, "last_event"))

    def write(self, nodes: Tensor, memory: Tensor, last_event: Tensor) -> None:
        self.keep(nodes, memory=memory, last_event=last_event)


@pytest.mark.parametrize(
    ("kind", "options"),
    [(pres.TGN, {}), (pres.JODIE, {}), (pres.APAN, {"mailbox": 3}), (pres.TGN, {"cell": "scan"})],
)
def test_training_is_the_same_wherever_rows_are_kept(kind: type[pres.TGN], options: dict[str, Any]) -> None:
    events = pres.load("synthetic")[:1200]
    runs = []
    for kept_elsewhere in (False, True):
        torch.manual_seed(0)
        model = kind(events, memory_dim=8, time_dim=8, **options)
        if kept_elsewhere:
            assert isinstance(model.memory, Memory | ScanMemory)
            store = MailRows if isinstance(model.memory, Memory) else ScanRowsStore
            model.memory = store(model.memory)
            assert not list(model.memory.buffers())
        smoothing = None if model.scans else pres.PRES(beta=0.1)
        run = pres.fit(model, events, epochs=1, batch_size=200, seed=1, smoothing=smoothing)
        runs.append((run.history[0].loss, run.history[0].val.ap, run.test.ap))
    assert runs[1] == pytest.approx(runs[0], abs=1e-6)
