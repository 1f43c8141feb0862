"""The models equal loops over nodes in NumPy: state by state, score by score, at b = 1 and above."""

from typing import Any

import numpy as np
import pytest
import torch

from pres.sampling import TemporalBatches
from tests.models.conftest import KINDS, make, random_events, stream_of
from tests.oracles.twin import slow_twin


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("b", "visibility"), [(1, "fresh"), (7, "fresh"), (7, "batch")])
@pytest.mark.parametrize(("features", "codes"), [(0, 0), (2, 0), (2, 3)])
def test_scores_and_states_equal_a_loop_over_nodes(
    kind: str, b: int, visibility: str, features: int, codes: int
) -> None:
    events = random_events(seed=b + features)
    x = torch.randn(len(events), features, generator=torch.Generator().manual_seed(1))
    stream = stream_of(events, x if features else None)
    options: dict[str, Any] = {"node_encoding_dim": codes}
    options |= {"visibility": visibility} if kind != "jodie" else {}
    if codes == 0:  # the published cells
        published: dict[str, dict[str, Any]] = {"jodie": {"cell": "rnn"}, "apan": {"gate": False}}
        options |= published.get(kind, {})
    model = make(kind, stream, **options)
    train = x[: len(stream.split().train)]
    spread = train.std(0, correction=0).double() if features else torch.ones(0)
    slow = slow_twin(kind, model, events, (x.double() - train.mean(0).double()) / spread)
    nodes = torch.arange(stream.num_nodes)
    for batch in TemporalBatches(stream, b):
        start, stop = batch.offset, batch.offset + len(batch)
        negatives = (batch.dst.unsqueeze(1) + torch.tensor([1, 2])) % stream.num_nodes
        subgraph = model.sample(batch, negatives)
        states = model.updated_memory(subgraph.nodes)
        positive, negative = model.score(subgraph, states)
        before = start if visibility == "batch" else None
        for i, event in enumerate(range(start, stop)):
            src, dst, t = events[event]
            assert positive[i].item() == pytest.approx(slow.score(src, dst, t, before), abs=1e-9)
            for j, other in enumerate(negatives[i].tolist()):
                assert negative[i, j].item() == pytest.approx(slow.score(src, other, t, before), abs=1e-9)
        model.update_state(batch, states)
        slow.update_state(start, stop, visibility)
        committed = np.stack([slow.committed(node) for node in nodes.tolist()])
        np.testing.assert_allclose(model.memory.memory.numpy(), committed, atol=1e-9)
        assert model.mailboxes.last_update.tolist() == [slow.updated_at(node) for node in nodes.tolist()]
        measured = np.stack([slow.updated_memory(node)[0] for node in nodes.tolist()])
        np.testing.assert_allclose(model.updated_memory(nodes).memory.detach().numpy(), measured, atol=1e-9)
    assert float(model.memory.memory.std()) > 0.05  # the states are not all alike


@pytest.mark.parametrize("kind", KINDS)
def test_absorbing_measures_by_itself_what_it_was_not_given(kind: str) -> None:
    events = random_events(seed=4)
    stream = stream_of(events)
    one, two = make(kind, stream), make(kind, stream)
    for batch in TemporalBatches(stream, 9):
        subgraph = one.sample(batch, batch.dst.unsqueeze(1))
        one.update_state(batch, one.updated_memory(subgraph.nodes))
        two.update_state(batch)
    for name, buffer in one.memory.named_buffers():
        assert torch.allclose(buffer, dict(two.memory.named_buffers())[name], atol=1e-12), name
