"""Lag-one training, one temporal batch at a time, from a state and to a state."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch

from pres.data.stream import EventStream
from pres.errors import OptionError, one_line
from pres.evaluation.link import evaluate
from pres.evaluation.metrics import LinkMetrics
from pres.evaluation.scorer import catch_up, replay
from pres.models import MDGNN, time_units
from pres.nn.allocation import keep_large_blocks
from pres.nn.encoding import limit_times
from pres.sampling import NegativeSampler, TemporalBatches
from pres.sampling.rng import derived
from pres.smoothing import Smoothing, SmoothingSettings
from pres.training.checkpoint import (
    EpochResult,
    Tensors,
    TrainingState,
    load_into,
    random_state,
    set_random_state,
    state_of,
)
from pres.training.config import FitConfig
from pres.training.prefetch import Prefetch
from pres.training.scan_step import PreparedScan, prepare_scan, train_on_scan
from pres.training.schedules import optimiser_for, rate
from pres.training.step import Accumulation, Prepared, arithmetic, prepare, train_on_batch

# Events whose batches are prepared in a row, before the first of them trains.
AT_ONCE = 2_048


class Trainer:
    """Trains a model on the first part of a stream, and validates it on the second after every epoch.

    Args:
        model: A model made from ``events``.
        events: The whole stream, split 70 / 15 / 15 in time.
        config: How to train.
    """

    def __init__(self, model: MDGNN, events: EventStream, config: FitConfig) -> None:
        self.model, self.config, self.device = model, config, model.memory.device
        events = events.to(self.device)
        model.check_stream(events)
        self.split = events.split()
        train = len(self.split.train)
        if config.batch_size >= train:
            raise OptionError(
                f"batch_size={config.batch_size:,} makes one batch of the {train:,} training events; the "
                "memory learns from the second on. "
                + (f"Use at most {train // 2:,}." if train > 1 else "There are too few events to train on.")
            )
        check_scan(model, config)
        keep_large_blocks()
        self.epoch, self.batch, self.seconds = 1, 0, 0.0
        self.batches = TemporalBatches(self.split.train, config.batch_size)
        self.sampler = NegativeSampler(events, pool=config.pool)
        self.sampler.check(self.batches, config.negative_window)  # what cannot be is said before a run begins
        for part in self.split[1:]:
            self.sampler.check(TemporalBatches(part, config.eval_batch_size))
        model.smoothing = smoothing_for(model, events, config.smoothing)
        span = 1e6 * time_units(events)[0]
        limit_times(model, math.inf if config.max_time_delta is None else config.max_time_delta * span)
        self.optimiser = optimiser_for(model, events, config, self.per_step)
        self.ahead = Prefetch(self.prepare)
        self._coming: dict[tuple[int, int], Prepared | PreparedScan] = {}  # batches that are prepared
        self.sums: dict[str, float] = {}  # over the events of the epoch so far
        self.history: list[EpochResult] = []
        self.best: Tensors = {}  # weights, and memory and mail after validation, of the best so far
        self.between_batches = True  # False while a batch or an evaluation is half done
        torch.manual_seed(config.seed)

    @property
    def loss(self) -> float:
        """The loss, summed over the events of the epoch so far."""
        return self.sums.get("loss", 0.0)

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or validation has not improved for long enough."""
        patience, since = self.config.patience, len(self.history) - 1 - self.best_place
        stuck = patience is not None and bool(self.history) and since >= patience
        return self.epoch > self.config.epochs or stuck

    @property
    def best_place(self) -> int:
        """Where in the history the best validation AP so far is, the first of equals."""
        per_batch = self.config.protocol == "tgl"
        aps = [done.val.ap_batches if per_batch else done.val.ap for done in self.history]
        return aps.index(max(aps)) if aps else 0

    def run_epoch(self, on_batch: Callable[[], None] = lambda: None) -> EpochResult:
        """Train to the end of the epoch, or to the next validation inside it, and validate.

        ``on_batch`` is called after every batch. The state after the best validation so far is in ``best``.
        After validation ``between_batches`` stays False until the next batch, or until who keeps states has
        kept that one.
        """
        while self.batch < len(self.batches) and not self._validation_due(self.batch):
            self.train_next_batch()
            on_batch()
        self.between_batches = False
        done, whole = self.batches.bounds[self.batch], self.batch == len(self.batches)
        before = {} if whole else state_of(self.model)
        with arithmetic(self.device, self.config.precision):
            catch_up(self.model, self.split.train[done:], self.config.eval_batch_size)
        val = self.evaluate(self.split.val)
        means = {name: value / done for name, value in self.sums.items()}
        if self.model.smoothing is not None:
            means |= self.model.smoothing.epoch_stats()
        loss, lr, share = means.pop("loss"), self.config.lr, done / len(self.split.train)
        result = EpochResult(self.epoch, loss, val, self.seconds, means, lr, share)
        self.history.append(result)
        if self.history[self.best_place] is result:
            self.best = state_of(self.model)
        if whole:
            self.epoch, self.batch, self.seconds, self.sums = self.epoch + 1, 0, 0.0, {}
        else:
            load_into(self.model, before)
        return result

    def _validation_due(self, batch: int) -> bool:
        """Return whether before this batch a validation is due, after the last one of the epoch."""
        every, last = self.config.validate_every, 0
        if self.history and self.history[-1].epoch == self.epoch:
            last = round(self.history[-1].share * len(self.split.train))
        return every is not None and self.batches.bounds[batch] // every > last // every

    def train_next_batch(self) -> None:
        """Train on one temporal batch; the memory is reset before the first of an epoch."""
        start = time.perf_counter()
        self.between_batches = False
        if self.batch == 0:
            self.model.reset()
        if self.batch == 0 or not self.model.training:  # it asks every module
            self.model.train()
        prepared = self.ahead.take((self.epoch, self.batch))
        batch = prepared.batch
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate() * group.get("factor", 1.0)
        following = self.batch + 1
        if following < len(self.batches) and not self._validation_due(following) and self.ahead.pays:
            self.ahead.begin((self.epoch, following))
        means = self._train_on(prepared)
        for name, value in means.items():
            self.sums[name] = self.sums.get(name, 0.0) + len(batch) * value
        self.batch += 1
        self.seconds += time.perf_counter() - start
        self.between_batches = True

    def _train_on(self, prepared: Prepared | PreparedScan) -> dict[str, float]:
        model, optimiser, precision = self.model, self.optimiser, self.config.precision
        part = self._accumulation()
        if isinstance(prepared, PreparedScan):
            return train_on_scan(model, prepared, optimiser, precision=precision, accumulation=part)
        return train_on_batch(model, prepared, optimiser, precision=precision, accumulation=part)

    def _accumulation(self) -> Accumulation:
        """Return what the next batch is of its optimiser step."""
        bounds, per_step = self.batches.bounds, self.config.batches_per_step
        first = self.batch // per_step * per_step
        stop = min(first + per_step, len(self.batches))
        share = (bounds[self.batch + 1] - bounds[self.batch]) / (bounds[stop] - bounds[first])
        return Accumulation(share, self.batch == first, self.batch + 1 == stop)

    def prepare(self, which: tuple[int, int]) -> Prepared | PreparedScan:
        """Return a batch ready to train on, by its epoch and its number in that."""
        if which not in self._coming:
            self._coming = self._prepare_from(*which)
        return self._coming.pop(which)

    def _prepare_from(self, epoch: int, number: int) -> dict[tuple[int, int], Prepared | PreparedScan]:
        """Return a batch and those that follow it, as long as they are equally long and not too many."""
        model, config, seed = self.model, self.config, derived(self.config.seed, epoch)
        bounds, b = self.batches.bounds, len(self.batches[number])
        stop = min(number + max(1, AT_ONCE // b), len(self.batches))
        if bounds[stop] - bounds[number] != b * (stop - number):
            stop -= 1  # the last batch is of another length
        events, window = self.batches.events[bounds[number] : bounds[stop]], config.negative_window
        drawn = self.sampler.sample(events, seed=seed, num_batches=stop - number, window=window).nodes
        found: dict[tuple[int, int], Prepared | PreparedScan] = {}
        for i, negatives in enumerate(torch.split(drawn, b), start=number):
            if model.scans:
                prepared = prepare_scan(model, self.batches[i], negatives, config.train_staleness, seed)
                found[epoch, i] = prepared
            else:
                found[epoch, i] = prepare(model, self.batches[i], negatives, config.step_size, seed)
        return found

    @property
    def per_step(self) -> float:
        """Events between two optimiser steps."""
        steps = math.ceil(len(self.batches) / self.config.batches_per_step)
        return min(self.config.events_per_step, len(self.split.train) / steps)

    def learning_rate(self) -> float:
        """Return the learning rate of the next batch, which is that of its optimiser step."""
        per_step = self.config.batches_per_step
        share = per_step / len(self.batches)  # of an epoch
        return rate(self.config, self.per_step, self.epoch - 1 + self.batch // per_step * share, share)

    def evaluate(self, part: EventStream) -> LinkMetrics:
        """Return the metrics on a part that follows what the memory has taken in."""
        size, seed = self.config.eval_batch_size, self.config.seed
        with arithmetic(self.device, self.config.precision):
            return evaluate(self.model, part, self.sampler, batch_size=size, seed=seed)

    def test(self) -> LinkMetrics:
        """Return the metrics on the test part, by the weights and the memory that the model has.

        By TGL's protocol the memory is first made anew: these weights replay all that is before.
        """
        if self.config.protocol == "tgl":
            with arithmetic(self.device, self.config.precision):
                replay(self.model, self.split[:2], self.config.eval_batch_size)
        return self.evaluate(self.split.test)

    def state(self) -> TrainingState:
        """Return a copy of everything that training goes on from."""
        return TrainingState(
            model=state_of(self.model),
            optimiser={
                f"{i}.{name}": value.detach().clone()
                for i, moments in self.optimiser.state_dict()["state"].items()
                for name, value in moments.items()
            },
            gradients=self._accumulated(),
            random=random_state(self.device),
            epoch=self.epoch,
            batch=self.batch,
            sums=dict(self.sums),
            seconds=self.seconds,
            history=tuple(self.history),
        )

    def _accumulated(self) -> Tensors:
        """Return a copy of the gradients that wait for the rest of their step's batches."""
        if self.batch % self.config.batches_per_step == 0 or self.batch == len(self.batches):
            return {}
        weights = self.model.named_parameters()
        return {name: weight.grad.clone() for name, weight in weights if weight.grad is not None}

    def restore(self, state: TrainingState) -> None:
        """Stand where ``state`` was taken: the next batch gives the bits it would have given there."""
        load_into(self.model, state.model)
        self.epoch = state.epoch
        known = self.model.memory.position
        if state.batch and (
            state.batch >= len(self.batches.bounds) or known != self.batches.bounds[state.batch]
        ):
            raise OptionError(
                f"the state stands at event {known:,} after {state.batch:,} batches of its epoch: it was "
                f"taken with another batch_size than {self.config.batch_size:,}, or the stream cut elsewhere."
            )
        saved = self.optimiser.state_dict()
        saved["state"] = {}
        for name, value in state.optimiser.items():
            i, moment = name.split(".", 1)
            saved["state"].setdefault(int(i), {})[moment] = value.clone()  # the optimiser writes there
        self.optimiser.load_state_dict(saved)
        self.optimiser.zero_grad()
        for name, gradient in state.gradients.items():
            weight = self.model.get_parameter(name)
            weight.grad = gradient.to(weight.device, copy=True)
        set_random_state(state.random, self.device)
        self.batch, self.sums = state.batch, dict(state.sums)
        self.seconds, self.history = state.seconds, list(state.history)


def smoothing_for(model: MDGNN, events: EventStream, settings: SmoothingSettings | None) -> Smoothing | None:
    """Return the smoothing of a model that has seen nothing of the stream; None without settings."""
    if settings is None:
        return None
    train = events.split().train
    activity = torch.bincount(torch.cat([train.src, train.dst]), minlength=events.num_nodes)
    return settings.build(model.memory, time_units(events)[1], activity)


def check_scan(model: MDGNN, config: FitConfig) -> None:
    """Raise unless the settings are for the way in which the model's memory moves."""
    if not model.scans:
        if config.staleness is not None:
            raise OptionError(
                f"staleness={config.staleness} is of models whose memory is scanned: give the model "
                "cell='scan', or leave staleness out."
            )
        if config.preset is not None:
            raise OptionError(
                f"preset='{config.preset}' is of models whose memory is scanned: give the model "
                "cell='scan', or leave preset out."
            )
        return
    if config.events_per_step < config.batch_size:
        raise OptionError(
            f"step_size={config.step_size} is less than batch_size={config.batch_size}: a model with "
            "cell='scan' takes at most one step per batch."
        )
    if config.smoothing is not None and config.smoothing.corrects:
        raise OptionError(
            "a model with cell='scan' updates memory at every event, and takes no filter: train it with "
            "PRES(filter=False), which is the coherence objective alone."
        )


def usable_device(name: torch.device | str) -> torch.device:
    """Return the device of that name, if something can be computed on it here."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).tolist()  # to be there is not enough: it must hold numbers
    except (RuntimeError, AssertionError) as error:
        raise OptionError(f"device '{name}' cannot be used here: {one_line(error)}.") from None
    return device
