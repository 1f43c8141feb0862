"""The loss of one event at given memories, one pair at a time and from the model's parts."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.models import MDGNN
from pres.nn.embedding import Hop
from pres.nn.ops import Slots
from pres.paper.theory.event_loss import EventLoss
from tests.models.conftest import KINDS, make, random_events, stream_of

STREAM = stream_of(random_events(seed=12, n=120))


def slow_loss(
    model: MDGNN, batch: EventStream, negatives: Tensor, e: int, src_memory: Tensor, dst_memory: Tensor
) -> Tensor:
    """Embed each of the three nodes alone, its own memory as a further row that only it looks at."""
    subgraph = model.sample(batch, negatives)
    everyone = torch.arange(STREAM.num_nodes)
    known = model.updated_memory(everyone).memory.detach()

    def embedding(root: int, memory: Tensor) -> Tensor:
        node = int(subgraph.nodes[subgraph.roots[root]])
        hops, queries = [], [root]
        for hop in subgraph.hops:
            own = [i for query in queries for i in range(len(hop.node)) if hop.slots.query[i] == query]
            slots = Slots.of(hop.slots.mask[queries])
            hops.append(Hop(subgraph.nodes[hop.node[own]], hop.event[own], hop.age[own], slots))
            queries = own
        since = subgraph.t[root] - model.memory.last_event[node]
        rows = torch.cat([known, memory.unsqueeze(0)])
        found: Tensor = model.embedding(rows, torch.tensor([len(known)]), since.unsqueeze(0), hops)[0]
        return found

    negative = int(subgraph.negatives[e, 0])
    h_src = embedding(int(subgraph.src[e]), src_memory)
    h_dst = embedding(int(subgraph.dst[e]), dst_memory)
    h_negative = embedding(negative, known[int(subgraph.nodes[subgraph.roots[negative]])])
    scores = model.link(h_src, h_dst), model.link(h_src, h_negative)
    return torch.log1p((-scores[0]).exp()) + torch.log1p(scores[1].exp())


@pytest.mark.parametrize(
    ("kind", "options"),
    [*((kind, {}) for kind in KINDS), ("tgn", {"embed": "node"}), ("tgn", {"layers": 2})],
)
def test_each_loss_is_that_of_its_event_at_its_memories(kind: str, options: dict[str, Any]) -> None:
    model = make(kind, STREAM, **options)
    model.update_state(STREAM[:40])
    batch = STREAM[40:70]
    negatives = (batch.dst.unsqueeze(1) + 4) % 12
    loss = EventLoss(model, batch, negatives)
    loops = (batch.src == batch.dst).nonzero().squeeze(1)
    events = torch.cat([torch.tensor([3, 3, 17, 29, 0, 3]), loops[:1]])
    assert len(loops)
    generator = torch.Generator().manual_seed(0)
    src, dst = (
        torch.randn(len(events), model.memory.dim, generator=generator).double().requires_grad_()
        for _ in range(2)
    )
    found = loss(events, src, dst)
    gradients = torch.autograd.grad(found.sum(), (src, dst))
    for i, e in enumerate(events.tolist()):
        own = [memory[i].detach().requires_grad_() for memory in (src, dst)]
        if e == int(loops[0]):
            own[1] = own[0]  # one node has one memory
        expected = slow_loss(model, batch, negatives, e, *own)
        assert float(found[i].detach()) == pytest.approx(float(expected.detach()), rel=1e-9)
        by_src, by_dst = torch.autograd.grad(expected, own, allow_unused=True)
        assert torch.allclose(gradients[0][i], by_src, atol=1e-10)
        if e != int(loops[0]):
            assert torch.allclose(gradients[1][i], by_dst, atol=1e-10)
        else:
            assert float(gradients[1][i].abs().sum()) == 0
