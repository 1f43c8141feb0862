"""Numeric features in mail, and features that are looked up by the mail's event, come to the same."""

from typing import Literal

import pytest
import torch

from pres.errors import OptionError
from pres.models import MDGNN
from pres.nn import EdgeFeatures, GRUUpdater, IdentityEmbedding, IdentityMessage, Memory, TimeEncoding
from tests.models.conftest import DIM, TIME, make, random_events, stream_of

STREAM = stream_of(random_events(seed=3), x=torch.randn(60, 3, generator=torch.Generator().manual_seed(1)))


def model(mailed: bool, room: int, aggregate: Literal["last", "mean"] = "last") -> MDGNN:
    torch.manual_seed(0)
    features, time = EdgeFeatures(STREAM), TimeEncoding(TIME)
    memory = Memory(STREAM.num_nodes, DIM, room, slots=1, start=STREAM.t[0])
    message = IdentityMessage(memory, features, time, mailed)
    return MDGNN(
        STREAM,
        memory=memory,
        message=message,
        updater=GRUUpdater(message.dim, DIM),
        embedding=IdentityEmbedding(DIM),
        aggregate=aggregate,
    ).double()


def test_the_memory_is_the_same_either_way() -> None:
    looked_up, mailed = model(mailed=False, room=0), model(mailed=True, room=3)
    for start in range(0, 60, 10):
        for one in (looked_up, mailed):
            one.update_state(STREAM[start : start + 10])
    assert looked_up.memory.memory.any()
    everyone = torch.arange(STREAM.num_nodes)
    found, expected = (one.updated_memory(everyone).memory for one in (looked_up, mailed))
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize(("mailed", "room", "helps"), [(False, 3, True), (True, 0, True), (True, 5, False)])
def test_mail_has_room_for_what_is_sent_and_nothing_else(mailed: bool, room: int, helps: bool) -> None:
    with pytest.raises(
        OptionError, match=f"room for {room} numbers.*{3 if mailed else 0} are sent"
    ) as raised:
        model(mailed, room)
    assert (f"or mailed={not mailed} to the message" in str(raised.value)) == helps


def test_a_mean_of_features_is_kept_in_mail() -> None:
    assert model(mailed=True, room=3, aggregate="mean").message.mailed
    with pytest.raises(OptionError, match=r"mailed=True to the message, and Memory\(…, feature_dim=3\)"):
        model(mailed=False, room=0, aggregate="mean")


def test_mail_that_makes_room_in_a_mailbox_of_one_has_moved_memory_before() -> None:
    apan = make("apan", STREAM, mailbox=1)
    memory = apan.memory
    assert isinstance(memory, Memory)
    everyone, moved = torch.arange(STREAM.num_nodes), 0
    for start in range(0, 60, 10):
        batch = STREAM[start : start + 10]
        before, updated = memory.received(everyone), apan.updated_memory(everyone).memory
        apan.update_state(batch)
        got = memory.received(everyone) > before
        torch.testing.assert_close(memory.read_memory(everyone[got]), updated[got])
        endpoints = torch.isin(everyone, torch.cat([batch.src, batch.dst]))
        moved += int((got & (before > 0) & ~endpoints).sum())
    assert moved  # neighbours that had mail, and no event of their own
