from typing import Any

import pytest
import torch

from pres.errors import OptionError
from pres.smoothing import EVENT, NEGATIVE, PRES, Filter

NODES = torch.arange(4)
PREVIOUS = torch.tensor([[1.0, 0.0], [0.5, 0.5], [2.0, 1.0], [0.0, 0.0]]).double()
MEASURED = torch.tensor([[2.0, 1.0], [1.5, 0.5], [2.5, 3.0], [1.0, 1.0]]).double()
ELAPSED = torch.tensor([1.0, 2.0, 0.0, 50.0]).double()
COUNT = torch.tensor([1, 3, 2, 1])


def seen(config: PRES, known: int = 3) -> Filter:
    """A filter that has seen one transition of each of the first nodes."""
    made = Filter(config, num_nodes=4, dim=2).double()
    some = slice(0, known)
    made.observe(NODES[some], PREVIOUS[some], MEASURED[some], MEASURED[some], ELAPSED[some], COUNT[some])
    return made


@pytest.mark.parametrize("delta", ["rate", "step"])
def test_prediction_and_correction_are_equations_6_and_7(delta: str) -> None:
    config = PRES(delta=delta, gain="fixed", gamma=0.7)
    made = seen(config)
    found = made(NODES, PREVIOUS, MEASURED, ELAPSED, COUNT)
    for i in range(3):
        span = 1.0 if delta == "step" else min(max(float(ELAPSED[i]), 0.1), 10.0)
        mean = (MEASURED[i] - PREVIOUS[i]) / span
        hand = 0.7 * MEASURED[i] + 0.3 * (PREVIOUS[i] + span * mean)
        assert torch.allclose(found[i], hand, atol=1e-6)
    assert torch.equal(found[3], MEASURED[3])  # nothing is known of the last node


@pytest.mark.parametrize(
    "options", [{}, {"per_dimension": True}, {"gain": "pending"}, {"mixture": "learned"}]
)
def test_what_is_learned_moves_and_stays_between_0_and_1(options: dict[str, Any]) -> None:
    made = seen(PRES(**options))
    made.observe(NODES[:3], PREVIOUS[:3], MEASURED[:3], MEASURED[:3] + 1, ELAPSED[:3], COUNT[:3], NEGATIVE)
    optimiser = torch.optim.Adam(made.parameters(), lr=0.5)
    before = [parameter.detach().clone() for parameter in made.parameters()]
    for _ in range(50):
        loss = (made(NODES, PREVIOUS, MEASURED, ELAPSED, COUNT, COUNT) - 3 * PREVIOUS).square().sum()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        gain = made.latest()["gain"]
        assert 0 < float(gain) < 1
    for old, parameter in zip(before, made.parameters(), strict=True):
        assert not torch.equal(old, parameter)


def test_a_pending_gain_trusts_a_measurement_less_the_more_updates_it_lost() -> None:
    made = seen(PRES(gain="pending"))
    gains = []
    for own, partner in ((1, 1), (4, 1), (4, 9)):
        counts = torch.tensor([own] * 4), torch.tensor([partner] * 4)
        made(NODES, PREVIOUS, MEASURED, ELAPSED, *counts)
        gains.append(float(made.latest()["gain"]))
    assert 1 > gains[0] > gains[1] > gains[2] > 0


@pytest.mark.parametrize("gain", ["learned", "pending"])
def test_what_is_told_of_a_correction_is_about_nodes_with_a_prediction(gain: str) -> None:
    made = seen(PRES(gain=gain))
    told = []
    for nodes in (slice(0, 3), slice(0, 4)):  # of the last node nothing was seen
        given = (tensor[nodes] for tensor in (NODES, PREVIOUS, MEASURED, ELAPSED, COUNT))
        made(*given)
        told.append({name: float(value) for name, value in made.latest().items()})
    assert told[0] == pytest.approx(told[1]) and told[0]["delta"] > 0
    made(*(tensor[3:] for tensor in (NODES, PREVIOUS, MEASURED, ELAPSED, COUNT)))
    alone = made.latest()
    assert 0 < float(alone["gain"]) < 1 and float(alone["delta"]) == 0


@pytest.mark.parametrize("options", [{"gain": "learned"}, {"gain": "pending"}, {"per_dimension": True}])
def test_what_is_told_is_the_mean_over_the_nodes_of_all_corrections_since_it_was_asked(
    options: dict[str, Any],
) -> None:
    made = seen(PRES(**options))

    def correct(some: slice) -> None:
        made(*(tensor[some] for tensor in (NODES, PREVIOUS, MEASURED, ELAPSED, COUNT)))

    def told() -> dict[str, float]:
        return {name: float(value) for name, value in made.latest().items()}

    correct(slice(0, 1))
    first = told()
    correct(slice(1, 3))
    others = told()
    assert first["delta"] != others["delta"]
    for some in (slice(0, 1), slice(1, 3), slice(3, 4)):  # of the last node nothing was seen
        correct(some)
    with torch.no_grad():
        correct(slice(0, 1))  # as in evaluation: nothing of it is told
    expected = {name: (first[name] + 2 * others[name]) / 3 for name in ("gain", "delta")}
    assert told() == pytest.approx(expected)
    assert told() == pytest.approx(expected)  # nothing new


def test_a_pending_step_is_added_once_per_event() -> None:
    made = Filter(PRES(gain="pending", observed="measured"), num_nodes=1, dim=1).double()
    one, two = torch.tensor([[1.0]]).double(), torch.tensor([[2.0]]).double()
    node = torch.tensor([0])
    made.observe(node, one, two, two, torch.tensor([1.0]), torch.tensor([5]), EVENT)
    found = made(node, one, one, torch.tensor([1.0]), torch.tensor([3]))
    gain = float(made.latest()["gain"])
    assert float(found.detach()) == pytest.approx(gain * 1.0 + (1 - gain) * (1.0 + 3.0))


def test_the_first_update_of_a_node_is_no_transition() -> None:
    made = Filter(PRES(), num_nodes=2, dim=1).double()
    nodes, previous, after = torch.tensor([0, 1]), torch.tensor([[0.0], [1.0]]), torch.tensor([[5.0], [2.0]])
    made.observe(nodes, previous, after, after, torch.ones(2), torch.ones(2, dtype=torch.int64))
    assert made.trackers.transitions(nodes).observations.tolist() == [0, 1]
    assert made.trackers.transitions(nodes).mean.tolist() == [[0.0], [1.0]]


def test_gamma_of_1_changes_no_bit() -> None:
    made = seen(PRES(gain="fixed", gamma=1.0))
    assert torch.equal(made(NODES, PREVIOUS, MEASURED, ELAPSED, COUNT), MEASURED)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"betta": 1}, "PRES has no option 'betta'. Did you mean 'beta'?"),
        ({"beta": -1.0}, "beta=-1.0"),
        ({"gamma": 1.0}, "gamma=1 is where a learned gain cannot start"),
        ({"delta": "residual", "observed": "measured"}, "delta='residual'"),
        ({"shortest_gap": 11.0}, "shortest_gap=11.0 exceeds longest_gap"),
        ({"anchors": 0}, "anchors=0"),
        ({"gain": "kalman"}, "gain='kalman'"),
        ({"filter": False, "beta": 0.0}, "leave nothing of PRES"),
        ({"gain": "fixed", "per_dimension": True}, "per_dimension=True needs a gain"),
        ({"mixture": "learned", "components": 1}, "use components=2"),
    ],
)
def test_settings_that_cannot_be_are_one_clear_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as error:
        PRES(**options)
    assert message in str(error.value) and "\n" not in str(error.value)
