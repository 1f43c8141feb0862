"""What a batch of training costs, counted: it must not grow with the nodes or with the history."""

from __future__ import annotations

from typing import Any

import pytest
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

import pres
from pres.events import EventStream
from pres.models.build import build_model
from pres.smoothing import PRES
from pres.training import FitConfig
from pres.training.ahead import Ahead
from pres.training.trainer import Trainer

KINDS = ["tgn", "jodie", "apan"]
# Operations of one batch, a tenth above what they were when this was written: more is a regression.
MOST_OPERATIONS = {"tgn": 906, "jodie": 513, "apan": 706}


class Counted(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts operations, and the values that they make or write."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.operations, self.values = 0, 0

    def __torch_dispatch__(self, operation: Any, types: Any, arguments: Any = (), named: Any = None) -> Any:
        found = operation(*arguments, **(named or {}))
        self.operations += 1
        name = operation.__name__.split(".")[0]
        if name in ("index_put_", "_index_put_impl_", "index_copy_", "index_add_"):  # only some rows of it
            self.values += sum(value.numel() for value in _tensors(arguments[1:]))
        elif not operation.is_view:
            self.values += sum(value.numel() for value in _tensors(found))
        return found


def _tensors(found: Any) -> list[Tensor]:
    if isinstance(found, Tensor):
        return [found]
    return (
        [tensor for value in found for tensor in _tensors(value)] if isinstance(found, tuple | list) else []
    )


def trainer_of(kind: str, num_nodes: int, batches: int, n: int = 2_000, **options: Any) -> Trainer:
    """Return a trainer that has trained so many batches of 100 events among few of the nodes."""
    plain = pres.load("synthetic", num_events=n)
    events = EventStream(plain.src, plain.dst, plain.t, num_nodes=num_nodes)
    model = build_model(kind, events, {"memory_dim": 4, "time_dim": 4})
    trainer = Trainer(model, events, FitConfig.of({"batch_size": 100} | options))
    for _ in range(batches):
        trainer.train_next_batch()
    return trainer


@pytest.fixture(autouse=True)
def in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Ahead, "pays", False)  # operations are counted per thread


def cost(trainer: Trainer) -> tuple[int, int]:
    with Counted() as counted:
        trainer.train_next_batch()
    return counted.operations, counted.values


@pytest.mark.parametrize("smoothing", [None, PRES()])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_costs_the_same_among_few_nodes_and_among_many(kind: str, smoothing: PRES | None) -> None:
    few, many = (trainer_of(kind, nodes, 3, smoothing=smoothing) for nodes in (10_000, 300_000))
    assert cost(few) == cost(many)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_costs_the_same_early_and_late_in_a_stream(kind: str) -> None:
    trainer = trainer_of(kind, 10_000, 8, n=6_000)
    early, values = cost(trainer)
    for _ in range(25):
        trainer.train_next_batch()
    late, later_values = cost(trainer)
    assert late == early
    assert later_values < 1.5 * values  # neighbourhoods fill up, and no more


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_takes_no_more_operations_than_it_did(kind: str) -> None:
    operations, _ = cost(trainer_of(kind, 10_000, 3))
    assert operations <= MOST_OPERATIONS[kind]


def test_attention_multiplies_no_matrix_for_every_slot() -> None:
    """Keys and values of 10 neighbours for each of 3 roots of 100 events would alone be more than all is."""
    plain = pres.load("synthetic", num_events=2_000)
    model = build_model("tgn", plain, {"memory_dim": 32, "time_dim": 32, "embedding_dim": 32, "codes": 0})
    trainer = Trainer(model, plain, FitConfig.of({"batch_size": 100}))
    for _ in range(8):
        trainer.train_next_batch()
    with FlopCounterMode(display=False) as counter:
        trainer.train_next_batch()
    slots, row, keys_and_values = 3 * 100 * 10, 32 + 32, 2 * 32
    assert counter.get_total_flops() < 2 * slots * row * keys_and_values * 3  # forward, and twice backward
