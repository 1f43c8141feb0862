"""TGL's protocol by name: its settings, its negatives, its choice of weights, its test."""

from typing import Any

import pytest
import torch

import pres
from pres.errors import OptionError
from pres.models import MDGNN
from pres.nn import GRUUpdater, MailboxAttention, RNNUpdater
from pres.sampling import NegativeSampler, TemporalBatches
from pres.training import FitConfig
from pres.training.evaluation import evaluate, replay
from pres.training.metrics import LinkMetrics
from pres.training.state import EpochResult
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
    assert config.step_size is None and config.memory == "standard"
    other = FitConfig.of({"protocol": "tgl", "batch_size": 2400, "lr": 1e-3, "epochs": 50})
    assert (other.batch_size, other.eval_batch_size, other.lr, other.epochs) == (2400, 2400, 1e-3, 50)
    assert FitConfig.of({"protocol": "tgl", "eval_batch_size": 200}).eval_batch_size == 200
    assert FitConfig.of({}).pool == "destinations" and FitConfig.of({}).eval_batch_size == 200


def test_models_are_set_as_in_tgls_files_and_options_override_it() -> None:
    tgn, jodie, apan = (pres.build_model(name, EVENTS, protocol="tgl") for name in ("tgn", "jodie", "apan"))
    for model in (tgn, jodie, apan):
        assert model.memory.dim == 100 and model.message.time.dim == 100 and model.codes.dim == 0
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
    drawn = trainer.prepare((1, 0)).negatives
    assert bool((drawn < int(EVENTS.dst.min())).any())  # sources among them, which are no destination
    worse = LinkMetrics(0.5, 0.5, 0.5, 0.5, 0.5, 1, 1)
    better = LinkMetrics(0.9, 0.9, 0.9, 0.9, 0.9, 1, 1)
    trainer.history = [EpochResult(1, 1.0, better, 1.0, {})]
    trainer.history += [EpochResult(epoch, 1.0, worse, 1.0, {}) for epoch in range(2, 60)]
    assert not trainer.finished and trainer.best_epoch == 1


def test_weights_are_chosen_by_the_mean_over_batches() -> None:
    def epoch(number: int, ap: float, ap_batches: float) -> EpochResult:
        return EpochResult(number, 1.0, LinkMetrics(ap, 0.5, ap_batches, 0.5, 0.5, 1, 1), 1.0, {})

    found = []
    for options in ({"protocol": "tgl"}, {}):
        trainer = Trainer(small(), EVENTS, FitConfig.of(options | {"batch_size": 150}))
        trainer.history = [epoch(1, 0.9, 0.7), epoch(2, 0.8, 0.8)]
        found.append(trainer.best_epoch)
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
        for part in (split.train, split.val):  # batches do not run across its edge in training either
            for batch in TemporalBatches(part, 150):
                model.absorb(batch)
    by_hand = evaluate(model, split.test, sampler, batch_size=150)
    assert run.pool == "nodes"
    assert as_training_left_it != run.test  # it has the memory of weights that still moved
    run.restore(model)
    replay(model, EVENTS[: split.test.offset], 150)
    whole = evaluate(model, split.test, sampler, batch_size=150)
    assert run.test == whole
    assert by_hand.ap == pytest.approx(whole.ap, abs=0.05)


def test_live_trackers_follow_a_replay_from_its_first_event_and_frozen_ones_stay() -> None:
    model = small()
    run = pres.fit(
        model, EVENTS, protocol="tgl", batch_size=150, epochs=1, smoothing=pres.PRES.published("equations")
    )
    run.restore(model)
    correction = model.correction
    assert isinstance(correction, pres.smoothing.Filter) and not correction.live
    frozen = correction.trackers.total.clone()
    train = EVENTS.split().train
    replay(model, train, 150)
    assert torch.equal(correction.trackers.total, frozen)
    correction.live = True
    replay(model, train, 150)
    once = correction.trackers.n.clone()
    assert not torch.equal(correction.trackers.total, frozen) and float(once[1].sum()) == 0  # events alone
    replay(model, train, 150)
    assert torch.equal(correction.trackers.n, once)  # they begin anew with the memory


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
    for inside in ({"memory": "exact"}, {"sweeps": 2}, {"refresh": 100, "block": 100}):
        with pytest.raises(OptionError, match="standard memory alone"):
            FitConfig.of({"smoothing": pres.PRES.published("algorithm")} | inside)
    with pytest.raises(OptionError, match="negative_messages are those of Algorithm 2"):
        pres.PRES(negative_messages=True)


def test_a_reading_is_known_by_its_settings() -> None:
    assert pres.PRES().reading == "ours"
    assert pres.PRES.published("equations", beta=0.5, live=True).reading == "equations"
    assert pres.PRES.published("algorithm", negative_messages=True).reading == "algorithm"
    changed = pres.PRES.published("equations").model_dump() | {"longest_gap": 10.0}
    assert pres.PRES(**changed).reading == "ours"
