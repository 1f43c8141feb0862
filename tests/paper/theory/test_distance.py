from pathlib import Path
from typing import Any

import pytest
import torch
from matplotlib import image
from torch import Tensor

from pres.errors import OptionError
from pres.models import MDGNN
from pres.paper.theory import candidates
from pres.paper.theory.distance import Distance, distance_to_exact
from pres.sampling import TemporalBatches
from pres.smoothing import PRES, PRESSmoothing
from pres.training.trainer import smoothing_for
from tests.models.conftest import KINDS, make, random_events, stream_of

STREAM = stream_of(random_events(seed=13, n=150))
PART, SIZE = 96, 12  # eight batches, four in each slice
SETTINGS = PRES(beta=0.0, delta="step", gain="fixed", gamma=0.625)  # the same number in float32


def ends(batch: Any) -> list[int]:
    return sorted({*batch.src.tolist(), *batch.dst.tolist()})


def memory_of(model: MDGNN, node: int) -> Tensor:
    return model.updated_memory(torch.tensor([node])).kept[0].detach()


def exact_by_hand(kind: str) -> list[dict[int, tuple[Tensor, Tensor]]]:
    """For each batch and node the memory before and after it, one event at a time."""
    model, found = make(kind, STREAM), []
    for batch in TemporalBatches(STREAM[:PART], SIZE):
        start = {node: memory_of(model, node) for node in ends(batch)}
        for single in TemporalBatches(batch, 1):
            model.update_state(single)
        found.append({node: (start[node], memory_of(model, node)) for node in ends(batch)})
    return found


def filter_of(model: MDGNN) -> PRESSmoothing:
    made = smoothing_for(model, STREAM, SETTINGS)
    assert isinstance(made, PRESSmoothing)
    return made


def weighted_mean(transitions: list[Tensor], discount: float) -> Tensor:
    total, weights = torch.zeros_like(transitions[0]), 0.0
    for age, transition in enumerate(reversed(transitions)):
        total, weights = total + discount**age * transition, weights + discount**age
    return total / weights


def synchronised_by_hand(kind: str, filtered: bool, discount: float = 1.0) -> list[dict[int, Tensor]]:
    """Each batch from a memory made anew, one event at a time; δ̂ is the mean of a list per node."""
    seen: dict[int, list[Tensor]] = {}
    found = []
    for batch in TemporalBatches(STREAM[:PART], SIZE):
        model = make(kind, STREAM)
        for single in TemporalBatches(STREAM[: batch.offset], 1):
            model.update_state(single)
        start = {node: memory_of(model, node) for node in ends(batch)}
        model.update_state(batch)
        after = {node: memory_of(model, node) for node in ends(batch)}
        if filtered:
            for node, measured in after.items():
                if node in seen:
                    predicted = start[node] + weighted_mean(seen[node], discount)
                    after[node] = 0.625 * measured + 0.375 * predicted
            for node, memory in after.items():
                if bool((start[node] != 0).any()):  # a first update is no transition
                    seen.setdefault(node, []).append(memory - start[node])
        found.append(after)
    return found


def carried_by_hand(kind: str, filtered: bool) -> list[dict[int, Tensor]]:
    """As training does, node by node."""
    model, found = make(kind, STREAM), []
    correction = filter_of(model) if filtered else None
    model.smoothing = correction
    for batch in TemporalBatches(STREAM[:PART], SIZE):
        states = [model.updated_memory(torch.tensor([node])) for node in ends(batch)]
        model.update_state(batch)
        for state in states:
            if correction is not None and bool(state.pending) and bool((state.previous != 0).any()):
                correction.trackers.observe(state.nodes, state.kept - state.previous, 0)
        found.append({node: memory_of(model, node) for node in ends(batch)})
    return found


def statistics(
    truth: list[dict[int, tuple[Tensor, Tensor]]], memories: list[dict[int, Tensor]]
) -> tuple[float, float, float, int]:
    ratios, off, moved = [], 0.0, 0.0
    for exact, memory in zip(truth, memories, strict=True):
        for node, (start, end) in exact.items():
            numerator, denominator = float((memory[node] - end).norm()), float((end - start).norm())
            ratios.append(numerator / denominator)
            off, moved = off + numerator, moved + denominator
    ordered = sorted(ratios)
    return sum(ratios) / len(ratios), ordered[(len(ordered) - 1) // 2], off / moved, len(ratios)


@pytest.mark.parametrize("apart", [False, True], ids=["synchronised", "carried"])
@pytest.mark.parametrize("kind", KINDS)
def test_distances_are_those_of_one_event_at_a_time(kind: str, apart: bool) -> None:
    model = make(kind, STREAM)
    found = distance_to_exact(model, STREAM, [SIZE], configurations=[SETTINGS], carried=apart, limit=PART + 5)
    truth = exact_by_hand(kind)
    by_hand = carried_by_hand if apart else synchronised_by_hand
    assert [row.variant for row in found.rows] == ["standard", "chosen filter"]
    for row in found.rows:
        memories = by_hand(kind, row.filter is not None)
        mean, median, overall, nodes = statistics(truth[4:], memories[4:])
        assert (row.batch_size, row.batches, row.nodes) == (SIZE, 4, nodes)
        assert row.mean == pytest.approx(mean, rel=1e-8), row.variant
        assert row.median == pytest.approx(median, rel=1e-8)
        assert row.overall == pytest.approx(overall, rel=1e-8)
        if row.filter is not None:
            assert row.filter == "step, γ 0.625"
            earlier = statistics(truth[:4], memories[:4])[0]
            assert found.tried[0].mean == pytest.approx(earlier, rel=1e-8)
            assert found.tried[0].settings == SETTINGS.model_dump() and found.tried[0].chosen
    assert found.rows[0].mean != pytest.approx(found.rows[1].mean) and found.events == PART + 5


def test_a_node_of_one_event_with_such_a_partner_loses_nothing() -> None:
    pairs = [(i % 6, 6 + i % 6, float(i)) for i in range(60)]
    model = make("jodie", stream_of(pairs))
    found = distance_to_exact(model, stream_of(pairs), [6], configurations=[])
    assert [row.mean for row in found.rows] == pytest.approx([0], abs=1e-12)
    assert found.rows[0].repeated is None and found.tried == ()


def test_the_configuration_is_chosen_on_the_earlier_slice_alone() -> None:
    model, tries = make("jodie", STREAM), candidates(gammas=[0.2, 0.9], discounts=[1.0])
    assert len(tries) == 8
    found = distance_to_exact(model, STREAM, [12, 24], configurations=tries)
    for size in (12, 24):
        tried = [one for one in found.tried if one.batch_size == size]
        assert len(tried) == 8 and len({one.filter for one in tried}) == 8
        best = min(tried, key=lambda one: one.mean)
        assert [one for one in tried if one.chosen] == [best]
        row = next(row for row in found.rows if row.batch_size == size and row.filter is not None)
        assert row.filter == best.filter
        again = PRES(**best.settings)
        alone = distance_to_exact(model, STREAM, [size], configurations=[again])
        assert alone.rows[1] == row and alone.tried[0].mean == best.mean


def test_discounted_filters_are_chosen_apart_from_the_others() -> None:
    model, tries = make("jodie", STREAM), candidates(["step", "rate"], [0.5, 0.9])
    assert [one.discount for one in tries] == [d for d in (1, 0.5, 0.8, 0.9, 0.95) for _ in range(4)]
    found = distance_to_exact(model, STREAM, [12, 24], configurations=tries)
    assert [row.variant for row in found.rows] == ["standard", "chosen filter", "discounted filter"] * 2
    for size in (12, 24):
        tried = [one for one in found.tried if one.batch_size == size]
        assert len({one.filter for one in tried}) == 20
        of_kind = {"chosen filter": tried[:4], "discounted filter": tried[4:]}
        for kind, own in of_kind.items():
            best = min(own, key=lambda one: one.mean)
            assert [one for one in own if one.chosen] == [best]
            row = next(row for row in found.rows if row.batch_size == size and row.variant == kind)
            assert row.filter == best.filter
            assert ("discount" in row.filter) is (kind == "discounted filter")
    only = distance_to_exact(model, STREAM, [12], configurations=tries[4:])
    assert [row.variant for row in only.rows] == ["standard", "discounted filter"]


@pytest.mark.parametrize("discount", [0.5, 0.9])
@pytest.mark.parametrize("kind", KINDS)
def test_a_discounted_filter_weighs_transitions_by_their_age(kind: str, discount: float) -> None:
    settings = PRES(beta=0.0, delta="step", gain="fixed", gamma=0.625, discount=discount)
    found = distance_to_exact(make(kind, STREAM), STREAM, [SIZE], configurations=[settings], limit=PART)
    row, memories = found.rows[1], synchronised_by_hand(kind, True, discount)
    mean, median, overall, nodes = statistics(exact_by_hand(kind)[4:], memories[4:])
    assert row.filter == f"step, γ 0.625, discount {discount}" and row.nodes == nodes
    assert (row.mean, row.median, row.overall) == pytest.approx((mean, median, overall), rel=1e-8)


@pytest.mark.parametrize("apart", [False, True])
def test_the_models_own_filter_is_tried_with_trackers_begun_anew(apart: bool) -> None:
    model = make("jodie", STREAM).train()
    own = PRESSmoothing(PRES(gamma=0.625), STREAM.num_nodes, model.memory.dim).double()
    own.trackers.observe(torch.arange(9), torch.ones(9, model.memory.dim).double(), 0)
    model.smoothing = own
    model.update_state(STREAM[:30])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = distance_to_exact(model, STREAM, [12], configurations=[SETTINGS], carried=apart)
    assert [row.variant for row in found.rows] == ["standard", "own filter", "chosen filter"]
    assert found.rows[1].filter == "as trained"
    assert found.rows[1].mean == pytest.approx(found.rows[2].mean, rel=1e-6)  # σ(θ) is γ, in float32
    assert model.training and model.smoothing is own
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_the_result_is_plain_values_and_a_picture(tmp_path: Path) -> None:
    found: Distance = distance_to_exact(
        make("jodie", STREAM), STREAM, [10, 20, 40], configurations=[SETTINGS], weights="w"
    )
    plain = found.to_dict()
    assert plain["weights"] == "w" and plain["carried"] is False and len(plain["rows"]) == 6
    assert [row["batch_size"] for row in plain["rows"]] == [10, 10, 20, 20, 40, 40]
    pixels = image.imread(found.save_png(tmp_path / "distance.png"))
    assert pixels.shape[1] > 500 and pixels[..., :3].std() > 0.03


def test_what_cannot_be_measured_is_said() -> None:
    model = make("jodie", STREAM)
    for options, says in (
        ({"earlier": 1.0}, "earlier=1.0"),
        ({"configurations": [PRES(filter=False)]}, "no filter to choose"),
        ({"batch_sizes": [60]}, "batch_size=60 does not fit twice"),
        ({"batch_sizes": None}, "batch_size=200 does not fit twice"),
    ):
        with pytest.raises(OptionError, match=says):
            distance_to_exact(model, STREAM, **options)
