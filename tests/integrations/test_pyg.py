"""PRES on PyG's own memory, trained as PyG's example trains it."""

import copy
import math
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

import pres
from pres import PRES
from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.integrations.pyg import Smoothing, smooth
from pres.sampling import TemporalBatches
from pres.smoothing import PRESSmoothing
from tests.models.conftest import random_events, stream_of

tgn = pytest.importorskip("torch_geometric.nn.models.tgn", reason="needs torch-geometric")

REAL = os.environ.get("PRES_DATA")
NODES, DIM, UNIT = 12, 6, 2.0
STREAM = stream_of(random_events(seed=1, n=160))  # ties, repeats, self-loops; nodes act as both ends


def make(nodes: int = NODES, dim: int = DIM, aggregator: str = "LastAggregator") -> Any:
    torch.manual_seed(0)
    message = tgn.IdentityMessage(1, dim, 4)
    return tgn.TGNMemory(nodes, 1, dim, 4, message, getattr(tgn, aggregator)())


def filter_of(smoothing: Smoothing) -> PRESSmoothing:
    return smoothing.method


def negatives_of(batch: EventStream) -> Tensor:
    return (batch.dst + 5) % batch.num_nodes


def take_in(memory: Any, batch: EventStream) -> None:
    raw = torch.ones(len(batch), 1, dtype=memory.memory.dtype)
    memory.update_state(batch.src, batch.dst, batch.t.long(), raw)


def train(
    memory: Any,
    events: EventStream,
    size: int,
    *,
    epochs: int = 1,
    lr: float = 0.01,
    objective: bool = False,
) -> Iterator[float]:
    """Yield the loss of every batch, in the order of calls of PyG's example."""
    torch.manual_seed(1)
    decoder = nn.Bilinear(memory.memory_dim, memory.memory_dim, 1).to(memory.memory.dtype)
    optimiser = torch.optim.Adam([*memory.parameters(), *decoder.parameters()], lr=lr)
    for _ in range(epochs):
        memory.train()
        memory.reset_state()
        for batch in TemporalBatches(events, size):
            roots = torch.stack([batch.src, batch.dst, negatives_of(batch)])
            nodes, place = torch.unique(roots, return_inverse=True)
            embedding, _ = memory(nodes)
            src, dst, other = (embedding.index_select(0, row) for row in place)
            loss = softplus(-decoder(src, dst)).mean() + softplus(decoder(src, other)).mean()
            optimiser.zero_grad()
            take_in(memory, batch)
            torch.autograd.backward(loss + memory.smoothing.objective() if objective else loss)
            optimiser.step()
            memory.detach()
            yield float(loss.detach())


@pytest.mark.parametrize("aggregator", ["LastAggregator", "MeanAggregator"])
@pytest.mark.parametrize(
    "config", [PRES(beta=0, gain="fixed", gamma=1.0), PRES(filter=False)], ids=["V", "S"]
)
def test_a_gain_of_1_without_the_objective_is_pyg(aggregator: str, config: PRES) -> None:
    plain, smoothed = make(aggregator=aggregator), make(aggregator=aggregator)
    smoothing = smooth(smoothed, config)
    assert list(train(plain, STREAM, 16, epochs=2)) == list(
        train(smoothed, STREAM, 16, epochs=2, objective=config.filter)
    )
    for memory in (plain, smoothed):
        memory.eval()
        take_in(memory, STREAM[-20:])
    state = smoothed.state_dict()
    for name, value in plain.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert not config.filter or float(smoothing.method.trackers.n.sum()) > 50


def test_a_node_without_transitions_or_messages_stays_as_pyg_has_it() -> None:
    memory = make()
    smoothing = smooth(memory, PRES(gamma=0.3))
    everyone, seen, known_nodes = torch.arange(NODES), set[int](), 0
    for at, batch in enumerate(TemporalBatches(STREAM, 10)):
        known = filter_of(smoothing).trackers.n.sum(0)[:NODES] > 0
        with torch.no_grad():
            plain, when = tgn.TGNMemory._get_updated_memory(memory, everyone)
            found, found_when = memory(everyone)
        has_messages = torch.tensor([node in seen for node in range(NODES)])
        corrected = (found != plain).any(1)
        assert torch.equal(corrected, known & has_messages) and torch.equal(when, found_when)
        assert at >= 2 or not bool(corrected.any())  # the first messages are those of the first batch
        known_nodes = int(known.sum())
        take_in(memory, batch)
        memory.detach()
        seen |= {*batch.src.tolist(), *batch.dst.tolist()}
    assert NODES > known_nodes > 5


@pytest.mark.parametrize("delta", ["step", "rate"])
@pytest.mark.parametrize("with_negatives", [False, True])
def test_trackers_hold_what_update_state_wrote(delta: str, with_negatives: bool) -> None:
    """Node by node, from the memories before and after, written down as training goes."""
    memory = make()
    smoothing = smooth(memory, PRES(delta=delta, gamma=0.6), unit=UNIT)
    memory.double().reset_state()
    history: dict[tuple[int, int], list[Tensor]] = {}
    open_: set[int] = set()  # whose messages made a transition that is not recorded yet

    def record(node: int, component: int, moved: Tensor, before: int, after: int) -> None:
        span = 1.0 if delta == "step" else min(max((after - before) / UNIT, 0.1), 10.0)
        history.setdefault((node, component), []).append(moved / span)

    with torch.no_grad():
        for batch in TemporalBatches(STREAM, 4):
            before, when = memory.memory.clone(), memory.last_update.clone()
            drawn = negatives_of(batch)
            ends = {*batch.src.tolist(), *batch.dst.tolist()}
            if with_negatives:
                smoothing.negatives(drawn)
                for node in sorted(open_ & set(drawn.tolist()) - ends):
                    value, new = memory(torch.tensor([node]))
                    record(node, 1, value[0] - before[node], int(when[node]), int(new))
                    open_.remove(node)  # once, however often it is drawn
            take_in(memory, batch)
            for node in sorted(open_ & ends):
                moved = memory.memory[node] - before[node]
                record(node, 0, moved, int(when[node]), int(memory.last_update[node]))
            open_ |= ends
    trackers = filter_of(smoothing).trackers
    assert any(component == 1 for _, component in history) == with_negatives
    for node in range(NODES):
        for component in (0, 1):
            moves = torch.stack(history.get((node, component), [torch.zeros(0, DIM).double()]))
            moves = moves.view(-1, DIM)
            row = component, node
            assert int(trackers.n[row]) == len(moves)
            assert torch.allclose(trackers.total[row], moves.sum(0), atol=1e-10)
            assert torch.allclose(trackers.squares[row], moves.square().sum(0), atol=1e-10)


def test_evaluation_reads_trackers_only_and_reset_state_empties_them() -> None:
    memory = make()
    smoothing = smooth(memory)
    list(train(memory, STREAM[:100], 16))
    trackers = filter_of(smoothing).trackers
    before = {name: value.clone() for name, value in trackers.named_buffers()}
    twin = copy.deepcopy(memory)
    filter_of(twin.smoothing).reset()
    for one in (memory, twin):
        one.eval()  # PyG writes every pending memory here
        for batch in TemporalBatches(STREAM[100:], 16):
            one.smoothing.negatives(negatives_of(batch))
            take_in(one, batch)
            one(torch.arange(NODES))
    for name, value in trackers.named_buffers():
        assert torch.equal(value, before[name]), name
    assert not torch.equal(memory.memory, twin.memory)  # the filter was on
    memory.reset_state()
    assert all(not bool(value.any()) for value in trackers.buffers())


@pytest.mark.parametrize("options", [{}, {"delta": "rate"}])
def test_what_is_learned_moves_with_the_memorys_own_parameters(options: dict[str, Any]) -> None:
    memory = make()
    smoothing = smooth(memory, PRES(**options), unit=UNIT)
    before = {name: value.detach().clone() for name, value in smoothing.named_parameters()}
    for loss in train(memory, STREAM, 16, lr=0.2, objective=True):
        assert math.isfinite(loss) and 0 < smoothing.latest()["gain"] < 1
    assert before and before.keys() == dict(smoothing.named_parameters()).keys()
    for name, value in smoothing.named_parameters():
        assert value.grad is not None and not torch.equal(value, before[name]), name


@pytest.mark.parametrize("coherence", ["node", "updated"])
def test_the_objective_is_of_the_memory_and_teaches_its_weights(coherence: str) -> None:
    memory = make()
    smoothing = smooth(memory, PRES(beta=0.5, coherence=coherence, filter=False))
    list(train(memory, STREAM[:100], 16))
    nodes = torch.arange(NODES)
    previous = memory.memory.clone()
    updated, _ = memory(nodes)
    memory.zero_grad()
    objective = smoothing.objective()
    acted = torch.unique(torch.cat([STREAM[:100].src, STREAM[:100].dst]))
    assert len(acted) < NODES
    old_rows, new_rows = previous[acted], updated.detach()[acted]
    rows = list(zip(old_rows, new_rows, strict=True))
    if coherence == "updated":
        rows = [(old_rows.flatten(), new_rows.flatten())]
    cosines = [float((old @ new) / (old.norm() * new.norm())) for old, new in rows]
    assert float(objective.detach()) == pytest.approx(0.5 * (1 - sum(cosines) / len(cosines)), abs=1e-6)
    assert smoothing.latest()["coherence"] == pytest.approx(sum(cosines) / len(cosines), abs=1e-6)
    torch.autograd.backward(objective)
    for name in ("weight_ih", "weight_hh", "bias_ih"):
        assert bool(getattr(memory.gru, name).grad.any()), name
    assert bool(memory.time_enc.lin.weight.grad.any())


def test_embeddings_may_see_the_measurement_while_the_correction_is_kept() -> None:
    memory = make()
    smooth(memory, PRES(gamma=0.3, embed="measured"))
    for batch in TemporalBatches(STREAM[:96], 16):
        take_in(memory, batch)
        memory.detach()
    with torch.no_grad():
        nodes = torch.arange(NODES)
        plain, _ = tgn.TGNMemory._get_updated_memory(memory, nodes)
        assert torch.equal(memory(nodes)[0], plain)
        memory.eval()
        assert not torch.equal(memory(nodes)[0], plain)


def test_a_state_and_a_copy_go_on_as_the_memory_does() -> None:
    memory = make()
    smooth(memory)
    list(train(memory, STREAM[:100], 16, objective=True))
    copied = copy.deepcopy(memory)
    memory.eval()
    copied.eval()
    loaded = make()
    smooth(loaded)
    loaded.eval()
    loaded.load_state_dict(memory.state_dict())
    assert {"smoothing.method.theta", "smoothing.method.trackers.n"} <= memory.state_dict().keys()
    found = []
    for one in (memory, copied, loaded):
        assert one.smoothing._memory is one
        for batch in TemporalBatches(STREAM[100:], 16):
            take_in(one, batch)
        found.append(one.memory)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])


def test_anchors_share_one_tracker_among_the_others() -> None:
    memory = make()
    anchors = torch.tensor([0, 3])
    smoothing = smooth(memory, PRES(anchors=2), anchors=anchors)
    list(train(memory, STREAM, 16))
    observations = filter_of(smoothing).trackers.n[0]
    assert bool((observations > 0).all()) and float(observations[2]) > float(observations[:2].max())


@pytest.mark.parametrize(
    ("options", "arguments", "message"),
    [
        ({"delta": "rate"}, {}, "delta='rate' needs a unit"),
        ({}, {"unit": 0.0}, "unit=0.0"),
        ({"anchors": 3}, {}, "PRES(anchors=3)"),
    ],
)
def test_what_cannot_be_is_one_clear_line(
    options: dict[str, Any], arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError) as error:
        smooth(make(), PRES(**options), **arguments)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_memory_that_is_smoothed_or_is_not_pygs_is_refused() -> None:
    memory = make()
    smoothing = smooth(memory)
    with pytest.raises(OptionError, match="smoothed already"):
        smooth(memory)
    with pytest.raises(OptionError, match=r"Linear has no .*_get_updated_memory.*torch-geometric 2\.6"):
        smooth(nn.Linear(2, 2))
    with pytest.raises(OptionError, match=r"objective\(\) is about the latest memory\(n_id\) in training"):
        smoothing.objective()


@pytest.mark.skipif(
    not REAL or not (Path(REAL) / "wikipedia.parquet").exists(), reason="PRES_DATA holds no real datasets"
)
def test_it_trains_on_real_events() -> None:
    assert REAL is not None
    events = pres.load("wikipedia", folder=REAL)
    memory = make(events.num_nodes, dim=32)
    smoothing = smooth(memory)
    losses = torch.tensor(list(train(memory, events[:4_000], 200, epochs=3, lr=1e-3, objective=True)))
    assert bool(losses.isfinite().all())
    first, _, last = losses.view(3, -1).mean(1).tolist()
    assert last < first
    found = smoothing.latest()
    assert 0 < found["gain"] < 1 and found["gain"] != pytest.approx(PRES().gamma, abs=1e-6)
    assert found["movement"] > 0 and -1 <= found["coherence"] <= 1
