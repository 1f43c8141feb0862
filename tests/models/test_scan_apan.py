"""APAN by a scan against one event after another, and what a prediction and a commit may depend on."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.models import APAN, MDGNN
from pres.nn import MailboxScan, ScanMemory, TimeEncoding
from pres.nn.mailbox_scan import AGES, Reading
from pres.training.config import FitConfig
from pres.training.scan_step import prepare_scan, train_on_scan
from pres.training.schedules import optimiser_for
from tests.models.conftest import DIM, make, random_events, stream_of
from tests.oracles.mail_scan import SlowMailScan
from tests.oracles.sampling import Event

B, CODES, RESCANNED = 12, 3, 7


@pytest.fixture(autouse=True)
def few_rescanned(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "as_many_as_rescanned" not in request.node.name:
        monkeypatch.setattr("pres.models.scanned.RESCANNED", RESCANNED)


def made(stream: EventStream, **options: Any) -> MDGNN:
    model = make("apan", stream, cell="scan", node_encoding_dim=CODES, **options)
    assert isinstance(model.updater, MailboxScan)
    return model


def features(n: int, seed: int = 0) -> Tensor:
    return torch.randn(n, 2, generator=torch.Generator().manual_seed(seed))


def slow(model: MDGNN, stream: EventStream, events: list[Event]) -> SlowMailScan:
    updater, message = model.updater, model.message
    assert isinstance(updater, MailboxScan) and isinstance(message.time, TimeEncoding)
    assert isinstance(model.memory, ScanMemory)
    return SlowMailScan(
        weights={name: weight.detach().numpy() for name, weight in model.named_parameters()},
        events=events,
        x=message.features(torch.arange(len(events)), torch.float64).numpy(),
        codes=model.node_encoding(torch.arange(stream.num_nodes)).double().numpy(),
        time_scale=message.time.scale,
        dim=DIM,
        slots=model.memory.slots,
        neighbours=model.neighbours,
        heads=updater.heads,
        passes=updater.passes,
        rescanned=RESCANNED,
        direction="out" if stream.directed else "both",
    )


def check_nodes(model: MDGNN, expected: SlowMailScan) -> None:
    """Memory, times and mailboxes are those of the oracle."""
    state, nodes = model.memory, expected.nodes
    assert isinstance(state, ScanMemory)
    for node in range(len(state.memory)):
        np.testing.assert_allclose(
            state.memory[node], nodes.memory.get(node, np.zeros(DIM)), rtol=0, atol=1e-10
        )
        assert float(state.last_event[node]) == nodes.last_event.get(node, float(state.start))
        assert int(state.received[node]) == nodes.received.get(node, 0)
        place, there = state.newest(torch.tensor([node]))
        mails = nodes.mailbox.get(node, [])[::-1]
        assert int(there.sum()) == len(mails)
        for slot, (event, mail) in zip(place[0].tolist(), mails, strict=False):
            assert int(state.mail_event.view(-1)[slot]) == event
            np.testing.assert_allclose(state.mail.flatten(0, 1)[slot], mail, rtol=0, atol=1e-10)


@pytest.mark.parametrize("passes", [1, 2])
@pytest.mark.parametrize(("seed", "nodes", "directed"), [(0, 9, False), (1, 4, False), (2, 9, True)])
def test_states_are_those_of_one_event_after_another(
    passes: int, seed: int, nodes: int, directed: bool
) -> None:
    events = random_events(seed, nodes=nodes)
    stream = stream_of(events, features(len(events)), directed=directed)
    model = made(stream, passes=passes)
    expected = slow(model, stream, events)
    for start in range(0, len(events), B):
        batch = stream[start : start + B]
        with torch.no_grad():
            scanned = model.scanned(model.window(start, start + len(batch)))
            model.update_state(batch)
        window = scanned.window
        assert scanned.mails is not None and window.events.offset == expected.position
        _, states, mails = expected.window(start + len(batch))
        node = window.chains.node[window.chains.chain].tolist()
        entries = [
            (window.events.offset + at, v) for at, v in zip(window.chains.event.tolist(), node, strict=True)
        ]
        assert len(set(entries)) == len(states) == len(entries)
        for found, all_expected in (scanned.states, states), (scanned.mails, mails):
            wanted = np.stack([all_expected[entry] for entry in entries])
            np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-10)
        expected.update_state(start + len(batch))
        check_nodes(model, expected)


def scores(model: MDGNN, start: int, stop: int, staleness: int) -> Tensor:
    """Scores of a batch's events, memory having taken in all batches before it."""
    with torch.no_grad():
        for at in range(0, start, B):
            model.update_state(model._events[at : at + B])  # type: ignore[index]
        window = model.window(start, stop)
        subgraph = model.sample_window(window, torch.full((stop - start, 1), 3), staleness)
        assert subgraph.version is not None
        return model.logits(subgraph, model.scanned(window).updated_memory(subgraph.nodes, subgraph.version))[
            :, 0
        ]


@pytest.mark.parametrize("staleness", [0, 1, 5])
@pytest.mark.parametrize("passes", [1, 2])
def test_a_score_sees_nothing_at_or_after_its_time(passes: int, staleness: int) -> None:
    events = random_events(seed=4)
    x = features(len(events))
    model = made(stream_of(events, x), passes=passes)
    blank = model.state_dict()
    blank = {name: value.clone() for name, value in blank.items()}
    start, stop = 3 * B, 4 * B
    before = scores(model, start, stop, staleness)
    for own in range(start, stop):
        t = events[own][2]
        others, other_x = list(events), x.clone()
        for i, (src, dst, at) in enumerate(events):
            if at < t:
                continue
            other_x[i] += 3
            if i != own:
                later = at if i < own else at + 5  # the predicted event keeps its place
                others[i] = ((dst + 4) % 9, (src + 5) % 9, later)
        changed = made(stream_of(others, other_x), passes=passes)
        changed.load_state_dict(blank)  # means of features too
        changed.message.time.scale = model.message.time.scale
        after = scores(changed, start, stop, staleness)
        torch.testing.assert_close(after[own - start], before[own - start], rtol=0, atol=1e-12)


def test_scores_do_see_what_is_earlier() -> None:
    events = random_events(seed=4)
    x = features(len(events))
    one, other = made(stream_of(events, x)), made(stream_of(events, x))
    table = other.message.features
    table.x = x.clone()
    table.x[3 * B] += 3
    assert not torch.allclose(scores(one, 3 * B, 4 * B, 1), scores(other, 3 * B, 4 * B, 1), atol=1e-6)


def absorbed(model: MDGNN, stream: EventStream, b: int) -> dict[str, Tensor]:
    model.reset()
    for start in range(0, len(stream), b):
        model.update_state(stream[start : start + b])
    return model.memory.snapshot()


@pytest.mark.parametrize("b", [1, 7, 60])
def test_mailboxes_hold_the_same_however_batches_are_cut(b: int) -> None:
    stream = stream_of(random_events(seed=6))
    model = made(stream)
    one, other = absorbed(model, stream, B), absorbed(model, stream, b)
    for name in ("events", "last_event", "mail_event", "received"):
        assert torch.equal(one[name], other[name])
    assert isinstance(model.updater, MailboxScan)
    with torch.no_grad():  # what is as old as a window is all that the cuts matter to
        model.updater.mail.weight[:, : 2 * DIM] = 0
        model.updater.query.weight[:] = 0
    one, other = absorbed(model, stream, B), absorbed(model, stream, b)
    for name, value in one.items():
        torch.testing.assert_close(other[name], value, rtol=0, atol=1e-12)
    assert one["mail"].any() and one["memory"].any()


def test_who_only_gets_mail_does_not_move() -> None:
    events: list[Event] = [(0, 1, 0.0), (2, 0, 1.0), (2, 3, 2.0), (0, 3, 3.0), (4, 4, 50.0)]
    stream = stream_of([*events, *[(5, 6, 60.0 + i) for i in range(20)]])
    model = made(stream)
    model.update_state(stream)
    memory = model.memory
    assert isinstance(memory, ScanMemory)
    # Node 1 gets mail of its own event, and of 0's later ones. Its last event is its first.
    assert float(memory.last_event[1]) == 0 and int(memory.received[1]) == 3
    assert sorted(memory.mail_event[1].tolist()) == [0, 1, 3]


@pytest.mark.parametrize("passes", [1, 2])
def test_every_weight_learns_where_batches_are_as_many_as_rescanned(passes: int) -> None:
    events = random_events(seed=8, n=600, nodes=40)
    stream = stream_of(events, features(len(events)), nodes=40)
    model = made(stream, passes=passes).train()
    for start in (0, 200):
        model.update_state(stream[start : start + 200])
    config = FitConfig.of({"batch_size": 200, "optimiser": "muon"})
    optimiser = optimiser_for(model, stream, config, 200)
    prepared = prepare_scan(model, stream[400:], stream.dst[:200].unsqueeze(1), 200)
    with torch.random.fork_rng():
        train_on_scan(model, prepared, optimiser)
    for name, weight in model.updater.named_parameters():
        assert weight.grad is not None and bool((weight.grad != 0).any()), name
        if weight.ndim == 2:
            assert bool((weight.grad != 0).any(0).all()), f"a column of {name}"


@pytest.mark.parametrize("askers", [[0, 1, 2, 3, 4, 5], [0, 0, 0, 1, 1, 2]])
def test_a_reading_is_that_of_copies_with_its_gradients(askers: list[int]) -> None:
    draw = torch.Generator().manual_seed(3)
    filled = torch.rand(6, 4, generator=draw) < 0.7
    filled[:, 0] = True
    mail, age = (torch.randint(0, n, (6, 4), generator=draw) for n in (9, AGES))
    reading = Reading(2, mail, torch.where(filled, age, AGES), 9)
    query, table, ages = (
        torch.randn(n, 4, generator=draw, dtype=torch.float64) for n in (max(askers) + 1, 9, AGES)
    )
    given = tuple(each.requires_grad_() for each in (query, table, ages))

    def read(query: Tensor, table: Tensor, ages: Tensor) -> Tensor:
        return reading.read(query, torch.tensor(askers), table, ages)

    assert torch.autograd.gradcheck(read, given) and torch.autograd.gradgradcheck(read, given)
    expected = []
    for entry, asker in enumerate(askers):
        mine = filled[entry]
        for head in (slice(0, 2), slice(2, 4)):
            mails, asked = table[mail[entry, mine], head], query[asker, head] * 2**-0.5
            weight = ((mails + ages[age[entry, mine], head]) @ asked).softmax(0)
            expected.append(weight @ mails)
    torch.testing.assert_close(read(*given), torch.stack(expected).view(6, 4))


@pytest.mark.parametrize("option", [{"gate": False}, {"visibility": "batch"}, {"aggregate": "mean"}])
def test_options_of_mail_in_batches_are_refused(option: dict[str, Any]) -> None:
    with pytest.raises(OptionError, match=next(iter(option))):
        APAN(stream_of(random_events(0)), cell="scan", **option)
