"""Parts that do not fit each other are refused where a model is put together."""

from typing import Any

import pytest
import torch

import pres
from pres.errors import OptionError
from pres.models import MDGNN
from pres.nn import (
    EdgeFeatures,
    EventMessage,
    GRUUpdater,
    IdentityEmbedding,
    IdentityMessage,
    MailboxAttention,
    MailboxScan,
    Memory,
    MLPMessage,
    NodeEncoding,
    RNNUpdater,
    ScanMemory,
    ScanUpdater,
    TemporalAttention,
    TimeEncoding,
    TimeProjection,
)

EVENTS = pres.load("synthetic", num_events=200)
N, DIM, TIME, CODE = EVENTS.num_nodes, 6, 4, 3
START, FEATURES, ENCODING = EVENTS.t[0], EdgeFeatures(EVENTS), TimeEncoding(TIME)


def mailed(slots: int = 1, **given: Any) -> MDGNN:
    """A model with mail, of parts that fit but for those that are given."""
    memory = Memory(N, DIM, feature_dim=2 * CODE, slots=slots, start=START)
    message = given.get("message", IdentityMessage(memory, FEATURES, ENCODING))
    parts: dict[str, Any] = {
        "memory": memory,
        "message": message,
        "updater": RNNUpdater(message.dim, DIM) if slots == 1 else MailboxAttention(message.dim, DIM),
        "embedding": IdentityEmbedding(DIM),
        "node_encoding": NodeEncoding(N, CODE),
    }
    return MDGNN(EVENTS, **parts | given)


def scanned(**given: Any) -> MDGNN:
    message = EventMessage(FEATURES, ENCODING)
    parts: dict[str, Any] = {
        "memory": ScanMemory(N, DIM, START),
        "message": message,
        "updater": ScanUpdater(DIM, CODE, message.dim),
        "embedding": IdentityEmbedding(DIM),
        "node_encoding": NodeEncoding(N, CODE),
    }
    return MDGNN(EVENTS, **parts | given)


def test_parts_that_fit_make_a_model() -> None:
    message = IdentityMessage(Memory(N, DIM, 2 * CODE, 1, START), FEATURES, ENCODING)
    for made in (mailed(), mailed(3), mailed(updater=GRUUpdater(message.dim, DIM, repeated=True)), scanned()):
        made.update_state(EVENTS[:50])
        assert made.memory.position == 50


WIDTH = IdentityMessage(Memory(N, DIM, 2 * CODE, 1, START), FEATURES, ENCODING).dim
SUMMARY = MLPMessage(Memory(N, DIM, 2 * CODE, 1, START), FEATURES, ENCODING, dim=8)
MAILED: list[tuple[dict[str, Any], str]] = [
    ({"updater": GRUUpdater(WIDTH + 1, DIM)}, "GRUUpdater was made for a width of .* .message."),
    ({"updater": GRUUpdater(WIDTH, DIM + 1)}, "GRUUpdater was made for a width of 7 .memory., .* is 6"),
    ({"updater": RNNUpdater(WIDTH, DIM + 1)}, "RNNUpdater was made for a width of 7 .memory."),
    ({"slots": 2, "updater": MailboxAttention(WIDTH + 1, DIM)}, "MailboxAttention .* .message."),
    ({"slots": 2, "updater": GRUUpdater(WIDTH, DIM)}, "one message per node, but memory keeps 2"),
    ({"slots": 2, "updater": RNNUpdater(WIDTH, DIM)}, "one message per node"),
    ({"embedding": IdentityEmbedding(DIM + 1)}, "IdentityEmbedding was made for a width of 7"),
    ({"embedding": TimeProjection(DIM - 1, 1.0)}, "TimeProjection was made for a width of 5"),
    ({"embedding": TemporalAttention(DIM + 2, FEATURES, ENCODING)}, "TemporalAttention .* width of 8"),
    ({"node_encoding": NodeEncoding(N + 1, CODE)}, "node encoding is of .* nodes"),
    ({"node_encoding": NodeEncoding(N, CODE + 1)}, "mail has room for 6 numbers"),
    ({"memory": Memory(N - 1, DIM, 2 * CODE, 1, START)}, "the memory is of .* nodes, but the stream has"),
    ({"memory": Memory(N, DIM + 1, 2 * CODE, 1, START)}, "IdentityMessage was made for a width of .* .mail."),
    ({"updater": GRUUpdater(8, DIM, repeated=True), "message": SUMMARY}, "those of MLPMessage do not"),
    ({"updater": GRUUpdater(WIDTH, DIM, repeated=True), "deliver_to": "neighbours"}, "begin with another"),
    ({"updater": ScanUpdater(DIM, CODE, WIDTH)}, "a scan needs all of"),
]
SCANNED: list[tuple[dict[str, Any], str]] = [
    ({"memory": Memory(N, DIM, 2 * CODE, 1, START)}, "a scan needs all of"),
    ({"memory": ScanMemory(N, DIM + 1, START)}, "ScanUpdater was made for a width of 6 .memory."),
    ({"node_encoding": NodeEncoding(N, CODE + 1)}, "ScanUpdater .* width of 3 .node encoding., .* is 4"),
    ({"message": EventMessage(FEATURES, TimeEncoding(TIME + 1))}, "ScanUpdater .* .message."),
    ({"memory": ScanMemory(N, DIM, START, 3)}, "in a scan, mail needs all of"),
    ({"deliver_to": "neighbours"}, "in a scan, mail needs all of"),
    (
        {
            "memory": ScanMemory(N, DIM, START, 3),
            "updater": MailboxScan(DIM, CODE, FEATURES.dim + 1, TIME),
            "deliver_to": "neighbours",
        },
        "MailboxScan .* .features.",
    ),
]


@pytest.mark.parametrize(("given", "told"), MAILED)
def test_wrong_parts_of_a_model_with_mail_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        mailed(**given)


@pytest.mark.parametrize(("given", "told"), SCANNED)
def test_wrong_parts_of_a_scan_are_refused(given: dict[str, Any], told: str) -> None:
    with pytest.raises(OptionError, match=told):
        scanned(**given)


def test_a_repeated_state_gives_the_numbers_of_one_that_is_not() -> None:
    torch.manual_seed(0)
    updater = GRUUpdater(WIDTH, DIM)
    runs = []
    for repeated in (False, True):
        updater.repeated = repeated
        model = mailed(updater=updater).eval()
        for start in range(0, 200, 50):
            model.update_state(EVENTS[start : start + 50])
        runs.append(model.memory.read_memory(torch.arange(N)))
    assert bool(runs[0].any())
    torch.testing.assert_close(*runs)
