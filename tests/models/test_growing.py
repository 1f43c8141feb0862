"""A model that follows a stream as it grows is, to the bit, one that was made of the whole stream."""

from typing import Any

import pytest
import torch

import pres
from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.evaluation.scorer import BatchReading
from pres.models import MDGNN
from pres.models.scratch import scratch_of
from pres.nn import TemporalAttention
from pres.nn.allocation import lengthened
from pres.sampling import TemporalBatches
from pres.smoothing import PRES
from pres.training.checkpoint import load_into, load_tensors, save_tensors, state_of
from tests.models.conftest import KINDS, make, random_events

CUTS = (25, 26, 40, 60)


def stream_to(stop: int, x: torch.Tensor | None = None) -> EventStream:
    """The first events of a stream with ever more nodes, which ends in ties and a new node's self-loop."""
    events = random_events(seed=3, n=60, nodes=6)
    rows = [(s + i // 20, d + i // 15, t) for i, (s, d, t) in enumerate(events)]
    rows[-2:] = [(rows[-2][0], 11, rows[-1][2]), (12, 12, rows[-1][2])]
    src, dst, t = (torch.tensor(column) for column in zip(*rows[:stop], strict=True))
    more = {"x": None if x is None else x[:stop], "node_x": torch.ones(int(max(src.max(), dst.max())) + 1, 2)}
    return EventStream(src, dst, t.double(), **more)  # type: ignore[arg-type]


def of_beginning(kind: str, options: dict[str, Any], x: torch.Tensor | None) -> MDGNN:
    model = make(kind, stream_to(CUTS[0], x), node_encoding_dim=3, **options)
    model.smoothing = PRES(components=1, live=True).build(model.memory) if not model.scans else None
    return model


def twin_of(model: MDGNN, kind: str, options: dict[str, Any], stream: EventStream) -> MDGNN:
    """A model made of the whole stream, with the weights and the units of time of one of its beginning."""
    twin = make(kind, stream, node_encoding_dim=3, **options)
    twin.smoothing = PRES(components=1, live=True).build(twin.memory) if not twin.scans else None
    weights = dict(model.named_parameters())
    with torch.no_grad():
        for name, parameter in twin.named_parameters():
            parameter.copy_(weights[name])
        for name, buffer in twin.named_buffers():
            if name.endswith(("mean", "spread", "start")):
                buffer.copy_(dict(model.named_buffers())[name])
    twin.message.time.scale = model.message.time.scale
    if isinstance(twin.embedding, TemporalAttention):
        twin.embedding.time.scale = model.message.time.scale
    return twin


def scores(model: MDGNN, stream: EventStream) -> torch.Tensor:
    src = torch.arange(stream.num_nodes).repeat(3)
    dst = (src * 5 + torch.arange(len(src)) // stream.num_nodes) % stream.num_nodes
    with torch.no_grad():
        subgraph = model.sample_pairs(src, dst, (stream.t[-1] + 1).repeat(len(src)))
        return model.score(subgraph, model.updated_memory(subgraph.nodes))[0]


CASES: list[tuple[str, dict[str, Any]]] = [
    *((kind, {}) for kind in KINDS),
    *((kind, {"cell": "scan"}) for kind in KINDS),
    ("tgn", {"strategy": "uniform", "layers": 2}),
]


@pytest.mark.parametrize("featured", [False, True])
@pytest.mark.parametrize(("kind", "options"), CASES, ids=str)
def test_a_grown_model_equals_one_of_the_whole_stream(
    kind: str, options: dict[str, Any], featured: bool, tmp_path: Any
) -> None:
    x = torch.randn(60, 2, generator=torch.Generator().manual_seed(0)) if featured else None
    whole = stream_to(60, x)
    model = of_beginning(kind, options, x)
    twin = twin_of(model, kind, options, whole)
    for start, stop in zip((0, *CUTS), CUTS, strict=False):
        stream = stream_to(stop, x)
        if start:
            model.grow(stream)
        for one, events in ((model, stream), (twin, whole)):
            with torch.no_grad():
                for batch in TemporalBatches(events[start:stop], 7):
                    BatchReading(one, batch).take_in()
        if start:
            ours, theirs = model.state_dict(), twin.state_dict()
            for name, value in ours.items():
                same = theirs[name]
                if value.shape != same.shape:  # of the nodes so far
                    cut = tuple(slice(size) for size in value.shape)
                    same = same[cut]
                assert torch.equal(value, same), name
    assert torch.equal(scores(model, whole), scores(twin, whole))
    model.check_stream(whole)
    file = tmp_path / "state"
    save_tensors(file, state_of(model), {})
    other = twin_of(model, kind, options, whole)
    load_into(other, load_tensors(file)[0])
    assert torch.equal(scores(other, whole), scores(model, whole))
    blank = scratch_of(model)
    assert blank.memory.num_nodes == whole.num_nodes + 1 and not blank.memory.memory[-1].any()
    model.reset()
    assert not model.memory.memory.any() and model.memory.num_nodes == whole.num_nodes


def test_another_stream_is_refused_and_changes_nothing() -> None:
    model = make("tgn", stream_to(26))
    before = model.memory.num_nodes
    for other in (stream_to(25), stream_to(40)[1:]):
        with pytest.raises(OptionError, match="as it grows"):
            model.grow(other)
    late = stream_to(40)
    with pytest.raises(OptionError, match="not cut from the stream"):
        model.grow(EventStream(late.src, late.dst, late.t + 100, node_x=late.node_x))
    assert model.memory.num_nodes == before


@pytest.mark.parametrize("dim", [0, 1])
def test_rows_are_copied_a_bounded_number_of_times(dim: int) -> None:
    rows, copied, place = torch.ones(3, 3, 2), 0, 0
    for count in range(4, 2_000):
        rows = lengthened(rows, 1, count, dim)
        if rows.data_ptr() != place:
            copied, place = copied + count, rows.data_ptr()
    assert rows.shape[dim] == 1_999 and copied < 4 * 2_000
    line = rows.select(1 - dim, 0)[:, 0]
    assert line.tolist() == [1, 1, 1, *range(4, 2_000)]


def test_a_large_state_grows_without_filling_its_empty_rows() -> None:
    rows = lengthened(torch.zeros(300_000, 8), 5)
    rows[7] = 3
    longer = lengthened(rows, 200_000)
    assert longer.shape == (500_005, 8) and float(longer.sum()) == 24 and bool((longer[7] == 3).all())


def test_anchors_are_shared_by_new_nodes() -> None:
    events = pres.load("synthetic", num_events=400)
    model = make("jodie", events)
    model.smoothing = PRES(anchors=5).build(model.memory, activity=torch.arange(events.num_nodes))
    more = EventStream(events.src, events.dst, events.t, x=events.x, num_nodes=events.num_nodes + 4)
    rows = model.smoothing.trackers.n.shape
    model.grow(more)
    assert model.smoothing.trackers.n.shape == rows and len(model.smoothing.recorded) == more.num_nodes + 1
