"""Copies of a model: what they share, and the node that nothing happened to."""

import pytest
import torch

from pres.data.stream import EventStream
from pres.models import MDGNN
from pres.models.scratch import reader_of, scratch_of
from pres.sampling import TemporalBatches
from pres.training.checkpoint import state_of
from tests.models.conftest import KINDS, make, random_events, stream_of

IDLE = 11  # a node of the stream without events


def scores(model: MDGNN, pairs: list[tuple[int, int]], t: float) -> torch.Tensor:
    src, dst = torch.tensor(pairs).T
    subgraph = model.sample_pairs(src, dst, torch.full((len(pairs),), t, dtype=torch.float64))
    return model.score(subgraph, model.updated_memory(subgraph.nodes))[0].detach()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("embed", ["event", "node"])
def test_the_blank_node_is_as_one_without_events(kind: str, embed: str) -> None:
    stream = stream_of(random_events(seed=1))
    model = make(kind, stream, embed=embed)
    scratch = scratch_of(model)
    blank = stream.num_nodes
    for batch in TemporalBatches(stream, 15):
        t = float(batch.t[-1])
        found = scores(scratch, [(blank, 3), (2, blank), (blank, blank), (4, 5)], t)
        assert torch.allclose(found, scores(model, [(IDLE, 3), (2, IDLE), (IDLE, IDLE), (4, 5)], t))
        for one in (model, scratch):
            one.update_state(batch)
    assert not scratch.memory.memory[blank].any()
    scratch.memory.reset()
    assert int(scratch.memory.position) == 0 and int(model.memory.position) == len(stream)


@pytest.mark.parametrize("kind", KINDS)
def test_a_blank_node_has_no_features(kind: str) -> None:
    plain = stream_of(random_events(seed=2))
    node_x = torch.randn(12, 3)
    node_x[IDLE] = 0
    stream = EventStream(plain.src, plain.dst, plain.t, node_x=node_x, num_nodes=12)
    model = make(kind, stream, node_encoding_dim=2)
    model.node_encoding.table[IDLE] = 0
    model.update_state(stream)
    t = float(stream.t[-1]) + 1
    found = scores(scratch_of(model), [(12, 3), (2, 12), (1, 3)], t)
    assert torch.allclose(found, scores(model, [(IDLE, 3), (2, IDLE), (1, 3)], t))


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_stays_as_it_is(kind: str) -> None:
    stream = stream_of(random_events(seed=3))
    model = make(kind, stream).train()
    model.update_state(stream[:20])
    before = state_of(model)
    scratch = scratch_of(model)
    assert not scratch.training and model.training
    scratch.update_state(stream[20:40])
    scratch.memory.reset()
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    for own, theirs in zip(model.parameters(), scratch.parameters(), strict=True):
        assert own is theirs


def test_a_reader_copies_no_tensor() -> None:
    stream = stream_of(random_events(seed=3), torch.ones(60, 2))
    model = make("tgn", stream).train()
    reader = reader_of(model)
    assert not reader.training and model.training
    theirs = dict(reader.named_buffers()) | dict(reader.named_parameters())
    for name, own in (dict(model.named_buffers()) | dict(model.named_parameters())).items():
        assert theirs[name] is own, name
    assert reader.index is model.index
    scratch = scratch_of(model)
    assert scratch.message.features.x is model.message.features.x
