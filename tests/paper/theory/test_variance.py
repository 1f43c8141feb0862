from pathlib import Path

import pytest
import torch
from matplotlib import image
from torch import Tensor

import pres
from pres.errors import OptionError
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.paper.theory.variance import gradient_variance, slope
from pres.sampling import NegativeSampler
from pres.sampling.rng import derived
from pres.training.checkpoint import state_of
from tests.models.conftest import KINDS, make, random_events, stream_of

STREAM = stream_of(random_events(seed=5, n=120))


def losses_backward(model: MDGNN, positive: Tensor, negative: Tensor, loss: str) -> Tensor:
    """The gradient of a mean or a summed loss, written out, by `backward`."""
    terms = torch.cat([torch.log1p(torch.exp(-positive)), torch.log1p(torch.exp(negative)).flatten()])
    model.zero_grad()
    torch.autograd.backward(terms.sum() if loss == "sum" else terms.sum() / len(positive))
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    zero = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in learning]
    return torch.cat([gradient.flatten() for gradient in zero])


def gradients_by_hand(model: MDGNN, size: int, events: int, draws: int, loss: str) -> Tensor:
    """Every draw of every batch `[draws, batches, p]`, kept."""
    sampler = NegativeSampler(STREAM)
    found: list[list[Tensor]] = []
    for draw in range(draws):
        model.memory.reset()
        found.append([])
        for start in range(0, events - size + 1, size):
            batch = STREAM[start : start + size]
            subgraph = model.sample(batch, sampler.sample(batch, seed=derived(3, draw)).nodes)
            scores = model.score(subgraph, model.updated_memory(subgraph.nodes))
            found[-1].append(losses_backward(model, *scores, loss))
            model.update_state(batch)
    return torch.stack([torch.stack(batches) for batches in found])


def naive_variance(gradients: Tensor) -> float:
    """The trace of the covariance of draws `[draws, p]`, entry by entry."""
    mean = sum(gradients) / len(gradients)
    return sum(float(((g - mean) ** 2).sum()) for g in gradients) / (len(gradients) - 1)


@pytest.mark.parametrize("kind", KINDS)
def test_the_variances_are_those_of_all_gradients_kept(kind: str) -> None:
    model = make(kind, STREAM)
    found = gradient_variance(model, STREAM, [8, 20], draws=3, limit=50, seed=3)
    for row in found.rows:
        kept = gradients_by_hand(model, row.batch_size, 50, 3, row.loss)
        assert row.batches == kept.shape[1] == 50 // row.batch_size
        each = [naive_variance(kept[:, i]) for i in range(row.batches)]
        assert row.smallest == pytest.approx(min(each), rel=1e-9)
        assert row.largest == pytest.approx(max(each), rel=1e-9)
        assert row.mean == pytest.approx(sum(each) / len(each), rel=1e-9)
        assert row.epoch_independent == pytest.approx(sum(each), rel=1e-9)
        assert row.epoch == pytest.approx(naive_variance(kept.sum(dim=1)), rel=1e-9)
        assert row.bound == pytest.approx(row.batches * min(each), rel=1e-9)
        assert row.bound <= row.epoch_independent
    assert found.parameters == kept.shape[2]


def test_the_epochs_variance_is_the_sum_of_its_batches_up_to_the_draws() -> None:
    model = make("jodie", STREAM)
    found = gradient_variance(model, STREAM, [10], draws=300, limit=40)
    for row in found.rows:
        assert row.epoch == pytest.approx(row.epoch_independent, rel=0.25)


def test_exponents_are_slopes_and_the_normalisation_explains_their_distance() -> None:
    assert slope([10, 20, 40], [5.0, 2.5, 1.25]) == pytest.approx(-1)
    assert slope([10, 20, 40], [3.0, 12.0, 48.0]) == pytest.approx(2)
    assert slope([10], [1.0]) is None and slope([10, 20], [0.0, 1.0]) is None
    x, y = torch.tensor([10.0, 20.0, 70.0]).double().log(), torch.tensor([2.0, 3.0, 1.0]).double().log()
    fit = torch.linalg.lstsq(torch.stack([x, torch.ones(3)], dim=1), y.unsqueeze(1)).solution[0]
    assert slope([10, 20, 70], [2.0, 3.0, 1.0]) == pytest.approx(float(fit))
    mean, summed = gradient_variance(
        make("jodie", STREAM, node_encoding_dim=3), STREAM, [8, 16, 32], draws=4
    ).exponents
    for name in ("smallest", "largest", "mean", "epoch"):
        assert summed.fitted[name] == pytest.approx((mean.fitted[name] or 0) + 2)
        assert summed.beyond[name] == pytest.approx(mean.beyond[name])
    assert mean.beyond["mean"] == pytest.approx((mean.fitted["mean"] or 0) + 1)


def test_the_model_is_left_as_it_was() -> None:
    model = make("tgn", STREAM).train()
    model.update_state(STREAM[:30])
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gradient_variance(model, STREAM, [20], draws=2)
    assert model.training and all(parameter.grad is None for parameter in model.parameters())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_a_filter_is_on_its_gain_is_a_parameter_and_its_trackers_stay() -> None:
    events = pres.load("synthetic", num_events=1_500)
    plain, filtered = (build_model("jodie", events, {"memory_dim": 8, "time_dim": 4}) for _ in range(2))
    pres.fit(filtered, events, batch_size=100, epochs=1, smoothing=pres.PRES(beta=0.0))
    before = state_of(filtered)
    found = gradient_variance(filtered, events, [100], draws=2, limit=300)
    assert all(torch.equal(value, before[name]) for name, value in filtered.state_dict().items())
    without = gradient_variance(plain, events, [100], draws=2, limit=300)
    assert found.parameters > without.parameters
    filtered.smoothing = None  # the same weights, measured without the filter
    assert gradient_variance(filtered, events, [100], draws=2, limit=300).rows[0] != found.rows[0]


def test_the_result_is_plain_values_and_a_picture(tmp_path: Path) -> None:
    found = gradient_variance(make("jodie", STREAM), STREAM, draws=2, limit=60, weights="random")
    plain = found.to_dict()
    assert [row["batch_size"] for row in plain["rows"]] == [60, 60]  # no default size fits so few events
    assert (plain["weights"], plain["events"], plain["draws"]) == ("random", 60, 2)
    assert plain["exponents"][0]["fitted"]["mean"] is None
    two = gradient_variance(make("jodie", STREAM), STREAM, [10, 20], draws=2)
    for i, drawn in enumerate((found, two)):
        pixels = image.imread(drawn.save_png(tmp_path / f"{i}.png"))
        assert pixels.shape[1] > 1000 and pixels[..., :3].std() > 0.05


def test_what_cannot_be_measured_is_said() -> None:
    model = make("jodie", STREAM)
    with pytest.raises(OptionError, match="draws=1: a variance needs at least two"):
        gradient_variance(model, STREAM, [10], draws=1)
    with pytest.raises(OptionError, match="batch_size=500 does not fit the 8"):
        gradient_variance(model, STREAM, [500])
    with pytest.raises(OptionError, match=r"events=5,000: the training part has 8\d"):
        gradient_variance(model, STREAM, [10], limit=5_000)
    with pytest.raises(OptionError, match="at least one batch size"):
        gradient_variance(model, STREAM, [])
    with pytest.raises(OptionError, match="Give the whole stream"):
        gradient_variance(model, STREAM[:60], [10])


def test_an_empty_memory_without_codes_cannot_tell_nodes_apart() -> None:
    found = gradient_variance(make("jodie", STREAM), STREAM, [10, 20], draws=3)
    assert all(row.smallest == 0.0 and row.mean > 0 for row in found.rows)  # of the first batch
    assert found.exponents[0].fitted["smallest"] is None and found.exponents[0].fitted["mean"] is not None
