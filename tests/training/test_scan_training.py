"""Runs of models whose memory is scanned: stopped, kept, opened, evaluated, and asked for what they know."""

import signal
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import pres
from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.models.scanned import Scanned
from pres.sampling import NegativeSampler
from pres.smoothing import PRES
from pres.training.config import FitConfig
from pres.training.opened import open_run
from pres.training.trainer import Trainer
from tests.models.conftest import KINDS, make, random_events, stream_of
from tests.oracles.sampling import Event
from tests.oracles.twin import scan_twin, slow_twin
from tests.training.runs import EVENTS, results

SCANNING = ("tgn", "jodie")
SIZES: dict[str, Any] = {"memory_dim": 16, "time_dim": 8, "cell": "scan"}


def made(kind: str = "jodie", **options: Any) -> MDGNN:
    return build_model(kind, EVENTS, SIZES | options, seed=0)


def trained(kind: str = "jodie", model_options: dict[str, Any] | None = None, **options: Any) -> pres.Run:
    settings: dict[str, Any] = {"epochs": 2, "batch_size": 100} | options
    return pres.fit(made(kind, **(model_options or {})), EVENTS, **settings)


def trainer_of(kind: str, **options: Any) -> Trainer:
    return Trainer(made(kind), EVENTS, FitConfig.of({"batch_size": 100, "epochs": 2} | options))


def assert_same_state(one: dict[str, Tensor], other: dict[str, Tensor]) -> None:
    assert one.keys() == other.keys() and one
    for name, value in one.items():
        assert torch.equal(value, other[name]), name


@pytest.mark.parametrize("kind", SCANNING)
@pytest.mark.parametrize("staleness", [0, 50])
def test_training_learns_and_the_same_seed_gives_the_same_bits(kind: str, staleness: int) -> None:
    one, two = (trained(kind, epochs=3, lr=3e-3, staleness=staleness) for _ in range(2))
    assert results(one) == results(two)
    assert_same_state(one.state, two.state)
    assert one.history[-1].loss < one.history[0].loss
    assert results(trained(kind, epochs=3, lr=3e-3, staleness=100)) != results(one)


def test_fifty_events_see_the_same_memory_unless_told_otherwise() -> None:
    assert results(trained(epochs=1)) == results(trained(epochs=1, staleness=50))
    assert results(trained(epochs=1)) != results(trained(epochs=1, staleness=51))


@pytest.mark.parametrize("kind", SCANNING)
@pytest.mark.parametrize("at", [4, 11, 18])
def test_an_interrupted_run_goes_on_to_the_same_result(
    kind: str, at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = trained(kind, out=tmp_path / "whole")
    committed, commit = 0, Scanned.commit

    def commit_and_signal(self: Scanned) -> None:
        nonlocal committed
        committed += 1
        if committed == at:  # an epoch has 11 batches, and 3 of validation
            signal.raise_signal(signal.SIGINT)
        commit(self)

    with monkeypatch.context() as patch:
        patch.setattr(Scanned, "commit", commit_and_signal)
        with pytest.raises(KeyboardInterrupt, match=r"stopped at epoch \d, .* keeps the state before it"):
            trained(kind, out=tmp_path / "a")
    assert not (tmp_path / "a" / "run.json").exists()
    resumed = trained(kind, out=tmp_path / "a", resume=True)
    assert results(resumed) == results(whole)
    assert_same_state(resumed.state, whole.state)
    assert_same_state(resumed.last.model, whole.last.model)
    assert pres.load_run(tmp_path / "a").to_dict() == resumed.to_dict()


@pytest.mark.parametrize("kind", SCANNING)
def test_a_state_of_the_middle_of_an_epoch_goes_on_to_the_bit(kind: str) -> None:
    first = trainer_of(kind)
    first.run_epoch()
    for _ in range(4):
        first.train_next_batch()
    middle = first.state()
    assert int(middle.model["memory.events"]) == 400
    other = trainer_of(kind)
    ends = []
    for trainer in (first, other):
        trainer.restore(middle)  # both take their random numbers from there
        trainer.run_epoch()
        ends.append(trainer.state())
    assert [(e.loss, e.val) for e in ends[0].history] == [(e.loss, e.val) for e in ends[1].history]
    assert_same_state(ends[0].model, ends[1].model)
    assert_same_state(ends[0].optimiser, ends[1].optimiser)


@pytest.mark.parametrize("kind", SCANNING)
@pytest.mark.parametrize("passes", [1, 2])
def test_an_opened_run_repeats_its_test(kind: str, passes: int, tmp_path: Path) -> None:
    run = trained(kind, {"passes": passes, "embed": "node"}, out=tmp_path / "a")
    opened = open_run(tmp_path / "a")
    assert opened.model.scans and opened.model.per_node
    assert opened.model.options == run.model_options == made(kind, passes=passes, embed="node").options
    part, sampler = opened.events.split().test, NegativeSampler(opened.events)
    assert pres.evaluate(opened.model, part, sampler) == run.test
    again = pres.load_run(tmp_path / "a")
    fresh = made(kind, passes=passes, embed="node")
    again.restore(fresh)
    assert_same_state(fresh.state_dict(), run.state)
    with pytest.raises(OptionError, match="of another model or stream"):
        again.restore(build_model(kind, EVENTS, {"memory_dim": 16, "time_dim": 8}))


@pytest.mark.parametrize("kind", SCANNING)
@pytest.mark.parametrize("passes", [1, 2])
def test_bfloat16_keeps_a_float32_state_and_nearly_the_same_loss(kind: str, passes: int) -> None:
    found = []
    for precision in ("float32", "bfloat16"):
        sizes = SIZES | {"passes": passes} | ({} if kind == "jodie" else {"dropout": 0.0})
        config = FitConfig.of({"batch_size": 100, "epochs": 1, "precision": precision})
        trainer = Trainer(build_model(kind, EVENTS, sizes, seed=0), EVENTS, config)
        seen: list[torch.dtype] = []
        updater = trainer.model.updater
        updater.register_forward_hook(lambda *given, seen=seen: seen.append(given[2].dtype))
        trainer.run_epoch()
        assert set(seen) == {torch.float32}  # states themselves are never rounded
        assert {value.dtype for value in trainer.model.parameters()} == {torch.float32}
        assert trainer.model.memory.memory.dtype == torch.float32
        found.append(trainer.history[0].loss)
    assert found[0] == pytest.approx(found[1], abs=0.02) and found[0] != found[1]


def test_the_coherence_objective_is_trained_on_and_told() -> None:
    plain = trained(epochs=1, lr=3e-3)
    run = trained(epochs=1, lr=3e-3, smoothing=PRES(filter=False, beta=1.0))
    assert 0 < run.history[0].memory["coherence"] <= 1
    assert "coherence" not in plain.history[0].memory
    assert run.history[0].loss != plain.history[0].loss
    assert made().smoothing is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"smoothing": PRES()}, r"takes no filter: train it with PRES\(filter=False\)"),
        ({"step_size": 50}, "step_size=50 is less than batch_size=100"),
        ({"staleness": -1}, "staleness=-1"),
    ],
)
def test_what_does_not_go_with_a_scan_is_one_clear_line(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message) as error:
        trained(**options)
    assert "\n" not in str(error.value)


def test_what_only_goes_with_a_scan_is_refused_elsewhere() -> None:
    for kind in KINDS:
        model = build_model(kind, EVENTS, {"memory_dim": 8, "time_dim": 8})
        with pytest.raises(OptionError, match="staleness=50 is of models whose memory is scanned") as error:
            pres.fit(model, EVENTS, batch_size=100, staleness=50)
        assert "\n" not in str(error.value)
        with pytest.raises(OptionError, match="preset='large' is of models whose memory is scanned"):
            pres.fit(model, EVENTS, batch_size=200, preset="large")
    with pytest.raises(OptionError, match="aggregate='mean' is of mail"):
        made(aggregate="mean")
    with pytest.raises(OptionError, match="passes=3"):
        made(passes=3)


# What else is asked of a model: embeddings along a stream, labels, and scores of any pairs.


def embedded_by_hand(kind: str, events: list[Event], model: MDGNN, b: int) -> list[Tensor]:
    """The source of every event by memory before the batch, without what is at the event's own time."""
    empty = torch.empty(len(events), 0)
    memory, slow = scan_twin(model, events, empty), slow_twin(kind, model, events, empty)
    found = []
    with torch.no_grad():
        for first in range(0, len(events), b):
            inside = memory.take_in(first, min(first + b, len(events)))
            for src, _, t in events[first : first + b]:
                cut = min(first, sum(at < t for _, _, at in events))
                before = {node: inside.at(node, cut) for node in range(12)}
                slow.memory = {node: value.numpy() for node, (value, _) in before.items()}
                slow.last_event = {node: at for node, (_, at) in before.items()}
                found.append(torch.from_numpy(slow.embed(src, t, None)))
    return found


@pytest.mark.parametrize("kind", SCANNING)
@pytest.mark.parametrize("b", [1, 7, 250])
def test_embeddings_of_sources_are_those_of_a_loop_over_events(kind: str, b: int) -> None:
    events = random_events(seed=b, n=60 if b == 1 else 270)
    stream = stream_of(events)
    model = make(kind, stream, cell="scan", node_encoding_dim=3)
    model.update_state(stream[:20])
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    found = pres.evaluation.source_embeddings(model, stream, batch_size=b)
    assert_same_state(model.state_dict(), kept)
    wanted = torch.stack(embedded_by_hand(kind, events, model, b))
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)


@pytest.mark.parametrize("kind", SCANNING)
def test_labels_are_learned_from_scanned_memory(kind: str) -> None:
    src, dst = EVENTS.src, EVENTS.dst
    label = (torch.arange(len(src)) % 7 + src % 3 > 6).long()
    events = EventStream(src, dst, EVENTS.t, label=label, num_nodes=EVENTS.num_nodes)
    found = pres.classify(build_model(kind, events, SIZES, seed=0), events, epochs=2)
    assert found.test.events == len(events.split().test) and 0 <= found.test.auc <= 1


@pytest.mark.parametrize("kind", SCANNING)
def test_pairs_are_scored_by_memory_after_the_last_event(kind: str) -> None:
    events = random_events(seed=6, n=320)
    stream = stream_of(events)
    model = make(kind, stream, cell="scan", node_encoding_dim=3)
    empty = torch.empty(len(events), 0)
    memory, slow = scan_twin(model, events, empty), slow_twin(kind, model, events, empty)
    for first in (0, 250):
        model.update_state(stream[first : min(first + 250, 320)])
        memory.take_in(first, min(first + 250, 320))
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    src, dst = torch.arange(8), torch.arange(8).flip(0)
    t = torch.full((8,), events[-1][2] + 5)
    found = pres.predict(model, stream, src=src.tolist(), dst=dst.tolist(), t=t.tolist())
    assert_same_state(model.state_dict(), kept)
    with torch.no_grad():
        end = memory.scan(320, 320)
        after = {node: end.at(node, 320) for node in range(12)}
    slow.memory = {node: value.numpy() for node, (value, _) in after.items()}
    slow.last_event = {node: at for node, (_, at) in after.items()}
    wanted = [slow.score(*each) for each in zip(src.tolist(), dst.tolist(), t.tolist(), strict=True)]
    torch.testing.assert_close(found.score, torch.tensor(wanted).sigmoid().double(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("kind", SCANNING)
def test_earlier_pairs_are_scored_after_a_replay_and_new_nodes_too(kind: str) -> None:
    model = made(kind)
    model.update_state(EVENTS[:400])
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    t = [float(EVENTS.t[i]) for i in (150, 420, 1_499)]
    assert EVENTS.ids.dst_values is not None
    found = pres.predict(
        model, EVENTS, src=[0, 1, 999_999], dst=int(EVENTS.ids.dst_values[0]), t=t, unknown="new"
    )
    assert_same_state(model.state_dict(), kept)
    assert found.new.tolist() == [False, False, True] and bool(found.score.isfinite().all())


@pytest.mark.parametrize("kind", SCANNING)
def test_a_model_on_a_store_trains_as_on_the_same_events_in_memory(kind: str, tmp_path: Path) -> None:
    pres.write_store("synthetic", tmp_path / "s", num_events=1_500)
    opened = pres.open_store(tmp_path / "s")
    found = [
        pres.fit(build_model(kind, events, SIZES, seed=0), events, batch_size=150, epochs=1)
        for events in (EVENTS, opened)
    ]
    assert results(found[0]) == results(found[1])
    assert_same_state(found[0].state, found[1].state)
