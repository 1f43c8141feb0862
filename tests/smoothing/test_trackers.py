from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pres.smoothing import PRES, PRESSmoothing, Trackers, Update

NODES, DIM = 5, 3


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[list[int], int, int]]:
    """Batches of observations: nodes (perhaps repeated), component, seed of the values."""
    batch = st.tuples(
        st.lists(st.integers(0, NODES - 1), min_size=1, max_size=6), st.integers(0, 1), st.integers(0, 999)
    )
    return draw(st.lists(batch, max_size=8))


def values(nodes: list[int], seed: int) -> torch.Tensor:
    return torch.randn(len(nodes), DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


@given(histories())
@settings(max_examples=60, deadline=None)
def test_trackers_are_mean_and_variance_of_the_history(history: list[tuple[list[int], int, int]]) -> None:
    trackers = Trackers(NODES, DIM, components=2).double()
    seen: dict[int, list[np.ndarray]] = {node: [] for node in range(NODES)}
    for nodes, component, seed in history:
        delta = values(nodes, seed)
        trackers.observe(torch.tensor(nodes), delta, component)
        for node, row in zip(nodes, delta.numpy(), strict=True):
            seen[node].append(row)
    mean, observations = trackers.mean(torch.arange(NODES))
    variance = trackers.variance(torch.arange(NODES))
    for node, rows in seen.items():
        assert int(observations[node]) == len(rows)
        expected = np.mean(rows, axis=0) if rows else np.zeros(DIM)
        np.testing.assert_allclose(mean[node].numpy(), expected, atol=1e-12)
        np.testing.assert_allclose(
            variance[node].numpy(), np.var(rows, axis=0) if rows else np.zeros(DIM), atol=1e-12
        )
    assert trackers.tracked_share() == np.mean([bool(rows) for rows in seen.values()])


@given(histories())
@settings(max_examples=30, deadline=None)
def test_weights_by_counts_are_one_pooled_tracker(history: list[tuple[list[int], int, int]]) -> None:
    mixture, pooled = Trackers(NODES, DIM, components=2).double(), Trackers(NODES, DIM, components=1).double()
    for nodes, component, seed in history:
        mixture.observe(torch.tensor(nodes), values(nodes, seed), component)
        pooled.observe(torch.tensor(nodes), values(nodes, seed), 0)
    everyone = torch.arange(NODES)
    assert torch.allclose(mixture.mean(everyone)[0], pooled.mean(everyone)[0], atol=1e-12)
    assert torch.allclose(mixture.variance(everyone), pooled.variance(everyone), atol=1e-12)


def test_with_anchors_all_others_share_one_tracker() -> None:
    trackers = Trackers(100, 2, components=1, anchors=torch.tensor([7, 3])).double()
    assert trackers.total.shape == (1, 3, 2)  # two anchors and everyone else, whatever the number of nodes
    trackers.observe(torch.tensor([3, 7, 50, 99]), torch.tensor([[1.0, 1], [2, 2], [3, 3], [5, 5]]), 0)
    found, _ = trackers.mean(torch.tensor([7, 3, 0, 99]))
    assert found[:, 0].tolist() == [2.0, 1.0, 4.0, 4.0]
    assert trackers.tracked_share() == 1.0


class Remembered:
    """Every transition with what it counts for: a plain list for each tracker and component."""

    def __init__(self, discount: float, anchors: list[int] | None) -> None:
        self.discount, self.anchors = discount, anchors
        self.seen: dict[tuple[str, int], list[tuple[float, list[float]]]] = {}

    def tracker(self, node: int) -> str:
        """The node's own tracker, or the one that all but the anchors share."""
        return str(node) if self.anchors is None or node in self.anchors else "others"

    def observe(self, nodes: list[int], rows: list[list[float]], component: int) -> None:
        for name in {self.tracker(node) for node in nodes}:  # once, however many of its nodes are here
            for each in (0, 1):  # whatever kind of transition comes, all before count for less
                old = self.seen.get((name, each), [])
                self.seen[name, each] = [(self.discount * weight, row) for weight, row in old]
        for node, row in zip(nodes, rows, strict=True):
            self.seen[self.tracker(node), component].append((1.0, row))

    def of(self, node: int, *components: int) -> list[tuple[float, list[float]]]:
        return [pair for c in components for pair in self.seen.get((self.tracker(node), c), [])]


def weighted(pairs: list[tuple[float, list[float]]]) -> tuple[float, list[float], list[float]]:
    """The sum of the weights, and the weighted mean and variance of each coordinate."""
    total = sum(weight for weight, _ in pairs)
    if not pairs:
        return 0.0, [0.0] * DIM, [0.0] * DIM
    mean = [sum(weight * row[i] for weight, row in pairs) / total for i in range(DIM)]
    spread = [sum(w * (row[i] - mean[i]) ** 2 for w, row in pairs) / total for i in range(DIM)]
    return total, mean, spread


@pytest.mark.parametrize("anchors", [None, [3, 1]], ids=["all", "anchors"])
@pytest.mark.parametrize("discount", [0.5, 0.9, 1.0])
@given(history=histories())
@settings(max_examples=40, deadline=None)
def test_discounted_trackers_are_weighted_lists(
    history: list[tuple[list[int], int, int]], discount: float, anchors: list[int] | None
) -> None:
    given_anchors = None if anchors is None else torch.tensor(anchors)
    trackers = Trackers(NODES, DIM, components=2, anchors=given_anchors, discount=discount).double()
    remembered = Remembered(discount, anchors)
    for nodes, component, seed in history:
        delta = values(nodes, seed)
        trackers.observe(torch.tensor(nodes), delta, component)
        remembered.observe(nodes, delta.tolist(), component)
    found, observations = trackers.mean(torch.arange(NODES))
    variance = trackers.variance(torch.arange(NODES))
    for node in range(NODES):
        total, mean, spread = weighted(remembered.of(node, 0, 1))
        assert float(observations[node]) == pytest.approx(total, abs=1e-12)
        assert found[node].tolist() == pytest.approx(mean, abs=1e-12)
        assert variance[node].tolist() == pytest.approx(spread, abs=1e-12)


def test_a_discount_ends_the_telescoping_of_steps() -> None:
    """Steps of 1 there and back again sum to nothing; discounted, the latest counts most."""
    plain, discounted = (Trackers(1, 1, components=1, discount=discount) for discount in (1.0, 0.5))
    for step in [1.0, -1.0] * 4:
        for trackers in (plain, discounted):
            trackers.observe(torch.tensor([0]), torch.tensor([[step]]), 0)
    node = torch.tensor([0])
    assert float(plain.mean(node)[0]) == 0
    weights = [0.5**age for age in range(8)]
    latest_first = [-1.0, 1.0] * 4
    expected = sum(w * d for w, d in zip(weights, latest_first, strict=True)) / sum(weights)
    assert float(discounted.mean(node)[0]) == pytest.approx(expected) and expected < -0.3


def test_deltas_are_those_of_their_definitions() -> None:
    """By hand, with ties (no time between) and with gaps far beyond the usual."""
    previous, measured = torch.tensor([[1.0], [1.0], [1.0]]), torch.tensor([[2.0], [3.0], [5.0]])
    corrected = torch.tensor([[1.5], [2.5], [4.0]])
    elapsed, nodes = torch.tensor([0.0, 4.0, 1e6]), torch.arange(3)
    spans = [0.1, 2.0, 10.0]  # in units of 2, no shorter than 0.1 and no longer than 10
    expected: dict[Any, list[float]] = {
        "rate": [0.5 / 0.1, 1.5 / 2, 3 / 10.0],
        "step": [0.5, 1.5, 3.0],
        "residual": [-0.5, -0.5, -1.0],
        "innovation": [0.5, 1.5, 3.0],  # nothing was predicted yet
    }
    for delta, rows in expected.items():
        made = PRESSmoothing(PRES(delta=delta), num_nodes=3, dim=1, unit=2.0).double()
        update = Update(nodes, previous, measured, corrected, elapsed, torch.ones_like(nodes))
        made.observe(update, {"event": nodes})
        found = made.trackers.mean(nodes)[0].squeeze(1)
        assert torch.allclose(found, torch.tensor(rows, dtype=torch.float64)), delta
        if delta == "innovation":  # the second time the prediction is known: s + Δ δ̂
            made.observe(update._replace(mails=update.mails + 1), {"event": nodes})
            second = made.trackers.total[0, :3, 0] - torch.tensor(rows)
            hand = [c - (1 + s * r) for c, s, r in zip([1.5, 2.5, 4.0], spans, rows, strict=True)]
            assert torch.allclose(second, torch.tensor(hand, dtype=torch.float64))
