import os
import threading

import pytest
import torch

import pres
from pres.errors import NoNegativeError
from pres.models.build import build_model
from pres.training import FitConfig
from pres.training.ahead import Ahead
from pres.training.trainer import Trainer


def test_what_was_begun_is_made_in_another_thread_and_taken_once() -> None:
    made: list[tuple[int, str]] = []

    def make(key: int) -> int:
        made.append((key, threading.current_thread().name))
        return key * key

    ahead: Ahead[int, int] = Ahead(make)
    ahead.begin(3)
    assert [ahead.take(3), ahead.take(3)] == [9, 9]
    ahead.begin(4)
    assert ahead.take(5) == 25  # another was wanted in the end
    main = threading.current_thread().name
    assert [key for key, _ in made] == [3, 3, 4, 5]
    assert [name == main for _, name in made] == [False, True, False, True]


def test_an_error_is_raised_where_the_thing_is_taken() -> None:
    def fail(key: int) -> int:
        raise NoNegativeError(f"none for {key}")

    ahead: Ahead[int, int] = Ahead(fail)
    ahead.begin(1)
    with pytest.raises(NoNegativeError, match="none for 1"):
        ahead.take(1)


def test_it_pays_where_a_core_is_left() -> None:
    usual, cores = torch.get_num_threads(), len(os.sched_getaffinity(0))
    ahead: Ahead[int, int] = Ahead(abs)
    try:
        torch.set_num_threads(cores)
        assert not ahead.pays
        torch.set_num_threads(max(1, cores - 1))
        assert ahead.pays == (cores > 1)
    finally:
        torch.set_num_threads(usual)


@pytest.mark.parametrize("kind", ["tgn", "jodie", "apan"])
def test_training_ahead_gives_the_same_bits(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = pres.load("synthetic", num_events=1_200)
    losses = []
    for pays in (False, True):
        monkeypatch.setattr(Ahead, "pays", pays)
        model = build_model(kind, events, {"memory_dim": 8, "time_dim": 4})
        trainer = Trainer(model, events, FitConfig.of({"batch_size": 100, "step_size": 50}))
        for _ in range(5):
            trainer.train_next_batch()
        losses.append((trainer.loss, model.memory.memory.clone()))
    assert losses[0][0] == losses[1][0] and torch.equal(losses[0][1], losses[1][1])
