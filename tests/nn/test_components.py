import math
from typing import Any

import pytest
import torch
from torch import Tensor

from pres.data.info import StreamInfo
from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.models import TGN
from pres.nn import EdgeFeatures, IdentityMessage, Memory, MLPMessage, TemporalAttention, TimeEncoding
from pres.nn.encoding import limit_times
from pres.sampling import TemporalBatches
from tests.models.conftest import make, random_events, stream_of


def test_time_is_encoded_from_fast_to_slow_whatever_its_type_and_unit() -> None:
    seconds, milliseconds = TimeEncoding(10), TimeEncoding(10, scale=1000.0)
    difference = torch.tensor([0, 1, 86_400])
    found = seconds(difference)
    expected = [[math.cos(float(d) * 10.0**-i) for i in range(10)] for d in difference]
    assert torch.allclose(found, torch.tensor(expected), atol=1e-3)
    assert torch.allclose(milliseconds(difference * 1000), found, atol=1e-6)
    assert torch.allclose(seconds(difference.double()), found)


def test_times_beyond_a_limit_count_as_that_long() -> None:
    model = torch.nn.ModuleList([TimeEncoding(4), TimeEncoding(4, scale=10.0)])
    difference = torch.tensor([0.0, 30.0, 49.0, 51.0, 1e9])
    before = [part(difference) for part in model]
    limit_times(model, 50.0)
    for part, free in zip(model, before, strict=True):
        found = part(difference)
        assert torch.equal(found[:3], free[:3]) and not torch.equal(found[3:], free[3:])
        assert torch.equal(found[3:], part(torch.tensor([50.0, 50.0])))
    fresh = torch.nn.ModuleList([TimeEncoding(4), TimeEncoding(4, scale=10.0)])
    fresh.load_state_dict(model.state_dict())
    assert all(torch.equal(a(difference), b(difference)) for a, b in zip(fresh, model, strict=True))
    limit_times(model, math.inf)
    assert all(torch.equal(part(difference), free) for part, free in zip(model, before, strict=True))


def test_time_is_fixed_unless_learned() -> None:
    assert [p.requires_grad for p in TimeEncoding(3).parameters()] == [False, False]
    assert [p.requires_grad for p in TimeEncoding(3, learned=True).parameters()] == [True, True]


def test_features_are_looked_up_by_event() -> None:
    stream = EventStream(
        torch.tensor([0, 1, 0]),
        torch.tensor([1, 2, 2]),
        torch.tensor([1, 2, 3]),
        x=torch.tensor([[1.0], [2.0], [3.0]]),
        categories=torch.tensor([[0], [1], [0]]),
        info=StreamInfo(category_names=("kind",), category_levels=(("a", "b"),)),
    )
    features = EdgeFeatures(stream, category_dim=4)
    found = features(torch.tensor([[2, 1]]), torch.float32)
    assert found.shape == (1, 2, 5) and features.dim == 5
    # one event trains (mean 1, no spread, so only the mean is taken off)
    assert found[0, :, 0].tolist() == [2.0, 1.0]
    assert torch.equal(found[0, 0, 1:], features.embedded(torch.tensor(0), torch.float32))
    assert not torch.equal(found[0, 0, 1:], found[0, 1, 1:])
    bare = EdgeFeatures(EventStream(stream.src, stream.dst, stream.t))
    assert bare(torch.tensor([0, 1]), torch.float64).shape == (2, 0)


def test_messages_hold_everything_or_a_summary_of_it() -> None:
    stream = stream_of(random_events(1))
    memory = Memory(12, 3, 0, slots=1, start=stream.t[0])
    features, time = EdgeFeatures(stream), TimeEncoding(4)
    identity, summary = IdentityMessage(memory, features, time), MLPMessage(memory, features, time, dim=7)
    mail = memory.read_mail(torch.tensor([0, 1]))
    parts = identity(mail, torch.zeros(2))
    assert torch.cat([part.copied() for part in parts], dim=1).shape == (2, identity.dim) == (2, 10)
    (only,) = summary(mail, torch.zeros(2))
    assert only.copied().shape == (2, 7)


def test_the_mean_of_a_batchs_mail_equals_a_loop() -> None:
    events = random_events(seed=3, n=30)
    x = torch.randn(30, 2, generator=torch.Generator().manual_seed(0))
    stream = stream_of(events, x)
    model = make("tgn", stream, aggregate="mean")
    first, second = TemporalBatches(stream, 15)
    model.update_state(first)
    model.update_state(second)
    memory = model.memory.memory
    train = x[: len(stream.split().train)]
    standard = ((x - train.mean(0)) / train.std(0, correction=0)).double()
    for node in range(12):
        raw_messages = []
        for i in range(15, 30):
            src, dst, _ = events[i]
            if node in (src, dst):
                partner = dst if node == src else src
                raw_messages.append(torch.cat([memory[node], memory[partner], standard[i]]))
        if raw_messages:
            assert torch.allclose(model.mailboxes.mail[node, 0], torch.stack(raw_messages).mean(0), atol=1e-6)


def attended(layer: Any, own: Tensor, now: Tensor, neighbours: Tensor) -> Tensor:
    """Return what a layer of attention makes of one query `[d]` and its neighbours `[k, d']`, by the book."""
    query = layer.query(torch.cat([own, now])).view(layer.heads, -1)
    heads = []
    for head, q in enumerate(query):
        part = slice(head * len(q), (head + 1) * len(q))
        keys, values = layer.key(neighbours)[:, part], layer.value(neighbours)[:, part]
        weights = (keys @ q / len(q) ** 0.5).softmax(0)
        heads.append(weights @ values if len(neighbours) else torch.zeros_like(q))
    result: Tensor = layer.norm(torch.relu(layer.out(torch.cat([*heads, own]))))
    return result


def test_two_layers_equal_a_recursion_over_single_queries() -> None:
    stream = stream_of(random_events(seed=9), torch.randn(60, 2))
    model = make("tgn", stream, layers=2)
    assert (
        isinstance(model, TGN) and isinstance(model.embedding, TemporalAttention) and model.index is not None
    )
    for batch in TemporalBatches(stream[:40], 8):
        model.update_state(batch)
    embedding, index = model.embedding, model.index

    def embed(node: int, cutoff: int, t: float, layer: int) -> Tensor:
        memory: Tensor = model.updated_memory(torch.tensor([node])).memory[0]
        if layer == 0:
            return memory
        found = index.recent(torch.tensor([node]), torch.tensor([cutoff]), model.neighbours)
        inputs = torch.zeros(1, model.neighbours, memory.numel() + 2 + 4, dtype=torch.float64)
        for j in range(int(found.mask.sum())):
            other, event, at = int(found.nodes[0, j]), int(found.events[0, j]), float(found.t[0, j])
            own_cutoff = int(index.cutoff_at(torch.tensor([at]).double())[0])
            below = embed(other, own_cutoff, at, layer - 1)
            edge = embedding.features(torch.tensor(event), torch.float64)
            inputs[0, j] = torch.cat([below, edge, embedding.time(torch.tensor(t - at).double())])
        own = embed(node, cutoff, t, layer - 1)
        now = embedding.time(torch.zeros(1).double())
        return attended(embedding.layers[layer - 1], own, now[0], inputs[0, : int(found.mask.sum())])

    batch = stream[40:46]
    subgraph = model.sample(batch, batch.dst.unsqueeze(1))
    found = model.embed(subgraph, model.updated_memory(subgraph.nodes))
    cutoffs = index.cutoffs(batch).tolist()
    for i in range(len(batch)):
        expected = embed(int(batch.src[i]), cutoffs[i], float(batch.t[i]), layer=2)
        assert torch.allclose(found[subgraph.src[i]], expected, atol=1e-9)


def test_per_node_embeddings_ask_each_node_once() -> None:
    stream = stream_of(random_events(seed=11))
    model = make("tgn", stream, embed="node")
    for batch in TemporalBatches(stream[:48], 12):
        model.update_state(batch)
    batch = stream[48:60]
    subgraph = model.sample(batch, batch.src.unsqueeze(1))
    distinct = set(batch.src.tolist()) | set(batch.dst.tolist())
    assert len(subgraph.roots) == len(distinct)
    assert torch.equal(subgraph.nodes[subgraph.roots[subgraph.src]], batch.src)
    assert torch.equal(subgraph.nodes[subgraph.roots[subgraph.negatives[:, 0]]], batch.src)
    assert subgraph.hops[0].event.max() < 48  # only earlier batches


def test_features_of_any_scale_serve_alike() -> None:
    stream = stream_of(random_events(seed=1), torch.randn(60, 2, generator=torch.Generator().manual_seed(0)))
    assert stream.x is not None
    large = EventStream(stream.src, stream.dst, stream.t, x=stream.x * 1e6 + 5e6, num_nodes=12)
    at = torch.arange(60)
    found = EdgeFeatures(large)(at, torch.float32)
    assert torch.allclose(found, EdgeFeatures(stream)(at, torch.float32), atol=1e-4)
    assert float(found[: len(stream.split().train)].mean().abs()) < 1e-4


@pytest.mark.parametrize(
    "options", [{"heads": 4}, {"layers": 0}, {"memory_dim": 0}, {"neighbours": 0}], ids=str
)
def test_sizes_that_cannot_be_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(OptionError):
        make("tgn", stream_of(random_events(1)), **options)


def test_a_frozen_model_scores_as_before_with_categories_too() -> None:
    events = random_events(seed=5)
    stream = EventStream(
        torch.tensor([e[0] for e in events]),
        torch.tensor([e[1] for e in events]),
        torch.tensor([float(e[2]) for e in events]),
        x=torch.randn(len(events), 2, generator=torch.Generator().manual_seed(0)),
        categories=torch.arange(len(events)).unsqueeze(1) % 3,
        num_nodes=12,
    )
    for embed in ("event", "node"):
        model = make("tgn", stream, embed=embed)
        for batch in TemporalBatches(stream[:48], 12):
            model.update_state(batch)

        def scored(model: TGN = model) -> Tensor:  # type: ignore[assignment]
            subgraph = model.sample(stream[48:], stream[48:].src.unsqueeze(1))
            return model.score(subgraph, model.updated_memory(subgraph.nodes))[0].detach()

        free = scored()
        model.requires_grad_(False)
        assert torch.allclose(scored(), free, atol=1e-12)


def test_a_model_needs_no_encoding_of_time() -> None:
    stream = stream_of(random_events(seed=6))
    for kind in ("tgn", "jodie"):
        model = make(kind, stream, time_dim=0)
        model.update_state(stream[:30])
        subgraph = model.sample(stream[30:40], stream[30:40].src.unsqueeze(1))
        assert bool(model.score(subgraph, model.updated_memory(subgraph.nodes))[0].isfinite().all())
