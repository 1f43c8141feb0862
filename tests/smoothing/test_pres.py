from typing import Any

import pytest
import torch

from pres.errors import OptionError
from pres.nn import ScanMemory
from pres.smoothing import PRES, PRESSmoothing, Role, Update

NODES = torch.arange(4)
PREVIOUS = torch.tensor([[1.0, 0.0], [0.5, 0.5], [2.0, 1.0], [0.0, 0.0]]).double()
MEASURED = torch.tensor([[2.0, 1.0], [1.5, 0.5], [2.5, 3.0], [1.0, 1.0]]).double()
ELAPSED = torch.tensor([1.0, 2.0, 0.0, 50.0]).double()
FIRST, SECOND = torch.full((4,), 1), torch.full((4,), 2)  # mails


def some(update: Update, nodes: slice) -> Update:
    return Update(*(values[nodes] for values in update))


def observe(made: PRESSmoothing, update: Update, role: Role = "event") -> None:
    made.observe(update, {role: torch.arange(len(update.nodes))})


def seen(settings: PRES) -> PRESSmoothing:
    """A filter that has seen one transition of each of the first three nodes."""
    made = PRESSmoothing(settings, num_nodes=4, dim=2).double()
    observe(made, some(Update(NODES, PREVIOUS, MEASURED, MEASURED, ELAPSED, FIRST), slice(0, 3)))
    return made


def correct(made: PRESSmoothing, nodes: slice = slice(0, 4)) -> torch.Tensor:
    return made.correct(*(values[nodes] for values in (NODES, PREVIOUS, MEASURED, ELAPSED)))


@pytest.mark.parametrize("delta", ["rate", "step"])
def test_prediction_and_correction_are_equations_6_and_7(delta: Any) -> None:
    found = correct(seen(PRES(delta=delta, gain="fixed", gamma=0.7)))
    for i in range(3):
        span = 1.0 if delta == "step" else min(max(float(ELAPSED[i]), 0.1), 10.0)
        mean = (MEASURED[i] - PREVIOUS[i]) / span
        hand = 0.7 * MEASURED[i] + 0.3 * (PREVIOUS[i] + span * mean)
        assert torch.allclose(found[i], hand, atol=1e-6)
    assert torch.equal(found[3], MEASURED[3])  # nothing is known of the last node


def test_the_gain_is_learned_and_stays_between_0_and_1() -> None:
    made = seen(PRES())
    observe(made, Update(NODES, PREVIOUS, MEASURED, MEASURED + 1, ELAPSED, SECOND), "negative")
    optimiser = torch.optim.Adam(made.parameters(), lr=0.5)
    before = made.theta.detach().clone()
    for _ in range(50):
        loss = (correct(made) - 3 * PREVIOUS).square().sum()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        assert 0 < float(made.stats()["gain"]) < 1
    assert not torch.equal(before, made.theta)


def test_stats_are_about_nodes_with_a_prediction() -> None:
    made = seen(PRES())
    found = []
    for nodes in (slice(0, 3), slice(0, 4)):  # of the last node nothing was seen
        correct(made, nodes)
        found.append({name: float(value) for name, value in made.stats().items()})
    assert found[0] == pytest.approx(found[1])
    assert found[0]["gain"] == pytest.approx(0.8)
    lengths = (MEASURED - PREVIOUS)[:3].norm(dim=1)
    assert found[0]["delta"] == pytest.approx(float(lengths.mean()))
    with torch.no_grad():
        correct(made, slice(0, 1))  # as in evaluation: nothing of it is told
    assert {name: float(value) for name, value in made.stats().items()} == found[1]
    correct(made, slice(3, 4))
    assert float(made.stats()["delta"]) == 0 < float(made.stats()["gain"]) < 1


def test_the_first_update_of_a_node_is_no_transition() -> None:
    made = PRESSmoothing(PRES(), num_nodes=2, dim=1).double()
    nodes, previous, after = torch.tensor([0, 1]), torch.tensor([[0.0], [1.0]]), torch.tensor([[5.0], [2.0]])
    observe(made, Update(nodes, previous, after, after, torch.ones(2), torch.tensor([1, 1])))
    mean, observations = made.trackers.mean(nodes)
    assert observations.tolist() == [0, 1] and mean.tolist() == [[0.0], [1.0]]


def test_an_update_is_recorded_once_whatever_the_roles_of_its_node() -> None:
    made = PRESSmoothing(PRES(), num_nodes=4, dim=2).double()
    update = Update(NODES, PREVIOUS, MEASURED, MEASURED, ELAPSED, FIRST)
    made.observe(update, {"event": torch.tensor([0, 1]), "negative": torch.tensor([1, 2])})
    made.observe(update, {"event": torch.tensor([2]), "negative": torch.tensor([0, 1, 2])})
    assert made.trackers.n[:, :4].tolist() == [[1, 1, 0, 0], [0, 0, 1, 0]]
    made.observe(update._replace(mails=SECOND), {"event": torch.tensor([2])})
    assert made.trackers.n[:, :4].tolist() == [[1, 1, 1, 0], [0, 0, 1, 0]]


def test_gamma_of_1_changes_no_bit() -> None:
    assert torch.equal(correct(seen(PRES(gain="fixed", gamma=1.0))), MEASURED)


def test_without_a_filter_memory_is_as_measured_and_nothing_is_kept() -> None:
    made = PRES(filter=False).build(ScanMemory(4, 2, torch.tensor(0)))
    assert made.correct(NODES, PREVIOUS, MEASURED, ELAPSED) is MEASURED
    assert not made.state_dict() and not made.observes and made.epoch_stats() == {}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"betta": 1}, "PRES has no option 'betta'. Did you mean 'beta'?"),
        ({"beta": -1.0}, "beta=-1.0"),
        ({"gamma": 1.0}, "gamma=1 is where a learned gain cannot start"),
        ({"shortest_gap": 11.0}, "shortest_gap=11.0 exceeds longest_gap"),
        ({"anchors": 0}, "anchors=0"),
        ({"gain": "kalman"}, "gain='kalman'"),
        ({"filter": False, "beta": 0.0}, "leave nothing of PRES"),
    ],
)
def test_settings_that_cannot_be_are_one_clear_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as error:
        PRES(**options)
    assert message in str(error.value) and "\n" not in str(error.value)
