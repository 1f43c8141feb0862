"""Lag-one training, one temporal batch at a time, from a state and to a state."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.functional import softplus

from pres.errors import DivergedError, OptionError, one_line
from pres.events import EventStream
from pres.models import MDGNN
from pres.sampling import NegativeSampler, TemporalBatches
from pres.sampling.counter_random import derived
from pres.training.config import FitConfig
from pres.training.evaluation import evaluate
from pres.training.metrics import LinkMetrics
from pres.training.state import EpochResult, Tensors, TrainingState, state_of


class Trainer:
    """Trains a model on the first part of a stream, and validates it on the second after every epoch.

    Args:
        model: A model made from ``events``.
        events: The whole stream, split 70 / 15 / 15 in time.
        config: How to train.
    """

    def __init__(self, model: MDGNN, events: EventStream, config: FitConfig) -> None:
        device = usable_device(config.device or model.memory.memory.device)
        self.model, self.config, self.device = model.to(device), config, device
        events = events.to(device)
        model.check_stream(events)
        self.split = events.split()
        train = len(self.split.train)
        if config.batch_size >= train:
            raise OptionError(
                f"batch_size={config.batch_size:,} makes one batch of the {train:,} training events; the "
                f"memory learns from the second on. Use at most {train // 2:,}."
            )
        self.batches = TemporalBatches(self.split.train, config.batch_size)
        self.sampler = NegativeSampler(events)
        self.optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=config.lr)
        self.epoch, self.batch, self.loss, self.seconds = 1, 0, 0.0, 0.0
        self.history: list[EpochResult] = []
        self.between_batches = True  # False while a batch or an evaluation is half done
        torch.manual_seed(config.seed)
        if config.compile:
            model.compile_parts()

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or validation has not improved for long enough."""
        done = len(self.history)
        return done >= self.config.epochs or (done > 0 and done - self.best_epoch >= self.config.patience)

    @property
    def best_epoch(self) -> int:
        """The epoch of the best validation AP so far, the first of equals; 0 before any."""
        return max(self.history, key=lambda done: done.val.ap).epoch if self.history else 0

    def run_epoch(self, on_batch: Callable[[], None] = lambda: None) -> EpochResult:
        """Train to the end of the epoch, from wherever it stands, then validate.

        ``on_batch`` is called after every batch. After validation ``between_batches`` stays False until the
        next batch, or until who keeps states has kept that of the whole epoch.
        """
        while self.batch < len(self.batches):
            self.train_next_batch()
            on_batch()
        self.between_batches = False
        val = self.evaluate(self.split.val)
        result = EpochResult(self.epoch, self.loss / len(self.split.train), val, self.seconds)
        self.history.append(result)
        self.epoch, self.batch, self.loss, self.seconds = self.epoch + 1, 0, 0.0, 0.0
        return result

    def train_next_batch(self) -> None:
        """Train on one temporal batch; the memory is reset before the first of an epoch."""
        start = time.perf_counter()
        self.between_batches = False
        if self.batch == 0:
            self.model.memory.reset()
        self.model.train()
        batch = self.batches[self.batch]
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate()
        seed = derived(self.config.seed, self.epoch)
        negatives = self.sampler.sample(batch, seed=seed).nodes
        step_size, precision = self.config.step_size, self.config.precision
        loss = train_on_batch(self.model, batch, negatives, self.optimiser, step_size, precision, seed)
        self.loss += len(batch) * loss
        self.batch += 1
        self.seconds += time.perf_counter() - start
        self.between_batches = True

    def learning_rate(self) -> float:
        """Return the step size of the next batch."""
        if self.config.lr_decay == "none":
            return self.config.lr
        done = (self.epoch - 1 + self.batch / len(self.batches)) / self.config.epochs
        return self.config.lr * 0.5 * (1 + math.cos(math.pi * done))

    def evaluate(self, part: EventStream) -> LinkMetrics:
        """Return the metrics on a part that follows what the memory has taken in."""
        size, seed = self.config.eval_batch_size, self.config.seed
        with arithmetic(self.device, self.config.precision):
            return evaluate(self.model, part, self.sampler, batch_size=size, seed=seed)

    def state(self) -> TrainingState:
        """Return a copy of everything that training goes on from."""
        return TrainingState(
            model=state_of(self.model),
            optimiser={
                f"{i}.{name}": value.detach().clone()
                for i, moments in self.optimiser.state_dict()["state"].items()
                for name, value in moments.items()
            },
            random=_random_state(self.device),
            epoch=self.epoch,
            batch=self.batch,
            loss=self.loss,
            seconds=self.seconds,
            history=tuple(self.history),
        )

    def restore(self, state: TrainingState) -> None:
        """Stand where ``state`` was taken: the next batch gives the bits it would have given there."""
        load_into(self.model, state.model)
        known = int(self.model.memory.position)
        if state.batch and (
            state.batch >= len(self.batches.bounds) or known != self.batches.bounds[state.batch]
        ):
            raise OptionError(
                f"the state stands at event {known:,} after {state.batch:,} batches of its epoch: it was "
                f"taken with another batch_size than {self.config.batch_size:,}."
            )
        saved = self.optimiser.state_dict()
        saved["state"] = {}
        for name, value in state.optimiser.items():
            i, moment = name.split(".", 1)
            saved["state"].setdefault(int(i), {})[moment] = value
        self.optimiser.load_state_dict(saved)
        _set_random_state(state.random, self.device)
        self.epoch, self.batch, self.loss = state.epoch, state.batch, state.loss
        self.seconds, self.history = state.seconds, list(state.history)


def train_on_batch(
    model: MDGNN,
    batch: EventStream,
    negatives: Tensor,
    optimiser: torch.optim.Optimizer,
    step_size: int | None = None,
    precision: str = "float32",
    seed: int = 0,
) -> float:
    """Take one or more optimiser steps on a temporal batch, absorb it, and return its mean loss.

    With a ``step_size`` below the batch's, every step measures memory anew from the same mail; the batch
    is absorbed once, with the weights of that moment. ``seed`` is that of ``"uniform"`` neighbours.
    """
    steps = list(TemporalBatches(batch, step_size or len(batch)))
    total, states = 0.0, None
    for step in steps:
        own = negatives[step.offset - batch.offset :][: len(step)]
        view = model.look(step, own, batch.offset, seed)
        with arithmetic(negatives.device, precision):
            states = model.measure(view.nodes)
            positive, negative = model.score(view, states)
        loss = softplus(-positive).mean() + softplus(negative).mean()
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        _check_finite(loss, optimiser, batch)
        optimiser.step()
        total += len(step) * loss.item()
    with arithmetic(negatives.device, precision):
        model.absorb(batch, states if len(steps) == 1 else None)
    return total / len(batch)


def _check_finite(loss: Tensor, optimiser: torch.optim.Optimizer, batch: EventStream) -> None:
    """Raise before a step that would spoil the weights."""
    parameters = (p for group in optimiser.param_groups for p in group["params"] if p.grad is not None)
    norm = torch.nn.utils.get_total_norm([p.grad for p in parameters])
    if not bool((loss.detach() + norm).isfinite()):
        what = f"the loss became {loss.item()}" if not bool(loss.isfinite()) else "a gradient became infinite"
        raise DivergedError(
            f"{what} in the batch of events {batch.offset:,} to {batch.offset + len(batch) - 1:,}. "
            "The model keeps the weights it had. Try a smaller lr."
        )


def arithmetic(device: torch.device, precision: str) -> torch.autocast:
    """Return the context in which matrix products are made in ``precision``."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bfloat16")


def load_into(model: MDGNN, state: Tensors) -> None:
    """Give ``model`` the weights, memory and mail of a state, which must be of a model made alike."""
    own = model.state_dict()
    for name in own.keys() | state.keys():
        theirs, ours = state.get(name), own.get(name)
        if theirs is None or ours is None or theirs.shape != ours.shape:
            shapes = [str(list(value.shape)) if value is not None else "missing" for value in (theirs, ours)]
            raise OptionError(
                f"the state is of another model or stream than this {type(model).__name__}: "
                f"{name} is {shapes[0]} there and {shapes[1]} here. Make the model with the run's settings."
            )
    model.load_state_dict(state)


def usable_device(name: torch.device | str) -> torch.device:
    """Return the device of that name, if something can be computed on it here."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).tolist()  # to be there is not enough: it must hold numbers
    except (RuntimeError, AssertionError) as error:
        raise OptionError(f"device '{name}' cannot be used here: {one_line(error)}.") from None
    return device


def _random_state(device: torch.device) -> Tensors:
    state = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        state["cuda"] = torch.cuda.get_rng_state(device)
    return state


def _set_random_state(state: Tensors, device: torch.device) -> None:
    torch.set_rng_state(state["cpu"].cpu())
    if device.type == "cuda" and "cuda" in state:
        torch.cuda.set_rng_state(state["cuda"].cpu(), device)
