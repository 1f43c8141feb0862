from pathlib import Path
from typing import Any, Literal

import pytest
import torch
from matplotlib import image
from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.models import MDGNN
from pres.models.sequential import sequential_memory
from pres.paper.theory.coherence import Coherence, memory_coherence
from pres.paper.theory.event_loss import coherence_of
from pres.sampling import NegativeSampler, TemporalBatches
from tests.models.conftest import KINDS, make, random_events, stream_of
from tests.paper.theory.test_event_loss import STREAM, slow_loss

Fresh = Literal["before", "after"]
Respect = Literal["memory", "parameters"]


def pending_of(batch: EventStream, e: int) -> list[int]:
    ends, t = [{int(s), int(d)} for s, d in zip(batch.src, batch.dst, strict=True)], batch.t.tolist()
    return [other for other in range(len(batch)) if t[other] < t[e] and ends[other] & ends[e]]


def gradient(model: MDGNN, loss: Tensor, memories: list[Tensor], wrt: Respect) -> Tensor:
    """The whole gradient, by autograd, of one pair alone."""
    by = memories if wrt == "memory" else [p for p in model.parameters() if p.requires_grad]
    distinct = list({id(one): one for one in by}.values())
    found = torch.autograd.grad(loss, distinct, allow_unused=True)
    return torch.cat(
        [
            torch.zeros_like(one).flatten() if g is None else g.flatten()
            for one, g in zip(distinct, found, strict=True)
        ]
    )


def coherence_by_hand(
    model: MDGNN, batch: EventStream, negatives: Tensor, fresh: Fresh, wrt: Respect
) -> dict[int, tuple[float, float]]:
    """Take in one event at a time, write down every memory, and hold every pair of gradients by itself."""
    slow = make(type(model).__name__.lower(), STREAM)
    everyone = torch.arange(STREAM.num_nodes)
    for single in TemporalBatches(STREAM[: batch.offset], 1):
        slow.update_state(single)
    before, after = [], []
    for single in TemporalBatches(batch, 1):
        before.append(slow.updated_memory(everyone).memory.detach())
        slow.update_state(single)
        after.append(slow.updated_memory(everyone).memory.detach())

    def at(e: int, memory: Tensor) -> Tensor:
        src, dst = int(batch.src[e]), int(batch.dst[e])
        own = [memory[src].clone().requires_grad_()]
        own.append(own[0] if src == dst else memory[dst].clone().requires_grad_())
        return gradient(model, slow_loss(model, batch, negatives, e, *own), own, wrt)

    found = {}
    for e in range(len(batch)):
        pending = pending_of(batch, e)
        if pending:
            target = at(e, before[e] if fresh == "before" else after[e])
            inner = [float(at(e, after[other]) @ target) for other in pending]
            found[e] = min(inner), float(target @ target)
    return found


@pytest.mark.parametrize("wrt", ["memory", "parameters"])
@pytest.mark.parametrize("fresh", ["before", "after"])
@pytest.mark.parametrize("kind", KINDS)
def test_coherence_is_that_of_every_pair_held_by_itself(kind: str, fresh: Fresh, wrt: Respect) -> None:
    model = make(kind, STREAM)
    sequential_memory(model, STREAM[:40]).commit()
    batch = STREAM[40:56]
    negatives = (batch.dst.unsqueeze(1) + 4) % 12
    expected = coherence_by_hand(model, batch, negatives, fresh, wrt)
    assert 8 < len(expected) < len(batch)
    chosen = torch.tensor(sorted(expected))
    inner, squares = coherence_of(model, batch, negatives, chosen, fresh, wrt)
    assert inner.tolist() == pytest.approx([expected[int(e)][0] for e in chosen], rel=1e-8, abs=1e-12)
    assert squares.tolist() == pytest.approx([expected[int(e)][1] for e in chosen], rel=1e-8)


def test_rows_hold_the_quantiles_of_all_batches() -> None:
    model = make("jodie", STREAM)
    found = memory_coherence(model, STREAM, [12, 30], samples=1_000, limit=66, seed=2)
    sampler = NegativeSampler(STREAM)
    for row in found.rows:
        mu, sizes, events = [], [], len(STREAM[:66]) // row.batch_size * row.batch_size
        exact = make("jodie", STREAM)
        for batch in TemporalBatches(STREAM[:events], row.batch_size):
            negatives = sampler.sample(batch, seed=2).nodes
            pairs = coherence_by_hand(exact, batch, negatives, "after", "memory")
            mu += [inner / square for inner, square in pairs.values()]
            sizes += [len(pending_of(batch, e)) for e in pairs]
            sequential_memory(exact, batch).commit()
        values = torch.tensor(mu, dtype=torch.float64)
        assert (row.batches, row.sampled, row.near_zero) == (events // row.batch_size, len(mu), 0)
        assert row.with_pending == pytest.approx(len(mu) / events)
        assert row.mean_pending == pytest.approx(sum(sizes) / len(sizes))
        assert row.minimum == pytest.approx(min(mu), rel=1e-8)
        assert row.not_positive == pytest.approx(sum(one <= 0 for one in mu) / len(mu))
        assert row.quantiles is not None
        for share, value in row.quantiles.items():
            assert value == pytest.approx(float(values.quantile(float(share))), rel=1e-8)
    assert found.minimum == min(row.minimum for row in found.rows if row.minimum is not None)


def test_before_the_event_the_last_pending_memory_is_the_fresh_one() -> None:
    untied = [(src, dst, float(t)) for t, (src, dst, _) in enumerate(random_events(seed=4, n=80))]
    stream = stream_of(untied)
    model = make("tgn", stream)
    for wrt in ("memory", "parameters"):
        found = memory_coherence(model, stream, [14], fresh="before", wrt=wrt)
        assert found.rows[0].quantiles is not None and found.rows[0].quantiles["0.95"] <= 1 + 1e-9
    alone = memory_coherence(model, stream, [2], fresh="before")  # a pending set of one, if any
    assert alone.rows[0].minimum == pytest.approx(1) == alone.rows[0].quantiles["0.95"]  # type: ignore[index]


def test_a_fresh_gradient_of_nothing_is_counted_apart() -> None:
    model = make("jodie", STREAM)
    with torch.no_grad():
        model.link.out.weight.zero_()  # no score depends on any memory
    row = memory_coherence(model, STREAM, [20], samples=30).rows[0]
    assert (row.sampled, row.near_zero) == (30, 30)
    assert row.minimum is None and row.quantiles is None and row.not_positive is None
    lively = memory_coherence(make("jodie", STREAM), STREAM, [20], samples=30, near_zero=0.5).rows[0]
    assert 0 < lively.near_zero < 30 and lively.minimum is not None
    single = memory_coherence(model, STREAM, [1])
    assert single.rows[0].sampled == 0 and single.rows[0].mean_pending is None and single.minimum is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_model_is_left_as_it_was_and_a_seed_gives_the_same(kind: str) -> None:
    model = make(kind, STREAM).train()
    model.update_state(STREAM[:30])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    given: dict[str, Any] = {"samples": 10, "wrt": "parameters"}
    found = memory_coherence(model, STREAM, [20], seed=1, **given)
    assert model.training and all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert memory_coherence(model, STREAM, [20], seed=1, **given) == found
    assert memory_coherence(model, STREAM, [20], seed=2, **given) != found


def test_the_result_is_plain_values_and_a_picture(tmp_path: Path) -> None:
    model = make("jodie", STREAM)
    found = memory_coherence(model, STREAM, [10, 20, 40], samples=20, weights="random")
    plain = found.to_dict()
    assert [row["batch_size"] for row in plain["rows"]] == [10, 20, 40]
    assert (plain["fresh"], plain["wrt"], plain["weights"]) == ("after", "memory", "random")
    assert plain["minimum"] == found.minimum
    nothing: Coherence = memory_coherence(model, STREAM, [1])
    for i, drawn in enumerate((found, nothing)):
        pixels = image.imread(drawn.save_png(tmp_path / f"{i}.png"))
        assert pixels.shape[1] > 1000 and pixels[..., :3].std() > 0.03


def test_what_cannot_be_measured_is_said() -> None:
    model = make("jodie", stream_of(random_events(seed=12, n=120)))
    for options, says in (
        ({"samples": 0}, "samples=0: sample at least one"),
        ({"near_zero": 1.5}, "near_zero=1.5"),
        ({"fresh": "now"}, "fresh"),
        ({"wrt": "weights"}, "wrt"),
        ({"batch_sizes": [500]}, "batch_size=500 does not fit"),
        ({"batch_sizes": []}, "at least one batch size"),
    ):
        with pytest.raises(OptionError, match=says):
            memory_coherence(model, STREAM, **options)
