from typing import Any

import pytest
import torch
from torch.nn import functional

from pres.data.info import StreamInfo
from pres.data.stream import EventStream
from pres.models import MDGNN
from pres.sampling import TemporalBatches
from tests.models.conftest import KINDS, make, random_events, stream_of


def rich_stream() -> EventStream:
    """A stream with every kind of feature a model can use."""
    events = random_events(seed=2, n=80)
    plain = stream_of(events)
    generator = torch.Generator().manual_seed(0)
    return EventStream(
        plain.src,
        plain.dst,
        plain.t,
        x=torch.randn(80, 3, generator=generator),
        categories=torch.randint(0, 4, (80, 1), generator=generator),
        node_x=torch.randn(12, 2, generator=generator),
        num_nodes=12,
        info=StreamInfo(category_names=("kind",), category_levels=((0, 1, 2, 3),)),
    )


def loss_of(model: MDGNN, batch: EventStream) -> torch.Tensor:
    subgraph = model.sample(batch, (batch.dst.unsqueeze(1) + 1) % 12)
    positive, negative = model.score(subgraph, model.updated_memory(subgraph.nodes))
    return functional.softplus(-positive).mean() + functional.softplus(negative).mean()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options", [{}, {"embed": "node"}, {"aggregate": "mean"}, {"node_encoding_dim": 3}], ids=str
)
def test_every_parameter_that_can_learn_receives_gradient(kind: str, options: dict[str, Any]) -> None:
    stream = rich_stream()
    model = make(kind, stream, **options).train()
    batches = list(TemporalBatches(stream, 20))
    model.update_state(batches[0])
    model.update_state(batches[1])
    torch.autograd.backward(loss_of(model, batches[2]))
    idle = [
        name
        for name, parameter in model.named_parameters()
        if parameter.requires_grad and (parameter.grad is None or not bool(parameter.grad.abs().sum() > 0))
    ]
    assert idle == []


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_equal_finite_differences(kind: str) -> None:
    stream = rich_stream()
    model = make(kind, stream, node_encoding_dim=3)
    batches = list(TemporalBatches(stream, 20))
    model.update_state(batches[0])
    model.update_state(batches[1])
    torch.autograd.backward(loss_of(model, batches[2]))
    step = 1e-6
    for name, parameter in model.named_parameters():
        if parameter.grad is None:
            continue
        flat, gradient = parameter.data.view(-1), parameter.grad.view(-1)
        for place in {0, len(flat) // 2, len(flat) - 1}:
            kept = flat[place].item()
            with torch.no_grad():
                flat[place] = kept + step
                above = loss_of(model, batches[2]).item()
                flat[place] = kept - step
                below = loss_of(model, batches[2]).item()
                flat[place] = kept
            slope = (above - below) / (2 * step)
            assert gradient[place].item() == pytest.approx(slope, rel=1e-4, abs=1e-7), name


@pytest.mark.parametrize("kind", KINDS)
def test_a_few_steps_of_training_lower_the_loss(kind: str) -> None:
    stream = rich_stream()
    model = make(kind, stream).train()
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
    losses = []
    for _ in range(15):
        model.memory.reset()
        total = 0.0
        for batch in TemporalBatches(stream, 20):
            loss = loss_of(model, batch)
            optimiser.zero_grad()
            torch.autograd.backward(loss)
            optimiser.step()
            model.update_state(batch)
            total += loss.item()
        losses.append(total)
    assert losses[-1] < 0.9 * losses[0]
