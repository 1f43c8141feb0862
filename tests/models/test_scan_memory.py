"""Memory moved by a scan, and what is predicted from it, equal plain loops over events."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from pres.data.info import StreamInfo
from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.models import MDGNN, scanned
from pres.models.scanned import RESCANNED
from pres.models.states import States
from pres.sampling import TemporalBatches
from tests.models.conftest import make, random_events
from tests.oracles.sampling import Event
from tests.oracles.scan_memory import OnePass, SlowScan
from tests.oracles.twin import scan_twin, slow_twin

KINDS = ("tgn", "jodie")
NODES = 12


def features(seed: int, n: int, how: str) -> dict[str, Tensor]:
    """No features, two numbers, or these and two kinds of categories."""
    generator = torch.Generator().manual_seed(seed)
    x, categories = torch.randn(n, 2, generator=generator), torch.randint(0, 3, (n, 2), generator=generator)
    return {"none": {}, "numbers": {"x": x}, "all": {"x": x, "categories": categories}}[how]


def stream_with(events: list[Event], **columns: Any) -> EventStream:
    src, dst, t = (torch.tensor(column) for column in zip(*events, strict=True))
    levels = ((0, 1, 2),) * 2 if "categories" in columns else ()
    names = ("a", "b") if levels else ()
    info = StreamInfo(name="small", category_names=names, category_levels=levels)
    return EventStream(src, dst, t.double(), num_nodes=NODES, info=info, **columns)


def known_of_events(model: MDGNN, events: EventStream) -> Tensor:
    """What a model knows of each event: standardised numbers, then what it has learned of categories."""
    found = [torch.empty(len(events), 0, dtype=torch.float64)]
    if events.x is not None:
        train = events.x[: len(events.split().train)]
        found.append((events.x.double() - train.mean(0).double()) / train.std(0, correction=0).double())
    if events.categories is not None:
        for column, table in zip(events.categories.T, model.message.features.embeddings, strict=True):
            assert isinstance(table, torch.nn.Embedding)
            found.append(one_hot(column, 3).double() @ table.weight)
    return torch.cat(found, dim=1)


def pair_of(
    kind: str,
    events: list[Event],
    again: int = RESCANNED,
    columns: dict[str, Tensor] | None = None,
    **options: Any,
) -> tuple[EventStream, MDGNN, SlowScan]:
    """A stream, a small model that scans, and the slow memory with its weights."""
    stream = stream_with(events, **(columns or {}))
    model = make(kind, stream, cell="scan", **options)
    return stream, model, scan_twin(model, events, known_of_events(model, stream), again)


def assert_window(model: MDGNN, start: int, stop: int, found: OnePass) -> scanned.Scanned:
    """The scan of a batch has the memory after and before every event, to the last digits."""
    inside = model.scanned(model.window(start, stop))
    window = inside.window
    assert window.events.offset == found.first and len(window.events) == stop - found.first
    nodes = window.chains.node[window.chains.chain].tolist()
    order = [
        (found.first + event, node) for event, node in zip(window.chains.event.tolist(), nodes, strict=True)
    ]
    assert sorted(order) == sorted(found.after)
    close(inside.states, torch.stack([found.after[each] for each in order]))
    ends = [found.at(node, stop)[0] for node in window.chains.node.tolist()]
    close(inside.end, torch.stack(ends))
    close(inside.begin, torch.stack([found.begin.get(n, found.zero) for n in window.chains.node.tolist()]))
    return inside


def close(found: Tensor, wanted: Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)


def measured(inside: scanned.Scanned, nodes: Tensor, places: Tensor) -> tuple[States, Tensor]:
    """What is measured of each node before a place, and in which order they came."""
    entries = inside.window.version(nodes, places)
    order = torch.argsort((entries < 0).long(), stable=True)
    return inside.updated_memory(nodes[order], entries[order]), order


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize(
    ("b", "again", "how", "codes"),
    [
        (1, 7, "none", 0),
        (3, 7, "all", 3),
        (7, 7, "numbers", 0),
        (40, 7, "none", 3),
        (60, RESCANNED, "all", 3),
        (RESCANNED, RESCANNED, "numbers", 3),
        (330, RESCANNED, "none", 0),
    ],
)
def test_memory_of_every_batch_equals_a_loop_over_events(
    kind: str, passes: int, b: int, again: int, how: str, codes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanned, "RESCANNED", again)
    n = 60 if again < RESCANNED else 700
    events = random_events(seed=b + passes, n=n)
    stream, model, slow = pair_of(
        kind, events, again, features(b, n, how), passes=passes, node_encoding_dim=codes
    )
    everyone = torch.arange(NODES)
    for batch in TemporalBatches(stream, b):
        start, stop = batch.offset, batch.offset + len(batch)
        found = slow.take_in(start, stop)
        with torch.no_grad():
            inside = assert_window(model, start, stop, found)
            for place in sorted({found.first, start, (start + stop) // 2, stop}):
                states, order = measured(inside, everyone, torch.full_like(everyone, place - found.first))
                wanted = [found.at(node, place) for node in order.tolist()]
                close(states.memory, torch.stack([memory for memory, _ in wanted]))
                assert states.last_event.tolist() == [t for _, t in wanted]
                assert states.nodes.tolist() == order.tolist()
            inside.commit()
            close(
                model.memory.memory,
                torch.stack([slow.memory.get(node, slow.zero) for node in range(NODES)]),
            )
            assert model.memory.last_event.tolist() == [
                slow.last_event.get(node, events[0][2]) for node in range(NODES)
            ]
            assert int(model.memory.position) == stop
            states, after = model.updated_memory(everyone), slow.scan(stop, stop)
        wanted = [after.at(node, stop) for node in range(NODES)]
        close(states.memory, torch.stack([memory for memory, _ in wanted]))
        assert states.last_event.tolist() == [t for _, t in wanted]
        assert states.nodes.tolist() == everyone.tolist()
    assert float(states.memory.std()) > 0.05  # the states are not all alike


@pytest.mark.parametrize("kind", KINDS)
def test_absorbing_alone_moves_memory_as_the_scan_does(kind: str) -> None:
    events = random_events(seed=4, n=500)
    stream, one, slow = pair_of(kind, events)
    for batch in TemporalBatches(stream, 90):
        one.update_state(batch)
        slow.take_in(batch.offset, batch.offset + len(batch))
    close(one.memory.memory, torch.stack([slow.memory.get(node, slow.zero) for node in range(NODES)]))
    assert int(one.memory.position) == 500
    one.reset()
    assert not one.memory.memory.any() and int(one.memory.position) == 0
    assert set(one.memory.last_event.tolist()) == {events[0][2]}


def test_all_events_at_one_time_are_scanned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanned, "RESCANNED", 4)
    events = [(i % 5, (3 * i) % 7, float(i // 15)) for i in range(60)]  # four times in all
    stream, model, slow = pair_of("jodie", events, 4)
    for batch in TemporalBatches(stream, 10):
        found = slow.take_in(batch.offset, batch.offset + 10)
        with torch.no_grad():
            assert_window(model, batch.offset, batch.offset + 10, found).commit()
    positions = range(0, 61, 10)
    assert [scanned.held(position, stream.t) for position in positions] == [0, 0, 15, 15, 30, 45, 45]


def test_events_that_do_not_follow_the_memory_are_refused() -> None:
    stream, model, _ = pair_of("jodie", random_events(seed=4))
    model.update_state(stream[:20])
    with pytest.raises(OptionError, match="already"):
        model.update_state(stream[10:30])
    with pytest.raises(OptionError, match=r"20 events, and a scan cannot begin at event 30"):
        model.update_state(stream[30:40])  # what lies between would be lost, or scanned from the wrong memory


def cut_of(events: list[Event], event: int, start: int, staleness: int) -> int:
    """The first event that predicting this one does not see."""
    tied = sum(t < events[event][2] for _, _, t in events)
    return tied if staleness == 0 else min(tied, event - (event - start) % staleness)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("embed", ["event", "node"])
@pytest.mark.parametrize("staleness", [0, 7, 50, 200])
@pytest.mark.parametrize(("passes", "how", "codes"), [(1, "none", 0), (2, "all", 3)])
def test_logits_equal_those_from_memory_before_the_cut(
    kind: str, embed: str, staleness: int, passes: int, how: str, codes: int
) -> None:
    n, b, generator = 620, 310, torch.Generator().manual_seed(staleness + passes)
    events = random_events(seed=staleness + passes, n=n)
    options: dict[str, Any] = {"passes": passes, "node_encoding_dim": codes, "embed": embed}
    stream, model, memory = pair_of(kind, events, columns=features(passes, n, how), **options)
    slow = slow_twin(kind, model, events, memory.x.detach())
    compared = 0
    for batch in TemporalBatches(stream, b):
        start, stop = batch.offset, batch.offset + b
        with torch.no_grad():
            found = memory.take_in(start, stop)
            negatives = torch.randint(0, NODES, (b, 2), generator=generator)
            inside = model.scanned(model.window(start, stop))
            subgraph = model.prepared(model.sample_window(inside.window, negatives, staleness))
            assert subgraph.version is not None
            logits = model.logits(subgraph, inside.updated_memory(subgraph.nodes, subgraph.version))
            inside.commit()
        for i, event in enumerate(range(start, stop)):
            src, dst, t = events[event]
            cut = cut_of(events, event, start, staleness)
            assert staleness == 0 or cut <= event
            before = {node: found.at(node, cut) for node in range(NODES)}
            slow.memory = {node: value.numpy() for node, (value, _) in before.items()}
            slow.last_event = {node: at for node, (_, at) in before.items()}
            asked = events[cut][2] if embed == "node" else t
            for j, to in enumerate([dst, *negatives[i].tolist()]):
                assert logits[i, j].item() == pytest.approx(slow.score(src, to, asked), abs=1e-9), (event, j)
                compared += 1
    assert compared == 3 * n


def logits_of(model: MDGNN, stream: EventStream, b: int, staleness: int) -> Tensor:
    found = []
    with torch.no_grad():
        for batch in TemporalBatches(stream, b):
            inside = model.scanned(model.window(batch.offset, batch.offset + len(batch)))
            negatives = torch.full((len(batch), 1), 3)
            subgraph = model.prepared(model.sample_window(inside.window, negatives, staleness))
            assert subgraph.version is not None
            found.append(model.logits(subgraph, inside.updated_memory(subgraph.nodes, subgraph.version)))
            inside.commit()
    return torch.cat(found)


def scores(
    kind: str, events: list[Event], x: Tensor, staleness: int, b: int, units: EventStream, **options: Any
) -> Tensor:
    """All logits; what a model takes from the whole training part is as that of ``units``."""
    usual = make(kind, units, cell="scan", **options)
    model = make(kind, stream_with(events, x=x), cell="scan", **options)
    model.load_state_dict(usual.state_dict())
    model.message.time.scale = usual.message.time.scale
    return logits_of(model, stream_with(events, x=x), b, staleness)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("embed", ["event", "node"])
@pytest.mark.parametrize(("staleness", "b"), [(0, 60), (7, 60), (0, 25), (50, 60)])
def test_nothing_at_or_after_its_time_matters_to_a_logit(
    kind: str, embed: str, staleness: int, b: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanned, "RESCANNED", 20)
    n = 60
    events = random_events(seed=staleness + b, n=n)
    x = features(b, n, "numbers")["x"]
    units, options = stream_with(events, x=x), {"embed": embed, "node_encoding_dim": 3}
    usual = scores(kind, events, x, staleness, b, units, **options)
    changed = 0
    for event in (1, 9, 23, 24, 40, 59):
        t = events[event][2]
        later = [i for i, (_, _, at) in enumerate(events) if at >= t and i != event]
        retimed, other, other_x = list(events), list(events), x.clone()
        for i in later:
            u, v, at = events[i]
            # At its own time there are still as many events, as these say who shares a cut.
            then = at if at == t else 2 * at - t + 1
            retimed[i], other[i] = (u, v, then), ((v + 4) % 9, (u + 5) % 9, then)
            other_x[i] = -3 * x[i] + 1
        other_x[event] = 7.0  # its own features are not known either
        same = scores(kind, retimed, other_x, staleness, b, units, **options)
        assert torch.equal(same[event], usual[event]), event
        # With other nodes products and chains have other sizes: that is in the last bits.
        found = scores(kind, other, other_x, staleness, b, units, **options)
        torch.testing.assert_close(found[event], usual[event], rtol=0, atol=1e-13)
        changed += int(float((found[later] - usual[later]).abs().max()) > 1e-3) if later else 0
    assert changed >= 4  # the changes are such as matter to others


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("passes", [1, 2])
def test_a_strictly_earlier_event_of_the_same_batch_matters_when_nothing_is_stale(
    kind: str, passes: int
) -> None:
    events = [(0, 1, 0.0), (2, 3, 1.0), (0, 3, 2.0), (0, 1, 3.0), (2, 1, 3.0), (4, 3, 4.0)]
    other = [*events[:2], (0, 2, 2.0), *events[3:]]  # whom 0 meets just before
    x = torch.zeros(6, 1)
    units = stream_with(events, x=x)

    def moved(staleness: int) -> list[bool]:
        one, two = (
            scores(kind, each, x, staleness, 6, units, passes=passes, node_encoding_dim=3)
            for each in (events, other)
        )
        return (one[:, 0] != two[:, 0]).tolist()

    assert moved(0)[3:5] == [True, True]  # 0 met another, and 2 met someone
    if kind == "jodie":
        assert moved(6)[3:5] == [False, False]  # all of the batch see what is before it
