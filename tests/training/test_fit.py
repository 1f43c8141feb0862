from pathlib import Path
from typing import Any

import pytest
import torch

import pres
from pres.errors import DivergedError, OptionError
from pres.sampling import NegativeSampler, TemporalBatches
from pres.training.checkpoint import EpochResult
from pres.training.step import prepare, train_on_batch
from tests.models.conftest import KINDS, make, random_events, stream_of

MODELS = {"tgn": pres.TGN, "jodie": pres.JODIE, "apan": pres.APAN}
EVENTS = pres.load("synthetic", num_events=1_500)


def trained(kind: str = "jodie", **options: Any) -> tuple[pres.Run, torch.nn.Module]:
    torch.manual_seed(0)
    model = MODELS[kind](EVENTS, memory_dim=16, time_dim=8)
    return pres.fit(model, EVENTS, **{"epochs": 2, "batch_size": 100} | options), model


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_seed_gives_the_same_bits(kind: str) -> None:
    (one, first), (two, second), (other, _) = trained(kind), trained(kind), trained(kind, seed=1)
    assert [epoch.loss for epoch in one.history] == [epoch.loss for epoch in two.history]
    assert one.test == two.test and one.val == two.val
    for name, value in first.state_dict().items():
        assert torch.equal(value, second.state_dict()[name]), name
    assert [epoch.loss for epoch in one.history] != [epoch.loss for epoch in other.history]


@pytest.mark.parametrize("kind", KINDS)
def test_training_learns(kind: str) -> None:
    run, _ = trained(kind, epochs=4, lr=3e-3)
    assert run.history[-1].loss < run.history[0].loss
    assert run.val.ap == max(epoch.val.ap for epoch in run.history)
    assert run.best_epoch == max(run.history, key=lambda epoch: epoch.val.ap).epoch


def test_test_is_of_the_best_epoch_and_can_be_repeated() -> None:
    run, model = trained(epochs=3)
    split = EVENTS.split()
    run.restore(model)  # type: ignore[arg-type]
    again = pres.evaluate(model, split.test, NegativeSampler(EVENTS), seed=0)  # type: ignore[arg-type]
    assert again == run.test


def test_training_stops_when_validation_does_not_improve() -> None:
    seen: list[EpochResult] = []
    run, _ = trained(epochs=50, patience=2, lr=0.05, on_epoch=seen.append)
    assert len(run.history) < 50
    assert len(run.history) == run.best_epoch + 2
    assert seen == run.history


@pytest.mark.parametrize("kind", KINDS)
def test_steps_within_a_batch_see_the_same_mail_and_absorb_once(kind: str) -> None:
    stream = stream_of(random_events(seed=1, n=48))
    one, two = make(kind, stream).train(), make(kind, stream).train()
    batches = list(TemporalBatches(stream, 24))
    for model in (one, two):
        model.update_state(batches[0])
    negatives = (batches[1].dst.unsqueeze(1) + 1) % 12

    def optimiser(model: torch.nn.Module) -> torch.optim.Optimizer:
        return torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1)

    found = train_on_batch(one, prepare(one, batches[1], negatives, step_size=10), optimiser(one))
    # by hand: three steps of 10, 10 and 4 events, the mail untouched until the end
    by_hand, total = optimiser(two), 0.0
    for start, stop in ((0, 10), (10, 20), (20, 24)):
        step = stream[24 + start : 24 + stop]
        subgraph = two.sample(step, negatives[start:stop])
        positive, negative = two.score(subgraph, two.updated_memory(subgraph.nodes))
        step_loss = (
            torch.nn.functional.softplus(-positive).mean() + torch.nn.functional.softplus(negative).mean()
        )
        by_hand.zero_grad()
        torch.autograd.backward(step_loss)
        by_hand.step()
        total += step_loss.item() * (stop - start)
    two.update_state(batches[1])
    assert found["loss"] == pytest.approx(total / 24, abs=1e-12)
    for name, value in one.state_dict().items():
        assert torch.allclose(value, two.state_dict()[name], atol=1e-12), name


def test_a_step_as_large_as_the_batch_changes_nothing() -> None:
    plain, stepped = trained()[0], trained(step_size=100)[0]
    assert plain.test == stepped.test
    assert trained(step_size=25)[0].test != plain.test


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batchsize": 5}, "no option 'batchsize'. Did you mean 'batch_size'"),
        ({"batch_size": 0}, "batch_size=0"),
        ({"lr": -1.0}, "lr=-1.0"),
        ({"batch_size": 100, "validate_every": 0}, "validate_every=0"),
        ({"batch_size": 5_000}, "makes one batch of the 1,0"),
        ({"epochs": "many"}, "epochs='many'"),
    ],
)
def test_impossible_settings_are_one_clear_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as error:
        trained(**options)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_a_loss_that_is_not_a_number_stops_with_the_batch() -> None:
    torch.manual_seed(0)
    model = pres.JODIE(EVENTS, memory_dim=8, time_dim=4)
    with torch.no_grad():
        model.link.out.bias.fill_(float("nan"))
    kept = {name: value.clone() for name, value in model.named_parameters()}
    with pytest.raises(DivergedError, match="events 0 to 99"):
        pres.fit(model, EVENTS, batch_size=100, epochs=1)
    assert all(torch.equal(v, kept[n]) for n, v in model.named_parameters() if n != "link.out.bias")


def test_a_run_that_would_lack_negatives_is_refused_before_it_begins(tmp_path: Path) -> None:
    n = 400
    src, dst = torch.zeros(n, dtype=torch.int64), 1 + torch.arange(n) % 5  # one source, five destinations
    events = pres.EventStream(src, dst, torch.arange(n).double(), num_nodes=6)
    with pytest.raises(pres.PresError, match="meets all 5 destinations"):
        pres.fit(pres.JODIE(events, memory_dim=8), events, batch_size=100, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
