"""Predictions from the memory just before each event, inside a batch of any size."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from pres.errors import OptionError
from pres.models import MDGNN
from pres.nn.updaters import GRUUpdater
from pres.sampling import TemporalBatches
from tests.models.conftest import KINDS, make, random_events, stream_of


def scores_inside(model: MDGNN, batch: Any, negatives: torch.Tensor, **options: Any) -> torch.Tensor:
    inside = model.in_order.memory(model, batch, sweeps=options.pop("sweeps", None))
    view = model.look(batch, negatives, inside=inside)
    return torch.cat([part.flatten() for part in model.score(view, model.states_of(view, inside, **options))])


@pytest.mark.parametrize("b", [1, 13, 70])
@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_those_of_one_event_at_a_time(kind: str, b: int) -> None:
    stream = stream_of(random_events(seed=3, n=150))
    fast, slow = make(kind, stream), make(kind, stream)
    compared = 0
    for batch in TemporalBatches(stream, b):
        negatives = (batch.dst.unsqueeze(1) + torch.tensor([1, 5])) % stream.num_nodes
        found = scores_inside(fast, batch, negatives)
        expected = []
        for e, single in enumerate(TemporalBatches(batch, 1)):
            view = slow.look(single, negatives[e : e + 1])
            expected.append(slow.score(view, slow.measure(view.nodes)))
            slow.absorb(single)
        joined = [torch.cat([pair[side].flatten() for pair in expected]) for side in (0, 1)]
        assert torch.allclose(found, torch.cat(joined), atol=1e-10)
        fast.absorb(batch, sweeps=None)
        compared += len(found)
    assert compared == 3 * 150


@pytest.mark.parametrize("kind", KINDS)
def test_a_part_of_a_batch_sees_what_the_whole_does(kind: str) -> None:
    stream = stream_of(random_events(seed=4, n=150))
    model = make(kind, stream)
    model.absorb(stream[:40])
    batch = stream[40:120]
    negatives = (batch.dst.unsqueeze(1) + 1) % stream.num_nodes
    inside = model.in_order.memory(model, batch, sweeps=3)
    whole = model.look(batch, negatives, inside=inside)
    expected = model.score(whole, model.states_of(whole, inside))[0]
    for start, stop in ((0, 25), (25, 80)):
        part = model.look(batch[start:stop], negatives[start:stop], 40, inside=inside)
        assert torch.allclose(model.score(part, model.states_of(part, inside))[0], expected[start:stop])


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_at_or_after_an_event_matters_to_it(kind: str) -> None:
    """Other events from place 30 of the batch on: scores before stay the same."""
    events = random_events(seed=5, n=150)
    changed = [*events[:70], *((11 - src, 11 - dst, t) for src, dst, t in events[70:])]
    negatives = torch.arange(60).unsqueeze(1) % 12
    found = []
    for stream in (stream_of(events), stream_of(changed)):
        model = make(kind, stream)
        model.absorb(stream[:40])
        found.append(scores_inside(model, stream[40:100], negatives)[:30])
    assert torch.allclose(found[0], found[1], atol=1e-12)


def test_each_node_once_is_as_just_before_its_refresh() -> None:
    """Of a batch of 60 the last 35 look from place 25 and from place 50; so do batches that begin there."""
    stream = stream_of(random_events(seed=6, n=150))
    fast, slow = make("tgn", stream, embed="node"), make("tgn", stream, embed="node")
    for model in (fast, slow):
        model.absorb(stream[:40], sweeps=None)
    batch = stream[40:100]
    inside = fast.in_order.memory(fast, batch)
    negatives = (batch.dst.unsqueeze(1) + 1) % stream.num_nodes
    view = fast.look(batch[25:], negatives[25:], 40, inside=inside, refresh=25)
    found = fast.score(view, fast.states_of(view, inside))
    done = 0
    for start, stop in ((25, 50), (50, 60)):
        for single in TemporalBatches(batch[done:start], 1):
            slow.absorb(single)
        own = slow.look(batch[start:stop], negatives[start:stop])
        expected = slow.score(own, slow.measure(own.nodes))
        for one, two in zip(found, expected, strict=True):
            assert torch.allclose(one[start - 25 : stop - 25], two, atol=1e-10)
        done = start


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_reach_the_updates_asked_for(kind: str) -> None:
    """By finite differences: only the last updates of each memory follow a weight, by as many as asked."""
    stream = stream_of(random_events(seed=7, n=150))
    batch, weight_step = stream[40:100], 1e-6
    negatives = (batch.dst.unsqueeze(1) + 1) % stream.num_nodes
    model = make(kind, stream)
    model.absorb(stream[:40], sweeps=None)
    weight = next(p for name, p in model.updater.named_parameters() if name.endswith("bias_hh"))
    direction = torch.randn(weight.shape, generator=torch.Generator().manual_seed(1), dtype=weight.dtype)

    def slope(depth: int) -> float:
        inside = model.in_order.memory(model, batch)
        view = model.look(batch, negatives, inside=inside)
        loss = model.score(view, model.states_of(view, inside, depth))[0].sum()
        (gradient,) = torch.autograd.grad(loss, weight)
        return float((gradient * direction).sum())

    def difference() -> float:
        """The whole slope, through every update inside the batch; its start stays as it is."""
        found = []
        for sign in (1, -1):
            with torch.no_grad():
                weight.add_(direction, alpha=sign * weight_step)
                found.append(float(scores_inside(model, batch, negatives)[: len(batch)].sum()))
                weight.sub_(direction, alpha=sign * weight_step)
        return (found[0] - found[1]) / (2 * weight_step)

    exact = difference()
    deepest = int(model.in_order.memory(model, batch).halves.levels().max()) + 1
    assert slope(deepest + 1) == pytest.approx(exact, rel=1e-4)
    assert abs(slope(1) - exact) > 1e-3 * abs(exact)
    assert abs(slope(deepest // 2) - exact) < abs(slope(1) - exact)


@pytest.mark.parametrize("block", [1, 10, 25])
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_are_standard_batches_of_their_size(kind: str, block: int) -> None:
    """One large batch in blocks, against batches of a block each."""
    stream = stream_of(random_events(seed=8, n=150))
    fast, slow = make(kind, stream), make(kind, stream)
    for model in (fast, slow):
        model.absorb(stream[:40], sweeps=None)
    batch = stream[40:140]
    inside = fast.in_order.memory(fast, batch, block=block)
    negatives = (batch.dst.unsqueeze(1) + 1) % stream.num_nodes
    view = fast.look(batch, negatives, inside=inside, refresh=block)
    found = fast.score(view, fast.states_of(view, inside))[0]
    for part in TemporalBatches(batch, block):
        at = slice(part.offset - 40, part.offset - 40 + len(part))
        own = slow.look(part, negatives[at])
        assert torch.allclose(found[at], slow.score(own, slow.measure(own.nodes))[0], atol=1e-10)
        slow.absorb(part)
    fast.absorb(batch, in_order=inside)
    nodes = torch.arange(stream.num_nodes)
    assert torch.allclose(fast.measure(nodes).memory, slow.measure(nodes).memory, atol=1e-10)
    assert torch.equal(fast.memory.last_event, slow.memory.last_event)


class Halfway:
    """Corrects a memory to the middle between what it was and what was measured."""

    embedded = True
    written = True

    def reset(self) -> None: ...

    def __call__(
        self,
        nodes: torch.Tensor,
        previous: torch.Tensor,
        measured: torch.Tensor,
        elapsed: torch.Tensor,
        count: torch.Tensor,
        partner_count: torch.Tensor,
    ) -> torch.Tensor:
        return (previous + measured) / 2


@pytest.mark.parametrize("correction", [None, Halfway()])
@pytest.mark.parametrize("refresh", [4, 5, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_blocks_done_on_the_way_are_those_done_before(
    kind: str, refresh: int, correction: Halfway | None
) -> None:
    """Blocks of 10 that take what their steps of 20 measure, whether or not steps look where blocks begin."""
    stream = stream_of(random_events(seed=9, n=150))
    model = make(kind, stream)
    model.correction = correction
    model.absorb(stream[:40])
    batch = stream[40:100]
    negatives = (batch.dst.unsqueeze(1) + 1) % stream.num_nodes
    before = model.in_order.memory(model, batch, block=10)
    on_the_way = model.in_order.memory(model, batch, block=10, lazily=True)
    weights = [weight for weight in model.updater.parameters() if weight.requires_grad]
    for start in (0, 20, 40):
        found = []
        for inside in (before, on_the_way):
            part = slice(start, start + 20)
            view = model.look(batch[part], negatives[part], 40, inside=inside, refresh=refresh)
            scores = model.score(view, model.states_of(view, inside))[0]
            found.append((scores, torch.autograd.grad(scores.sum(), weights)))
        (expected, of_expected), (scores, of_scores) = found
        assert torch.allclose(scores, expected, atol=1e-12)
        assert all(torch.allclose(*pair, atol=1e-12) for pair in zip(of_scores, of_expected, strict=True))
    assert torch.allclose(on_the_way.memory, before.memory, atol=1e-12)
    assert torch.equal(on_the_way.last_update, before.last_update)


@pytest.mark.parametrize("kind", KINDS)
def test_whom_only_blocks_need_is_told_from_whom_a_step_reads(kind: str) -> None:
    """The objective of PRES, and how far memory moves, are about those that predictions see."""
    stream = stream_of(random_events(seed=9, n=150))
    model = make(kind, stream)
    model.absorb(stream[:40])
    batch = stream[40:100]
    inside = model.in_order.memory(model, batch, block=10, lazily=True)
    negatives = (batch.dst.unsqueeze(1) + 1) % stream.num_nodes
    view = model.look(batch, negatives, inside=inside, refresh=25)  # blocks begin where nobody looks
    places = torch.cat([view.roots, *(hop.node for hop in view.hops)])
    assert view.read is not None and torch.equal(view.read.nonzero().squeeze(1), torch.unique(places))
    assert 0 < int(view.read.sum()) < len(view.nodes)


def test_what_blocks_cannot_do_is_one_clear_line() -> None:
    stream = stream_of(random_events(seed=9, n=150))
    batch, negatives = stream[:60], torch.zeros(60, 1, dtype=torch.int64)
    model = make("jodie", stream)
    inside = model.in_order.memory(model, batch, block=10)
    view = model.look(batch, negatives, inside=inside, refresh=5)
    with pytest.raises(OptionError, match="depth=2: gradients reach one update"):
        model.states_of(view, inside, depth=2)
    model = make("jodie", stream, aggregate="mean")
    with pytest.raises(OptionError, match="block=10 sends the last mail of each block, not their mean"):
        model.in_order.memory(model, batch, block=10)


def test_no_memory_is_measured_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where steps look at the beginning of every block, a block has nothing left to measure."""
    stream = stream_of(random_events(seed=9, n=150))
    model = make("jodie", stream)
    model.absorb(stream[:40])
    batch = stream[40:100]
    inside = model.in_order.memory(model, batch, block=10, lazily=True)
    view = model.look(batch, (batch.dst.unsqueeze(1) + 1) % stream.num_nodes, inside=inside, refresh=5)
    measured = []

    def counted(memory: torch.Tensor, *rest: Any) -> Any:
        measured.append(len(memory))
        return update(memory, *rest)

    update = model.updater.forward
    monkeypatch.setattr(model.updater, "forward", counted)
    states = model.states_of(view, inside)
    assert sum(measured) == int(states.pending.sum()) > 0


def test_an_updater_of_ones_own_is_called_in_blocks_too() -> None:
    class Halved(GRUUpdater):
        def forward(self, *given: Any) -> torch.Tensor:
            return 0.5 * super().forward(*given)

    stream = stream_of(random_events(seed=9, n=150))
    model = make("jodie", stream)
    model.updater.__class__ = Halved
    model.absorb(stream[:40])
    batch, found = stream[40:100], []
    for learning in (True, False):
        inside = model.in_order.memory(model, batch, block=10, lazily=True)
        view = model.look(batch, (batch.dst.unsqueeze(1) + 1) % stream.num_nodes, inside=inside, refresh=5)
        with torch.set_grad_enabled(learning):
            found.append(model.states_of(view, inside).memory)
    assert found[0].requires_grad and not found[1].requires_grad
    assert torch.equal(*found) and found[0].any()
