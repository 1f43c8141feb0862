import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pres.smoothing import EVENT, PRES, Filter, Trackers

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
    found = trackers.transitions(torch.arange(NODES))
    variance = trackers.variance(torch.arange(NODES))
    for node, rows in seen.items():
        assert int(found.observations[node]) == len(rows) and bool(found.known[node]) == bool(rows)
        expected = np.mean(rows, axis=0) if rows else np.zeros(DIM)
        np.testing.assert_allclose(found.mean[node].numpy(), expected, atol=1e-12)
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
    assert torch.allclose(mixture.transitions(everyone).mean, pooled.transitions(everyone).mean, atol=1e-12)
    assert torch.allclose(mixture.variance(everyone), pooled.variance(everyone), atol=1e-12)


def test_learned_weights_mix_the_components_that_were_seen() -> None:
    trackers = Trackers(3, 1, components=2, learned_weights=True).double()
    assert trackers.weight is not None
    with torch.no_grad():
        trackers.weight.copy_(torch.tensor([0.0, np.log(3.0)]))
    trackers.observe(torch.tensor([0, 0, 1]), torch.tensor([[1.0], [3.0], [5.0]]), 0)
    trackers.observe(torch.tensor([0]), torch.tensor([[10.0]]), 1)
    found = trackers.transitions(torch.arange(3)).mean.detach()
    assert torch.allclose(found, torch.tensor([[0.25 * 2 + 0.75 * 10], [5.0], [0.0]], dtype=torch.float64))


def test_with_anchors_all_others_share_one_tracker() -> None:
    trackers = Trackers(100, 2, components=1, anchors=torch.tensor([7, 3])).double()
    assert trackers.total.shape == (1, 3, 2)  # two anchors and everyone else, whatever the number of nodes
    trackers.observe(torch.tensor([3, 7, 50, 99]), torch.tensor([[1.0, 1], [2, 2], [3, 3], [5, 5]]), 0)
    found = trackers.transitions(torch.tensor([7, 3, 0, 99]))
    assert found.mean[:, 0].tolist() == [2.0, 1.0, 4.0, 4.0]
    assert trackers.tracked_share() == 1.0


def test_deltas_are_those_of_their_definitions() -> None:
    """By hand, with ties (no time between) and with gaps far beyond the usual."""
    previous, measured = torch.tensor([[1.0], [1.0], [1.0]]), torch.tensor([[2.0], [3.0], [5.0]])
    corrected = torch.tensor([[1.5], [2.5], [4.0]])
    elapsed, count = torch.tensor([0.0, 4.0, 1e6]), torch.tensor([1, 2, 3])
    spans = [0.1, 2.0, 10.0]  # in units of 2, no shorter than 0.1 and no longer than 10
    expected = {
        ("rate", "corrected"): [0.5 / 0.1, 1.5 / 2, 3 / 10.0],
        ("rate", "measured"): [1 / 0.1, 2 / 2, 4 / 10.0],
        ("step", "corrected"): [0.5, 1.5, 3.0],
        ("step", "measured"): [1.0, 2.0, 4.0],
        ("residual", "corrected"): [-0.5, -0.5, -1.0],
        ("innovation", "corrected"): [0.5, 1.5, 3.0],  # nothing was predicted yet
    }
    for (delta, observed), rows in expected.items():
        config = PRES(delta=delta, observed=observed)
        made = Filter(config, num_nodes=3, dim=1, unit=2.0).double()
        nodes = torch.arange(3)
        made.observe(nodes, previous, measured, corrected, elapsed, count, EVENT)
        found = made.trackers.transitions(nodes).mean.squeeze(1)
        assert torch.allclose(found, torch.tensor(rows, dtype=torch.float64)), (delta, observed)
        if delta == "innovation":  # the second time the prediction is known: s + Δ δ̂
            made.observe(nodes, previous, measured, corrected, elapsed, count, EVENT)
            second = made.trackers.total[0, :3, 0] - torch.tensor(rows)
            hand = [c - (1 + s * r) for c, s, r in zip([1.5, 2.5, 4.0], spans, rows, strict=True)]
            assert torch.allclose(second, torch.tensor(hand, dtype=torch.float64))
