"""PRES in training, on all three models."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
import torch

import pres
from pres import PRES
from pres.evaluation.scorer import BatchReading
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.sampling import NegativeSampler, TemporalBatches
from pres.smoothing import PRESSmoothing
from pres.training.checkpoint import TrainingState, state_of
from pres.training.config import FitConfig
from pres.training.opened import open_run
from pres.training.step import prepare, train_on_batch
from pres.training.trainer import Trainer
from tests.models.conftest import KINDS, make, random_events, stream_of

EVENTS = pres.load("synthetic", num_events=1_500)


def trained(kind: str, **options: Any) -> tuple[MDGNN, pres.Run]:
    model = build_model(kind, EVENTS, {"memory_dim": 16, "time_dim": 8}, seed=0)
    settings = {"batch_size": 150, "epochs": 2, "patience": 9} | options
    return model, pres.fit(model, EVENTS, **settings)


@pytest.mark.parametrize("kind", KINDS)
def test_a_gain_of_1_without_the_objective_is_training_without_pres(kind: str) -> None:
    plain, without = trained(kind)
    smooth, run = trained(kind, smoothing=PRES(beta=0, gain="fixed", gamma=1.0))
    assert run.test == without.test and run.val == without.val
    assert [epoch.loss for epoch in run.history] == [epoch.loss for epoch in without.history]
    state = smooth.state_dict()
    for name, value in plain.state_dict().items():
        assert torch.equal(value, state[name]), name
    assert isinstance(smooth.smoothing, PRESSmoothing) and float(smooth.smoothing.trackers.n.sum()) > 100


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "smoothing",
    [PRES(), PRES(filter=False), PRES(beta=0), PRES(delta="rate", components=1)],
)
def test_each_part_changes_training_and_is_logged(kind: str, smoothing: PRES) -> None:
    _, without = trained(kind)
    _, run = trained(kind, smoothing=smoothing)
    assert run.history[-1].loss != without.history[-1].loss
    logged = run.history[-1].memory
    expected = {"movement", "coherence"} | ({"gain", "delta", "tracked"} if smoothing.filter else set())
    assert logged.keys() == expected and without.history[-1].memory.keys() == {"movement"}
    assert logged["movement"] > 0 and -1 <= logged["coherence"] <= 1
    if smoothing.filter:
        assert 0 < logged["gain"] < 1 and logged["delta"] > 0 and 0 < logged["tracked"] <= 1
        assert logged["gain"] != run.history[0].memory["gain"]  # it was learned


@pytest.mark.parametrize("kind", KINDS)
def test_the_objective_changes_gradients(kind: str) -> None:
    stream = stream_of(random_events(seed=1, n=80))

    def gradients(beta: float) -> dict[str, torch.Tensor]:
        model = make(kind, stream).train()
        for batch in TemporalBatches(stream[:60], 20):
            model.update_state(batch)
        optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)
        negatives = (stream[60:].dst.unsqueeze(1) + 1) % 12
        model.smoothing = PRES(beta=beta, filter=False).build(model.memory) if beta else None
        train_on_batch(model, prepare(model, stream[60:], negatives), optimiser)
        return {name: p.grad for name, p in model.named_parameters() if p.grad is not None}

    without, with_it = gradients(0.0), gradients(0.5)
    changed = {name for name, value in without.items() if not torch.allclose(value, with_it[name])}
    assert any(name.startswith("updater") for name in changed)
    assert not any(name.startswith("link") for name in changed)  # memory alone is coherent or not


@pytest.mark.parametrize("kind", KINDS)
def test_evaluation_leaves_trackers_as_they_are_and_the_filter_on(kind: str) -> None:
    model = build_model(kind, EVENTS, {"memory_dim": 16, "time_dim": 8})
    trainer = Trainer(model, EVENTS, FitConfig.of({"batch_size": 150, "smoothing": PRES()}))
    for _ in range(len(trainer.batches)):
        trainer.train_next_batch()
    smoothing = model.smoothing
    assert isinstance(smoothing, PRESSmoothing)
    before = {name: value.clone() for name, value in smoothing.trackers.named_buffers()}
    memory = model.memory.snapshot()
    metrics = trainer.evaluate(trainer.split.val)
    for name, value in smoothing.trackers.named_buffers():
        assert torch.equal(value, before[name]), name
    model.memory.restore(memory)
    model.smoothing = None
    assert trainer.evaluate(trainer.split.val) != metrics


@pytest.mark.parametrize("kind", KINDS)
def test_a_corrected_memory_does_not_depend_on_roles_or_on_the_batch_to_come(kind: str) -> None:
    stream = stream_of(random_events(seed=2, n=80))
    model = make(kind, stream).train()
    model.smoothing = PRES().build(model.memory)
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)
    for batch in TemporalBatches(stream[:60], 20):
        train_on_batch(model, prepare(model, batch, (batch.dst.unsqueeze(1) + 1) % 12), optimiser)
    batch = stream[60:]
    one = model.updated_memory(model.sample(batch, (batch.dst.unsqueeze(1) + 1) % 12).nodes)
    turned = stream_of([(d, s, t) for s, d, t in random_events(seed=2, n=80)])  # both ends change roles
    drawn = model.sample(turned[60:], (batch.src.unsqueeze(1) + 1) % 12).nodes
    swapped = torch.randperm(12, generator=torch.Generator().manual_seed(0))[: len(batch)]
    two = model.updated_memory(model.sample(batch, swapped.repeat(20)[: len(batch)].unsqueeze(1)).nodes)
    shared = one.nodes[torch.isin(one.nodes, two.nodes)]
    assert len(shared) > 4
    pair = one.kept[one.places_of(shared)], two.kept[two.places_of(shared)]
    assert torch.allclose(*pair, atol=1e-12)
    other, again = model.updated_memory(drawn), drawn[torch.isin(drawn, one.nodes)]
    assert torch.allclose(other.kept[other.places_of(again)], one.kept[one.places_of(again)], atol=1e-12)
    alone = model.updated_memory(shared[:1])
    assert torch.allclose(alone.kept[0], one.kept[one.places_of(shared[:1])][0], atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_trackers_hold_the_transitions_of_endpoints_and_of_negatives_with_mail(kind: str) -> None:
    """Node by node, from the memories before and after, written down as training goes."""
    stream = stream_of(random_events(seed=3, n=80))
    model = make(kind, stream).train()
    smoothing = PRESSmoothing(PRES(delta="step"), stream.num_nodes, model.memory.dim).double()
    model.smoothing = smoothing
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)
    history: dict[tuple[int, int], list[torch.Tensor]] = {}
    recorded: set[tuple[int, int]] = set()
    for batch in TemporalBatches(stream, 16):
        negatives = (batch.dst.unsqueeze(1) + 5) % 12
        roles = {
            0: {*batch.src.tolist(), *batch.dst.tolist()},
            1: set(negatives.flatten().tolist()),
        }
        for component, nodes in roles.items():
            for node in sorted(nodes):
                states = model.updated_memory(torch.tensor([node]))
                transition = (node, int(model.mailboxes.mails_received[node]))
                if (
                    transition in recorded
                ):  # of a negative once, however often it is drawn, and then committed
                    continue
                recorded.add(transition)
                if bool(states.pending) and bool((states.previous != 0).any()):
                    moved = (states.kept - states.previous)[0].detach()
                    history.setdefault((node, component), []).append(moved)
        train_on_batch(model, prepare(model, batch, negatives), optimiser)
    sums = smoothing.trackers.total
    for node in range(12):
        for component in (0, 1):
            moves = history.get((node, component), [])
            assert int(smoothing.trackers.n[component, node]) == len(moves)
            expected = torch.stack(moves).sum(0) if moves else torch.zeros(model.memory.dim).double()
            assert torch.allclose(sums[component, node], expected, atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_a_measurement_that_is_kept_moves_memory_as_without_pres(kind: str) -> None:
    stream = stream_of(random_events(seed=4, n=60))
    model, plain = make(kind, stream), make(kind, stream)
    model.smoothing = PRES(keep="measured", components=1).build(model.memory)
    for batch in TemporalBatches(stream[:40], 10):
        BatchReading(model, batch).take_in(follow=True)
        plain.update_state(batch)
    assert torch.allclose(model.memory.memory, plain.memory.memory, atol=1e-12)
    states = model.updated_memory(torch.arange(9))
    assert not torch.allclose(states.corrected, states.kept)


@pytest.mark.parametrize("kind", KINDS)
def test_algorithm_2_embeds_the_measurement_but_keeps_the_correction(kind: str) -> None:
    stream = stream_of(random_events(seed=4, n=60))
    model = make(kind, stream).train()
    model.smoothing = PRES(embed="measured").build(model.memory)
    optimiser = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.0)
    for batch in TemporalBatches(stream[:40], 10):
        train_on_batch(model, prepare(model, batch, (batch.dst.unsqueeze(1) + 1) % 12), optimiser)
    states = model.updated_memory(torch.arange(9))
    assert torch.equal(states.memory, states.measured)
    assert not torch.allclose(states.kept, states.measured)
    model.update_state(stream[40:50])
    touched = torch.unique(torch.cat([stream[40:50].src, stream[40:50].dst]))
    assert torch.allclose(model.memory.memory[touched], states.kept[touched], atol=1e-12)


def test_a_run_with_pres_is_saved_opened_and_gone_on_with(tmp_path: Path) -> None:
    smoothing = PRES(delta="rate", anchors=20)
    model, run = trained("jodie", smoothing=smoothing, out=tmp_path / "run")
    opened = open_run(tmp_path / "run")
    reopened, made = opened.model.smoothing, model.smoothing
    assert isinstance(reopened, PRESSmoothing) and isinstance(made, PRESSmoothing)
    assert reopened.settings == smoothing and float(reopened.unit) == float(made.unit) > 0
    for name, value in opened.model.state_dict().items():
        assert torch.equal(value, run.state[name]), name
    sampler = NegativeSampler(EVENTS)
    assert pres.evaluate(opened.model, EVENTS.split().test, sampler) == run.test
    longer = build_model("jodie", EVENTS, {"memory_dim": 16, "time_dim": 8}, seed=0)
    settings: dict[str, Any] = {"batch_size": 150, "patience": 9, "smoothing": smoothing}
    on = pres.fit(longer, EVENTS, epochs=3, out=tmp_path / "run", resume=True, **settings)
    assert len(on.history) == 3 and asdict(on.history[1]) == asdict(run.history[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [
        {"smoothing": PRES(delta="rate")},
        {"smoothing": PRES(anchors=10), "step_size": 50},
        {"smoothing": PRES()},
    ],
)
def test_pres_goes_on_from_the_middle_of_an_epoch_bit_for_bit(
    kind: str, options: dict[str, Any], tmp_path: Path
) -> None:
    def trainer() -> Trainer:
        model = build_model(kind, EVENTS, {"memory_dim": 16, "time_dim": 8}, seed=0)
        return Trainer(model, EVENTS, FitConfig.of({"batch_size": 150, "epochs": 2, **options}))

    straight = trainer()
    for _ in range(4):
        straight.train_next_batch()
    smoothing = straight.model.smoothing
    assert isinstance(smoothing, PRESSmoothing) and float(smoothing.trackers.n.sum()) > 0
    file = straight.state().save(tmp_path / "middle.safetensors")
    expected = straight.run_epoch()
    resumed = trainer()
    resumed.restore(TrainingState.load(file))
    found = resumed.run_epoch()
    assert (found.loss, found.val, found.memory) == (expected.loss, expected.val, expected.memory)
    state = state_of(resumed.model)
    for name, value in state_of(straight.model).items():
        assert torch.equal(value, state[name]), name


def test_a_model_forgets_a_smoothing_that_is_not_asked_for() -> None:
    model, _ = trained("jodie", smoothing=PRES())
    assert model.smoothing is not None
    pres.fit(model, EVENTS, batch_size=150, epochs=1)
    assert model.smoothing is None and not any(name.startswith("smoothing") for name in state_of(model))


@pytest.mark.parametrize("wrong", [True, PRES, "both"])
def test_what_is_no_pres_is_one_clear_line(wrong: object) -> None:
    with pytest.raises(pres.PresError, match=r"smoothing is pres\.PRES\(…\) in Python") as error:
        FitConfig.of({"smoothing": wrong})
    assert "\n" not in str(error.value)


def test_a_run_says_how_it_differs_from_the_standard() -> None:
    def told(**options: Any) -> str:
        return repr(trained("jodie", **options)[1])

    assert "JODIE on synthetic:" in told(batch_size=200)
    assert "synthetic with batches of 150, PRES (ours):" in told(smoothing=PRES())
    published = told(smoothing=PRES.published("equations"), protocol="tgl", epochs=1)
    assert "with protocol tgl, batches of 150, PRES as published (equations):" in published
    assert "synthetic with batches of 150, steps of 50:" in told(step_size=50)
    model = build_model("jodie", EVENTS, {"memory_dim": 16, "cell": "scan"})
    run = pres.fit(model, EVENTS, preset="large", batch_size=300, staleness=20, epochs=1)
    assert (
        "synthetic with preset large, batches of 300, optimiser muon, a max_time_delta of 0.5 of the "
        "training's time, a staleness of 20:"
    ) in repr(run)
