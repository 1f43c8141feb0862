"""What a batch of training costs, counted: it must not grow with the nodes or with the history."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

import pres
from benchmarks.counting import Counts, counted
from benchmarks.in_turn import in_turn
from pres.data.stream import EventStream
from pres.models.registry import build_model
from pres.smoothing import PRES
from pres.training.config import FitConfig
from pres.training.trainer import Trainer

KINDS = ["tgn", "jodie", "apan"]
# Operations of one batch, a tenth above what they were when this was written: more is a regression.
MOST_OPERATIONS = {"tgn": 850, "jodie": 482, "apan": 676}
MOST_IN_A_SCAN = {"tgn": 2_300, "jodie": 715, "apan": 1_090}  # of one batch of 800 with the preset


def trainer_of(kind: str, num_nodes: int, batches: int, n: int = 2_000, **options: Any) -> Trainer:
    """Return a trainer that has trained so many batches of 100 events among few of the nodes."""
    plain = pres.load("synthetic", num_events=n)
    events = EventStream(plain.src, plain.dst, plain.t, num_nodes=num_nodes)
    model = build_model(kind, events, {"memory_dim": 4, "time_dim": 4})
    trainer = in_turn(Trainer(model, events, FitConfig.of({"batch_size": 100} | options)))
    for _ in range(batches):
        trainer.train_next_batch()
    return trainer


def cost(trainer: Trainer) -> Counts:
    return counted(trainer.train_next_batch)


def test_a_count_tells_some_rows_of_a_table_from_all_of_it() -> None:
    table, rows, nodes = torch.zeros(1_000, 4), torch.ones(2, 4), torch.tensor([5, 900])
    assert counted(lambda: table[5:900]) == (1, 0, 0)
    assert counted(lambda: table[nodes]) == (1, 2 + 8, 8)  # reads places and rows, makes rows
    assert counted(lambda: table.index_select(0, nodes)) == (1, 2 + 8, 8)
    assert counted(lambda: table.index_add_(0, nodes, rows)) == (1, 2 + 8, 8)
    assert counted(lambda: table.index_fill_(0, nodes, 1.0)) == (1, 2, 2)
    for of_all in (table.sum, table.clone, table.zero_, lambda: table[table[:, 0] > 0]):
        assert counted(of_all).read >= 1_000


@pytest.mark.parametrize("smoothing", [None, PRES(), PRES(anchors=20)])
@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_costs_the_same_among_few_nodes_and_among_many(kind: str, smoothing: PRES | None) -> None:
    few, many = (trainer_of(kind, nodes, 3, smoothing=smoothing) for nodes in (10_000, 300_000))
    assert cost(few) == cost(many)


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_costs_the_same_early_and_late_in_a_stream(kind: str) -> None:
    trainer = trainer_of(kind, 10_000, 8, n=6_000)
    early = cost(trainer)
    for _ in range(25):
        trainer.train_next_batch()
    late = cost(trainer)
    assert late.operations == early.operations
    assert late.read < 1.5 * early.read and late.written < 1.5 * early.written  # neighbourhoods fill up


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_takes_no_more_operations_than_it_did(kind: str) -> None:
    assert cost(trainer_of(kind, 10_000, 3)).operations <= MOST_OPERATIONS[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_scan_takes_no_more_operations_than_it_did(kind: str) -> None:
    events = pres.load("synthetic", num_events=4_000)
    model = build_model(kind, events, {"memory_dim": 4, "time_dim": 4, "cell": "scan"})
    trainer = in_turn(Trainer(model, events, FitConfig.of({"preset": "large", "batch_size": 800})))
    trainer.train_next_batch()
    assert cost(trainer).operations <= MOST_IN_A_SCAN[kind] < 3 * MOST_OPERATIONS[kind]


def test_attention_multiplies_no_matrix_for_every_slot() -> None:
    """Keys and values of 10 neighbours for each of 3 roots of 100 events would alone be more than all is."""
    plain = pres.load("synthetic", num_events=2_000)
    model = build_model(
        "tgn", plain, {"memory_dim": 32, "time_dim": 32, "embedding_dim": 32, "node_encoding_dim": 0}
    )
    trainer = in_turn(Trainer(model, plain, FitConfig.of({"batch_size": 100})))
    for _ in range(8):
        trainer.train_next_batch()
    with FlopCounterMode(display=False) as counter:
        trainer.train_next_batch()
    slots, row, keys_and_values = 3 * 100 * 10, 32 + 32, 2 * 32
    assert counter.get_total_flops() < 2 * slots * row * keys_and_values * 3  # forward, and twice backward
