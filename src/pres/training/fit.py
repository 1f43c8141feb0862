"""`pres.fit`: lag-one training with validation, early stopping and the best state kept."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pydantic
import torch
from torch.nn.functional import softplus

from pres.errors import DivergedError, OptionError, nearest
from pres.events import EventStream, Split
from pres.models import MDGNN
from pres.sampling import NegativeSampler, TemporalBatches
from pres.training.evaluation import evaluate
from pres.training.run import EpochResult, Run, state_of


class FitConfig(pydantic.BaseModel):
    """Settings of a training run; an unknown one is an error."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True)

    batch_size: int = pydantic.Field(200, ge=1)  # events between two updates of the memory
    step_size: int | None = pydantic.Field(
        None, ge=1
    )  # events between two updates of the weights; None: as above
    epochs: int = pydantic.Field(10, ge=1)  # at most
    lr: float = pydantic.Field(1e-3, gt=0, allow_inf_nan=False)
    patience: int = pydantic.Field(3, ge=1)  # epochs without a better validation AP before stopping
    seed: int = pydantic.Field(0, ge=0)  # of negatives and dropout
    eval_batch_size: int = pydantic.Field(200, ge=1)  # in validation and test, whatever batch_size is

    @classmethod
    def of(cls, options: dict[str, Any]) -> FitConfig:
        """Return the settings, or one clear line about the first that cannot be."""
        for name in options:
            if name not in cls.model_fields:
                raise OptionError(f"fit has no option {name!r}.{nearest(name, cls.model_fields)}")
        try:
            config = cls(**options)
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            raise OptionError(f"{first['loc'][0]}={first['input']!r}: {first['msg'].lower()}.") from None
        if config.step_size is not None and config.step_size > config.batch_size:
            raise OptionError(
                f"step_size={config.step_size} exceeds batch_size={config.batch_size}: weights cannot "
                "move less often than the memory."
            )
        return config


def fit(
    model: MDGNN,
    events: EventStream,
    *,
    on_epoch: Callable[[EpochResult], None] | None = None,
    **options: Any,
) -> Run:
    """Train ``model`` on the first part of ``events``, choose the epoch on the second, test on the third.

    The model ends with the weights of the epoch that was best on validation, and with the memory it had after
    the whole stream.

    Args:
        model: A model made from ``events``.
        events: The whole stream, split 70 / 15 / 15 in time.
        on_epoch: Called after every epoch, for instance to print it.
        **options: The fields of `FitConfig`.
    """
    config = FitConfig.of(options)
    split = events.split()
    if config.batch_size >= len(split.train):
        raise OptionError(
            f"batch_size={config.batch_size:,} makes one batch of the {len(split.train):,} training events; "
            f"the memory learns from the second on. Use at most {len(split.train) // 2:,}."
        )
    torch.manual_seed(config.seed)
    sampler = NegativeSampler(events)
    optimiser = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=config.lr)
    history: list[EpochResult] = []
    best: EpochResult | None = None
    best_state: dict[str, torch.Tensor] = {}
    for epoch in range(1, config.epochs + 1):
        result = _epoch(model, split, sampler, optimiser, config, epoch)
        history.append(result)
        if on_epoch is not None:
            on_epoch(result)
        if best is None or result.val.ap > best.val.ap:
            best, best_state = result, state_of(model)
        elif epoch - best.epoch >= config.patience:
            break
    assert best is not None
    model.load_state_dict(best_state)
    test = evaluate(model, split.test, sampler, batch_size=config.eval_batch_size, seed=config.seed)
    return Run(
        dataset=events.info.name,
        variant=events.info.variant,
        model=type(model).__name__,
        config=config.model_dump() | {"step_size": config.step_size or config.batch_size},
        history=history,
        best_epoch=best.epoch,
        val=best.val,
        test=test,
        train_events=len(split.train),
        state=best_state,
    )


def _epoch(
    model: MDGNN,
    split: Split,
    sampler: NegativeSampler,
    optimiser: torch.optim.Optimizer,
    config: FitConfig,
    epoch: int,
) -> EpochResult:
    start = time.perf_counter()
    model.memory.reset()
    model.train()
    total = 0.0
    for batch in TemporalBatches(split.train, config.batch_size):
        negatives = sampler.sample(batch, seed=config.seed * 1_000_003 + epoch).nodes
        total += len(batch) * train_on_batch(model, batch, negatives, optimiser, config.step_size)
    seconds = time.perf_counter() - start
    val = evaluate(model, split.val, sampler, batch_size=config.eval_batch_size, seed=config.seed)
    return EpochResult(epoch, total / len(split.train), val, seconds)


def train_on_batch(
    model: MDGNN,
    batch: EventStream,
    negatives: torch.Tensor,
    optimiser: torch.optim.Optimizer,
    step_size: int | None = None,
) -> float:
    """Take one or more optimiser steps on a temporal batch, absorb it, and return its mean loss.

    With a ``step_size`` below the batch's, every step measures memory anew from the same mail; the batch
    is absorbed once, with the weights of that moment.
    """
    steps = list(TemporalBatches(batch, step_size or len(batch)))
    total, states = 0.0, None
    for step in steps:
        own = negatives[step.offset - batch.offset :][: len(step)]
        view = model.look(step, own, batch.offset)
        states = model.measure(view.nodes)
        positive, negative = model.score(view, states)
        loss = softplus(-positive).mean() + softplus(negative).mean()
        if not bool(loss.isfinite()):
            raise DivergedError(
                f"the loss became {loss.item()} in the batch of events {batch.offset:,} to "
                f"{batch.offset + len(batch) - 1:,}. The model keeps the weights it had. Try a smaller lr."
            )
        optimiser.zero_grad()
        torch.autograd.backward(loss)
        optimiser.step()
        total += len(step) * loss.item()
    model.absorb(batch, states if len(steps) == 1 else None)
    return total / len(batch)
