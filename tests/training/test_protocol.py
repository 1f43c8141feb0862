"""TGL's protocol by name: its settings, its negatives, its choice of weights, its test."""

from typing import Any

import pytest
import torch

import pres
from pres.errors import OptionError
from pres.evaluation.compare import compare
from pres.evaluation.link import evaluate
from pres.evaluation.metrics import LinkMetrics
from pres.evaluation.scorer import replay
from pres.models import MDGNN
from pres.nn import GRUUpdater, MailboxAttention, RNNUpdater
from pres.sampling import NegativeSampler, TemporalBatches
from pres.sampling.negatives import NegativeStrategy
from pres.training.checkpoint import EpochResult
from pres.training.config import FitConfig
from pres.training.step import Prepared
from pres.training.trainer import Trainer

EVENTS = pres.load("synthetic", num_events=1_500)
SMALL = {"memory_dim": 16, "time_dim": 8}


def small(name: str = "jodie", **options: Any) -> MDGNN:
    return pres.build_model(name, EVENTS, SMALL | options, protocol="tgl")


def test_training_is_set_as_in_tgls_files_and_options_override_it() -> None:
    config = FitConfig.of({"protocol": "tgl"})
    assert (config.batch_size, config.eval_batch_size, config.epochs) == (600, 600, 100)
    assert (config.lr, config.lr_decay, config.optimiser) == (1e-4, "none", "adam")
    assert config.patience is None and config.negative_window is None and config.pool == "nodes"
    assert config.step_size is None
    other = FitConfig.of({"protocol": "tgl", "batch_size": 2400, "lr": 1e-3, "epochs": 50})
    assert (other.batch_size, other.eval_batch_size, other.lr, other.epochs) == (2400, 2400, 1e-3, 50)
    assert FitConfig.of({"protocol": "tgl", "eval_batch_size": 200}).eval_batch_size == 200
    assert FitConfig.of({}).pool == "destinations" and FitConfig.of({}).eval_batch_size == 200


def test_models_are_set_as_in_tgls_files_and_options_override_it() -> None:
    tgn, jodie, apan = (pres.build_model(name, EVENTS, protocol="tgl") for name in ("tgn", "jodie", "apan"))
    for model in (tgn, jodie, apan):
        assert model.memory.dim == 100 and model.message.time.dim == 100 and model.node_encoding.dim == 0
        assert not model.per_node and model.visibility == "fresh" and model.strategy == "recent"
    assert isinstance(tgn.updater, GRUUpdater) and isinstance(jodie.updater, RNNUpdater)
    assert tgn.options is not None and tgn.options["dropout"] == 0.2 and tgn.options["heads"] == 2
    assert tgn.neighbours == apan.neighbours == apan.memory.slots == 10 and tgn.embedding.hops == 1
    assert isinstance(apan.updater, MailboxAttention) and apan.updater.cell is None
    assert apan.options is not None and apan.options["dropout"] == 0.1
    assert pres.build_model("tgn", EVENTS, {"dropout": 0.0}, protocol="tgl").options["dropout"] == 0.0  # type: ignore[index]


def test_its_copy_of_mooc_has_no_features() -> None:
    info = EVENTS.info
    x = torch.ones(len(EVENTS), 4)
    named = pres.EventStream(EVENTS.src, EVENTS.dst, EVENTS.t, x=x, info=type(info)(name="mooc"))
    assert pres.build_model("jodie", named, SMALL).message.features.dim == 4
    assert pres.build_model("jodie", named, SMALL, protocol="tgl").message.features.dim == 0
    other = pres.EventStream(EVENTS.src, EVENTS.dst, EVENTS.t, x=x, info=type(info)(name="own"))
    assert pres.build_model("jodie", other, SMALL, protocol="tgl").message.features.dim == 4


def test_negatives_are_drawn_from_all_nodes_and_never_stop_early() -> None:
    trainer = Trainer(small(), EVENTS, FitConfig.of({"protocol": "tgl", "batch_size": 150}))
    assert trainer.sampler.pool.tolist() == list(range(EVENTS.num_nodes))
    prepared = trainer.prepare((1, 0))
    assert isinstance(prepared, Prepared)
    drawn = prepared.negatives
    assert bool((drawn < int(EVENTS.dst.min())).any())  # sources among them, which are no destination
    worse = LinkMetrics(0.5, 0.5, 0.5, 0.5, 0.5, 1, 1, 0.5, 0.5, 0.5)
    better = LinkMetrics(0.9, 0.9, 0.9, 0.9, 0.9, 1, 1, 0.5, 0.5, 0.5)
    trainer.history = [EpochResult(1, 1.0, better, 1.0, {}, 1e-4)]
    trainer.history += [EpochResult(epoch, 1.0, worse, 1.0, {}, 1e-4) for epoch in range(2, 60)]
    assert not trainer.finished and trainer.best_place == 0


def test_weights_are_chosen_by_the_mean_over_batches() -> None:
    def epoch(number: int, ap: float, ap_batches: float) -> EpochResult:
        return EpochResult(
            number, 1.0, LinkMetrics(ap, 0.5, ap_batches, 0.5, 0.5, 1, 1, 0.5, 0.5, 0.5), 1.0, {}, 1e-4
        )

    found = []
    for options in ({"protocol": "tgl"}, {}):
        trainer = Trainer(small(), EVENTS, FitConfig.of(options | {"batch_size": 150}))
        trainer.history = [epoch(1, 0.9, 0.7), epoch(2, 0.8, 0.8)]
        found.append(trainer.best_place + 1)
    assert found == [2, 1]


def test_the_test_follows_a_replay_by_the_chosen_weights() -> None:
    model = small()
    run = pres.fit(model, EVENTS, protocol="tgl", batch_size=150, epochs=2, lr=1e-2)
    split, sampler = EVENTS.split(), NegativeSampler(EVENTS, pool="nodes")
    run.restore(model)
    as_training_left_it = evaluate(model, split.test, sampler, batch_size=150)
    run.restore(model)
    model.reset()
    model.eval()
    with torch.no_grad():
        for part in (split.train, split.val):  # no batch runs across the edge
            for batch in TemporalBatches(part, 150):
                model.update_state(batch)
    by_hand = evaluate(model, split.test, sampler, batch_size=150)
    assert run.pool == "nodes" and run.test == by_hand
    assert as_training_left_it != run.test  # it has the memory of weights that still moved
    seen = compare(model, EVENTS, strategies=["random"], negatives=1, batch_size=150, pool="nodes", anew=True)
    assert seen.rows[0].metrics == run.test and seen.memory == "replayed"


def smoothed() -> tuple[MDGNN, pres.Run, pres.smoothing.PRESSmoothing]:
    model = small()
    smoothing = pres.PRES.published("equations")
    run = pres.fit(model, EVENTS, protocol="tgl", batch_size=150, epochs=1, smoothing=smoothing)
    run.restore(model)
    assert isinstance(model.smoothing, pres.smoothing.PRESSmoothing) and not model.smoothing.live
    return model, run, model.smoothing


def test_trackers_begin_anew_with_a_replay_follow_training_and_are_frozen_then() -> None:
    model, _, correction = smoothed()
    split = EVENTS.split()
    replay(model, [split.train], 150)
    trained = correction.trackers.n.clone()
    assert float(trained[0].sum()) > 100 and float(trained[1].sum()) == 0  # events alone
    replay(model, [split.train, split.val], 150)
    assert torch.equal(correction.trackers.n, trained)  # anew, and frozen after the training part
    correction.live = True
    replay(model, [split.train, split.val], 150)
    assert float(correction.trackers.n.sum()) > float(trained.sum())


def test_no_first_update_of_a_replay_is_predicted_by_what_came_later(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _, correction = smoothed()
    steps: list[torch.Tensor] = []
    correct = correction.correct

    def noting(nodes: Any, previous: Any, measured: Any, elapsed: Any) -> torch.Tensor:
        found = correct(nodes, previous, measured, elapsed)
        never = (previous == 0).all(1) & (model.mailboxes.mails_received[nodes] == 1)
        expected = torch.lerp(previous, measured, correction.gain)
        steps.append((found - expected)[never])
        return found

    monkeypatch.setattr(correction, "correct", noting)
    replay(model, [EVENTS.split().train], 150)
    first = torch.cat(steps)
    assert len(first) > 50 and bool((first == 0).all())


@pytest.mark.parametrize("live", [False, True])
def test_a_comparison_leaves_trackers_as_it_found_them(live: bool) -> None:
    model, _, correction = smoothed()
    correction.live = live
    before = {name: value.clone() for name, value in correction.named_buffers()}
    orders: list[list[NegativeStrategy]] = [["random", "historical"], ["historical", "random"]]
    one, two = (compare(model, EVENTS, strategies=order, baselines=False) for order in orders)
    for name, value in correction.named_buffers():
        assert torch.equal(value, before[name]), name
    of_random = [[row.metrics for row in found.rows if row.strategy == "random"] for found in (one, two)]
    assert of_random[0] == of_random[1]  # whatever was scored before


def test_what_cannot_be_is_said() -> None:
    with pytest.raises(OptionError, match="protocol and preset"):
        FitConfig.of({"protocol": "tgl", "preset": "large"})
    with pytest.raises(OptionError, match="protocol='tgn'"):
        FitConfig.of({"protocol": "tgn"})
    with pytest.raises(OptionError, match="protocol"):
        pres.build_model("tgn", EVENTS, protocol="dgl")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"has no option 'delta': the paper settles it"):
        pres.PRES.published("equations", delta="rate")
    with pytest.raises(OptionError, match=r"has no option 'negative_messages'"):
        pres.PRES.published("equations", negative_messages=True)
    with pytest.raises(OptionError, match="reading"):
        pres.PRES.published("text")  # type: ignore[arg-type]
    with pytest.raises(OptionError, match="negative_messages are those of Algorithm 2"):
        pres.PRES(negative_messages=True)


def test_a_reading_is_known_by_its_settings() -> None:
    assert pres.PRES().reading == "ours"
    assert pres.PRES.published("equations", beta=0.5, live=True).reading == "equations"
    whole = pres.PRES.published("algorithm")
    assert whole.negative_messages and whole.reading == "algorithm"  # as the pseudo-code has it
    without = pres.PRES.published("algorithm", negative_messages=False)
    assert not without.negative_messages and without.reading == "algorithm"
    assert not pres.PRES.published("algorithm", filter=False).negative_messages
    changed = pres.PRES.published("equations").model_dump() | {"longest_gap": 10.0}
    assert pres.PRES(**changed).reading == "ours"
