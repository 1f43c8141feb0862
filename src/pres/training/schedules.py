"""How far weights move at a step: by its number of events, by when it is, and by what they read."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.models import MDGNN, time_units
from pres.nn import EventMessage, IdentityMessage, MailboxScan, ScanUpdater, TimeEncoding
from pres.optim import Adam, Muon
from pres.training.config import FitConfig

USUAL_MOMENTUM = 0.95  # of Muon; of a scan's few long steps fewer are averaged
USUAL_STEP = 200  # events per optimiser step that a learning rate is meant for


def peak_rate(config: FitConfig, per_step: float) -> float:
    """Return the learning rate of steps of so many events, before it rises and falls with time."""
    return config.lr * (math.sqrt(per_step / USUAL_STEP) if config.optimiser == "muon" else 1.0)


def rate(config: FitConfig, per_step: float, done: float, batch: float) -> float:
    """Return the learning rate after ``done`` epochs, of a batch that is a share of one."""
    lr = peak_rate(config, per_step)
    if config.warmup:
        lr *= min(1.0, (done + batch) / config.warmup)
    return lr if config.lr_decay == "none" else lr * 0.5 * (1 + math.cos(math.pi * done / config.epochs))


def optimiser_for(
    model: MDGNN, events: EventStream, config: FitConfig, per_step: float
) -> torch.optim.Optimizer:
    """Return what moves a model's weights through a training of so many events per step.

    Muon is made for few long steps. What is no matrix then comes as far in them as in many usual ones only
    at a rate that grows as the step does, where the matrices' grows as its root. Matrices shrink by as much
    in a long training as in a short one: at the full rate all the time, by a factor of about e.
    """
    if config.optimiser != "muon":
        return Adam([weight for weight in model.parameters() if weight.requires_grad], config.lr)
    lr, train = peak_rate(config, per_step), events.split().train
    return Muon(
        model,
        lr,
        rest=math.sqrt(per_step / USUAL_STEP),
        momentum=USUAL_MOMENTUM ** (math.sqrt(per_step / USUAL_STEP) if model.scans else 1.0),
        weight_decay=per_step / (lr * config.epochs * len(train)),
        still=slow_columns(model, time_units(events)[1]),
    )


def slow_columns(model: MDGNN, gap: float) -> dict[Tensor, slice]:
    """Return which columns of the weights that read messages see slow encodings of time.

    Slow is what turns by less than a radian within ``gap``, the usual time between two events of a node. It
    is about the same in almost all messages of training, and no longer is where a stream slows down.
    """
    message, updater = model.message, model.updater
    if not isinstance(message, IdentityMessage | EventMessage):  # one's own, which may encode time in any way
        return {}
    time = message.time
    if not isinstance(time, TimeEncoding) or time.frequency.requires_grad:
        return {}
    slow = int((time.frequency * (gap / time.scale) < 1).sum())
    if isinstance(updater, ScanUpdater | MailboxScan):
        widths = {weight: weight.shape[1] for weight in updater.of_messages}
        return {weight: slice(width - slow, width) for weight, width in widths.items()}
    assert isinstance(message, IdentityMessage)
    return dict.fromkeys(message.read_by(updater), slice(message.width - slow, message.width))
