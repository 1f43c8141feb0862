"""Looking at any pairs: as a batch looks at its events, and as a loop over nodes sees them."""

from typing import Any

import pytest
import torch

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.models import MDGNN
from pres.sampling import TemporalBatches
from tests.models.conftest import KINDS, make, random_events, stream_of
from tests.oracles.twin import slow_twin

B = 12
EMBED = ("event", "node")
VISIBILITY = ("fresh", "batch")


def options_of(kind: str, embed: str, visibility: str) -> dict[str, Any]:
    return {"embed": embed} | ({} if kind == "jodie" else {"visibility": visibility})


def scores_at(
    model: MDGNN, src: torch.Tensor, dst: torch.Tensor, t: torch.Tensor, **options: Any
) -> torch.Tensor:
    subgraph = model.sample_pairs(src, dst, t, **options)
    return model.score(subgraph, model.updated_memory(subgraph.nodes))[0].detach()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("embed", EMBED)
@pytest.mark.parametrize("visibility", VISIBILITY)
def test_the_pairs_of_a_batch_look_as_the_batch_does(kind: str, embed: str, visibility: str) -> None:
    stream = stream_of(random_events(seed=3))
    model = make(kind, stream, **options_of(kind, embed, visibility))
    some = torch.tensor([1, 4, 7, 11])
    for batch in TemporalBatches(stream, B):
        subgraph = model.sample(batch, (batch.dst.unsqueeze(1) + 1) % 9)
        positive = model.score(subgraph, model.updated_memory(subgraph.nodes))[0]
        found = scores_at(model, batch.src, batch.dst, batch.t)
        assert torch.allclose(found, positive, atol=1e-12)
        part = scores_at(model, batch.src[some], batch.dst[some], batch.t[some])
        assert torch.allclose(part, positive[some], atol=1e-12)
        reverse = scores_at(model, batch.src.flip(0), batch.dst.flip(0), batch.t.flip(0))
        assert torch.allclose(reverse.flip(0), positive, atol=1e-12)
        model.update_state(batch)
    assert float(found.std()) > 0.01


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("visibility", VISIBILITY)
def test_any_pairs_at_any_time_equal_a_loop_over_nodes(kind: str, visibility: str) -> None:
    events = random_events(seed=4)
    stream = stream_of(events)
    model = make(kind, stream, **options_of(kind, "event", visibility))
    slow = slow_twin(kind, model, events, torch.empty(len(events), 0))
    generator = torch.Generator().manual_seed(1)
    for start in (0, 20, 40, 60):
        if start:
            model.update_state(stream[start - 20 : start])
            slow.update_state(start - 20, start, visibility)
        known = events[start - 1][2] if start else events[0][2]
        src, dst = torch.randint(0, 12, (2, 30), generator=generator)
        t = known + torch.randint(0, 30, (30,), generator=generator) / 2.0
        found = scores_at(model, src, dst, t)
        before = start if visibility == "batch" else None
        for i, score in enumerate(found.tolist()):
            expected = slow.score(int(src[i]), int(dst[i]), float(t[i]), before)
            assert score == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_once_per_node_is_once_per_time_after_the_last_event(kind: str) -> None:
    stream = stream_of(random_events(seed=5))
    model, each = make(kind, stream, embed="node"), make(kind, stream)
    for one in (model, each):
        one.update_state(stream)
    src, dst = torch.tensor([0, 0, 0, 3]), torch.tensor([1, 1, 2, 0])
    t = stream.t[-1] + torch.tensor([1.0, 9.0, 9.0, 1.0])
    assert torch.allclose(scores_at(model, src, dst, t), scores_at(each, src, dst, t), atol=1e-12)
    assert len(model.sample_pairs(src, dst, t).roots) == 6  # 0, 1 and 3 at one time, 0, 1 and 2 at the other


def test_whole_times_are_asked_at_fractions_too() -> None:
    events = [(src, dst, int(t)) for src, dst, t in random_events(seed=6)]
    src, dst, t = (torch.tensor(column) for column in zip(*events, strict=True))
    whole = make("tgn", EventStream(src, dst, t, num_nodes=12))
    real = make("tgn", EventStream(src, dst, t.double(), num_nodes=12))
    asked = torch.tensor([0.5, 7.0, 10.25, 99.5], dtype=torch.float64)
    nodes = torch.tensor([0, 1, 2, 3])
    found, expected = (scores_at(model, nodes, nodes + 1, asked) for model in (whole, real))
    assert torch.allclose(found, expected, atol=1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_what_cannot_be_looked_at_is_one_clear_line(kind: str) -> None:
    stream = stream_of(random_events(seed=9))
    model = make(kind, stream)
    model.update_state(stream[:20])
    two, late = torch.tensor([1, 2]), stream.t[30].repeat(2)
    with pytest.raises(OptionError, match=r"shapes \[2\], \[2\], \[1\]"):
        model.sample_pairs(two, two, late[:1])
    with pytest.raises(OptionError, match="position=10 is not between the 20 events"):
        model.sample_pairs(two, two, late, position=10)
    with pytest.raises(OptionError, match="position=61"):
        model.sample_pairs(two, two, late, position=61)
    with pytest.raises(OptionError, match=r"pres\.predict goes back"):
        model.sample_pairs(two, two, torch.stack([stream.t[5], late[0]]))
    assert len(model.sample_pairs(two, two, stream.t[19].repeat(2)).src) == 2


def test_a_model_knows_its_stream() -> None:
    events = random_events(seed=9)
    stream = stream_of(events)
    model = make("jodie", stream)
    model.check_stream(stream)
    for other in (stream[:40], stream[1:], stream_of(events, nodes=13)):
        with pytest.raises(OptionError, match=r"60 events and 12 nodes|not cut from the stream"):
            model.check_stream(other)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("embed", EMBED)
def test_no_events_are_a_batch_of_none(kind: str, embed: str) -> None:
    stream = stream_of(random_events(seed=5))
    model = make(kind, stream, embed=embed)
    nothing = stream[:0]
    subgraph = model.sample(nothing, stream.dst[:0].unsqueeze(1))
    at_nothing = model.sample_pairs(nothing.src, nothing.dst, nothing.t)
    for looked in (subgraph, at_nothing):
        assert len(looked.nodes) == len(looked.roots) == len(looked.src) == 0
    assert len(model.route(nothing).endpoints) == 0


def test_a_part_of_a_batch_is_embedded_as_at_the_beginning_of_the_batch() -> None:
    stream = stream_of(random_events(seed=5))
    model = make("tgn", stream, embed="node")
    part = stream[40:50]
    (hop,) = model.sample(part, (part.dst.unsqueeze(1) + 1) % 9, batch_start=30).hops
    assert len(hop.event) and int(hop.event.max()) < 30


def test_every_hop_draws_anew() -> None:
    loops = [(0, 0, float(i)) for i in range(200)]  # every neighbour is node 0 again
    stream = stream_of(loops)
    model = make("tgn", stream, layers=2, strategy="uniform", neighbours=5)
    pairs = stream.src[:1], stream.dst[:1], stream.t[-1:] + 1
    first, second = model.sample_pairs(*pairs, position=0, seed=3).hops
    other, _ = model.sample_pairs(*pairs, position=0, seed=4).hops
    assert not torch.equal(first.event, other.event)
    newest = int(first.event[:5].argmax())  # it is asked with nearly the same history
    own = second.event[second.slots.query == newest]
    assert len(own) == 5 and not torch.equal(own, first.event[:5])
