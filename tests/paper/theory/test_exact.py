import pytest
import torch

from pres.models import MDGNN
from pres.models.sequential import sequential_memory
from pres.paper.theory.exact import MemoryInside, nodes_of, replay_exactly
from pres.sampling import TemporalBatches
from pres.smoothing import PRES
from tests.models.conftest import KINDS, make, random_events, stream_of

STREAM = stream_of(random_events(seed=11, n=150))


def memory_of(model: MDGNN, node: int) -> torch.Tensor:
    return model.updated_memory(torch.tensor([node])).memory[0].detach()


@pytest.mark.parametrize("kind", KINDS)
def test_memory_around_each_event_is_that_of_one_event_at_a_time(kind: str) -> None:
    """Also of nodes whose event it is not: a neighbour's mail moves them in APAN, and nothing does else."""
    fast, slow = make(kind, STREAM), make(kind, STREAM)
    sequential_memory(fast, STREAM[:25]).commit()
    for single in TemporalBatches(STREAM[:25], 1):
        slow.update_state(single)
    batch = STREAM[25:80]
    inside = MemoryInside(fast, batch)
    nodes = nodes_of(batch)
    assert nodes.tolist() == sorted({*batch.src.tolist(), *batch.dst.tolist()})
    for e, single in enumerate(TemporalBatches(batch, 1)):
        src, dst = inside.before(torch.tensor([e]))
        assert torch.allclose(src[0], memory_of(slow, int(single.src)), atol=1e-10)
        assert torch.allclose(dst[0], memory_of(slow, int(single.dst)), atol=1e-10)
        slow.update_state(single)
        after = inside.after(nodes, torch.full_like(nodes, e))
        for node, memory in zip(nodes.tolist(), after, strict=True):
            assert torch.allclose(memory, memory_of(slow, node), atol=1e-10), (e, node)


@pytest.mark.parametrize("kind", KINDS)
def test_a_replay_has_exact_memory_and_no_filter_and_leaves_the_model_alone(kind: str) -> None:
    model, slow = make(kind, STREAM), make(kind, STREAM)
    model.smoothing = PRES().build(model.memory)
    model.update_state(STREAM[:10])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    everyone = torch.arange(STREAM.num_nodes)
    for copied, batch in replay_exactly(model, TemporalBatches(STREAM[:60], 20)):
        for single in TemporalBatches(STREAM[int(slow.memory.position) : batch.offset], 1):
            slow.update_state(single)
        assert copied.smoothing is None
        assert torch.allclose(
            copied.updated_memory(everyone).memory, slow.updated_memory(everyone).memory, atol=1e-10
        )
    assert int(slow.memory.position) == 40 and model.smoothing is not None
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
