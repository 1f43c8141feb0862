"""Nothing is computed for slots that hold nothing, nor for nodes without mail."""

from typing import Any

import pytest
import torch

from pres.models import MDGNN
from tests.models.conftest import KINDS, make, random_events, stream_of

STREAM = stream_of(random_events(seed=5, n=120, nodes=40), nodes=40)


def after_some_events(kind: str, **options: Any) -> MDGNN:
    model = make(kind, STREAM, **options)
    model.update_state(STREAM[:8])
    return model


@pytest.mark.parametrize("kind", KINDS)
def test_only_nodes_with_mail_are_updated(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = after_some_events(kind)
    update, updated = model.updater.forward, []

    def counted(memory: torch.Tensor, *rest: Any) -> Any:
        updated.append(len(memory))
        return update(memory, *rest)

    monkeypatch.setattr(model.updater, "forward", counted)
    everyone = torch.arange(STREAM.num_nodes)
    states = model.updated_memory(everyone)
    mailed = model.mailboxes.mails_received > 0
    assert torch.equal(states.pending, mailed) and updated == [int(mailed.sum())]
    assert 0 < updated[0] < len(everyone)
    assert torch.equal(states.memory[~mailed], torch.zeros_like(states.memory[~mailed]))
    assert bool((states.memory[mailed] != 0).any(1).all())
    model.memory.reset()
    assert not model.updated_memory(everyone).memory.any() and len(updated) == 1


def test_only_neighbours_that_there_are_are_looked_up() -> None:
    model = after_some_events("tgn", embed="node")
    batch = STREAM[8:30]
    subgraph = model.sample(batch, (batch.dst.unsqueeze(1) + 1) % STREAM.num_nodes)
    (hop,) = subgraph.hops
    assert 0 < len(hop.slots) < hop.slots.mask.numel()
    assert len(hop.node) == len(hop.event) == len(hop.age) == int(hop.slots.mask.sum())
    assert [len(part.table) for part in hop.events_known] == [len(hop.slots)]
