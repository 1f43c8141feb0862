import os
import threading

import pytest
import torch

import pres
from pres.errors import NoNegativeError
from pres.models.registry import build_model
from pres.training.config import FitConfig
from pres.training.prefetch import Prefetch, _cores
from pres.training.trainer import Trainer


def test_what_was_begun_is_made_in_another_thread_and_taken_once() -> None:
    made: list[tuple[int, str]] = []

    def make(key: int) -> int:
        made.append((key, threading.current_thread().name))
        return key * key

    ahead: Prefetch[int, int] = Prefetch(make)
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

    ahead: Prefetch[int, int] = Prefetch(fail)
    ahead.begin(1)
    with pytest.raises(NoNegativeError, match="none for 1"):
        ahead.take(1)


@pytest.mark.parametrize(
    ("cores", "threads", "pays"), [(1, 1, False), (2, 1, True), (4, 4, False), (4, 3, True)]
)
def test_it_pays_where_a_core_is_left(
    cores: int, threads: int, pays: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pres.training.prefetch._cores", lambda: cores)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    assert Prefetch(abs).pays == pays


def test_the_cores_are_those_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {2, 5, 7}, raising=False)
    assert _cores() == 3
    monkeypatch.delattr(os, "sched_getaffinity")  # other systems than Linux do not tell
    assert _cores() == 8


@pytest.mark.parametrize("kind", ["tgn", "jodie", "apan"])
def test_training_ahead_gives_the_same_bits(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    events = pres.load("synthetic", num_events=1_200)
    losses = []
    for pays in (False, True):
        monkeypatch.setattr(Prefetch, "pays", pays)
        model = build_model(kind, events, {"memory_dim": 8, "time_dim": 4})
        trainer = Trainer(model, events, FitConfig.of({"batch_size": 100, "step_size": 50}))
        for _ in range(5):
            trainer.train_next_batch()
        losses.append((trainer.loss, model.memory.memory.clone()))
    assert losses[0][0] == losses[1][0] and torch.equal(losses[0][1], losses[1][1])
