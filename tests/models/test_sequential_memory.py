from typing import Any

import pytest
import torch

from pres.errors import OptionError
from pres.evaluation.scorer import BatchReading
from pres.models import MDGNN
from pres.models.incidences import BatchIncidences, find_incidences
from pres.models.scratch import scratch_of
from pres.models.sequential import sequential_memory
from pres.sampling import TemporalBatches
from pres.smoothing import PRES
from tests.models.conftest import KINDS, make, random_events, stream_of

VISIBILITIES = ("fresh", "batch")


def one_at_a_time(model: MDGNN, stream: Any, stop: int) -> None:
    """The slow way: every event is a batch of its own."""
    for batch in TemporalBatches(stream[:stop], 1):
        model.update_state(batch)


def assert_same_state(one: MDGNN, two: MDGNN) -> None:
    """What comes next depends on the memory with its mail taken in, and on the mailboxes as sets."""
    nodes = torch.arange(len(one.mailboxes.last_update))
    a, b = one.updated_memory(nodes), two.updated_memory(nodes)
    assert torch.allclose(a.memory, b.memory, atol=1e-10)
    assert torch.equal(a.last_update, b.last_update) and torch.equal(a.pending, b.pending)
    for name in ("memory", "last_update", "last_event"):
        assert torch.allclose(one.memory.get_buffer(name), two.memory.get_buffer(name), atol=1e-10), name
    mailed = nodes[a.pending]
    mails, others = one.mailboxes.read_mail(mailed), two.mailboxes.read_mail(mailed)
    assert torch.equal(mails.slots.starts, others.slots.starts)
    # by node, and then by event
    events, other_events = (m.slots.query * (int(m.event.max()) + 1) + m.event for m in (mails, others))
    assert torch.equal(events.sort().values, other_events.sort().values)


@pytest.mark.parametrize("visibility", VISIBILITIES)
@pytest.mark.parametrize("b", [1, 7, 40, 200])
@pytest.mark.parametrize("kind", KINDS)
def test_exact_memory_is_that_of_one_event_at_a_time(kind: str, b: int, visibility: str) -> None:
    events = random_events(seed=3, n=150)
    stream = stream_of(events)
    options: dict[str, Any] = {} if kind == "jodie" else {"visibility": visibility}
    fast, slow = make(kind, stream, **options), make(kind, stream, **options)
    done = 0
    for batch in TemporalBatches(stream, b):
        sequential_memory(fast, batch).commit()
        for single in TemporalBatches(batch, 1):
            slow.update_state(single)
        done += len(batch)
        assert_same_state(fast, slow)
    assert done == len(stream) and float(fast.memory.memory.std()) > 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_batches_of_one_event_are_corrected_as_the_standard_update_is(kind: str) -> None:
    stream = stream_of(random_events(seed=4, n=150))
    fast, slow, plain = (make(kind, stream) for _ in range(3))
    for model in (fast, slow):
        model.smoothing = PRES(components=1).build(model.memory)
    for single in TemporalBatches(stream[:60], 1):
        BatchReading(fast, single).take_in(sequential=True, follow=True)
        BatchReading(slow, single).take_in(follow=True)
        plain.update_state(single)
    assert_same_state(fast, slow)
    assert not torch.allclose(fast.memory.memory, plain.memory.memory, atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_memory_before_each_event_is_what_one_event_at_a_time_measures(kind: str) -> None:
    stream = stream_of(random_events(seed=5, n=150))
    fast, slow = make(kind, stream), make(kind, stream)
    sequential_memory(fast, stream[:30]).commit()
    one_at_a_time(slow, stream, 30)
    batch = stream[30:90]
    found = sequential_memory(fast, batch)
    for e, single in enumerate(TemporalBatches(batch, 1)):
        for end, half in ((single.src, found.incidences.of_src[e]), (single.dst, found.incidences.of_dst[e])):
            expected = slow.updated_memory(end)
            assert torch.allclose(found.memory[half], expected.memory[0], atol=1e-10)
            assert found.last_update[half] == expected.last_update[0]
        slow.update_state(single)


@pytest.mark.parametrize("kind", ["tgn", "jodie"])
def test_levels_are_those_of_events_where_mail_goes_to_endpoints(kind: str) -> None:
    stream = stream_of(random_events(seed=7, n=150))
    incidences = find_incidences(make(kind, stream), stream)
    level = torch.zeros(len(incidences.node), dtype=torch.int64)
    level[incidences.moved] = incidences.levels()
    expected = [0] * len(incidences.node)
    last: dict[int, int] = {}  # the node's incidence before
    incidences_of = list(zip(incidences.of_src.tolist(), incidences.of_dst.tolist(), strict=True))
    for e, (src, dst) in enumerate(zip(stream.src.tolist(), stream.dst.tolist(), strict=True)):
        for node, half in {src: incidences_of[e][0], dst: incidences_of[e][1]}.items():
            if node in last:
                before = int(incidences.event[last[node]])
                expected[half] = 1 + max(expected[h] for h in incidences_of[before])
        for node, half in {src: incidences_of[e][0], dst: incidences_of[e][1]}.items():
            last[node] = half
    assert level.tolist() == expected


def test_levels_are_found_once_for_a_model_and_its_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = stream_of(random_events(seed=7, n=150))
    model, levels, found = make("jodie", stream), BatchIncidences.levels, []

    def counted(incidences: BatchIncidences) -> torch.Tensor:
        found.append(incidences)
        return levels(incidences)

    monkeypatch.setattr(BatchIncidences, "levels", counted)
    for _ in range(2):
        for replayed in (scratch_of(model), model):
            replayed.reset()
            for batch in TemporalBatches(stream, 50):
                sequential_memory(replayed, batch).commit()
    assert len(found) == 3


def test_what_has_no_order_of_single_events_is_refused() -> None:
    stream = stream_of(random_events(seed=8, n=150))
    with pytest.raises(OptionError, match="needs a mailbox of several slots"):
        sequential_memory(make("apan", stream, aggregate="mean"), stream[:10])


@pytest.mark.parametrize("kind", KINDS)
def test_the_last_update_is_left_to_the_next_loss(kind: str) -> None:
    stream = stream_of(random_events(seed=9, n=150))
    model = make(kind, stream)
    sequential_memory(model, stream[:50]).commit()
    subgraph = model.sample(stream[50:60], stream[50:60].dst.unsqueeze(1))
    model.score(subgraph, model.updated_memory(subgraph.nodes))[0].sum().backward()  # type: ignore[no-untyped-call]
    for name, parameter in model.updater.named_parameters():
        assert parameter.grad is not None and float(parameter.grad.abs().sum()) > 0, name
