"""How large a temporal batch may be: by what it loses, and by a short training on a stream's beginning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.models import MDGNN
from pres.models.registry import build_model
from pres.sampling import PendingProfile, TemporalBatches
from pres.training.config import FitConfig, batch_size_for
from pres.training.schedules import USUAL_STEP
from pres.training.trainer import Trainer

SIZES = (200, 400, 800, 1600, 3200, 6400)
PROBED = (200, 800, 3200)  # as far as the probe has events for them
PROBE_EVENTS = 30_000
PROBE_EPOCHS = 2
TOLERANCE = 0.5  # points of AP
FEWEST_BATCHES = 4  # that the probe needs of a size to tell anything about it


@dataclass(frozen=True)
class FoundBatchSize:
    """The largest batch whose predicted loss of AP is within a tolerance, and what that rests on."""

    batch_size: int
    tolerance: float  # in points of AP
    lost_updates: dict[int, float]  # by batch size: the share of memory updates left out
    probed: dict[int, float]  # by batch size: validation AP of the short training
    predicted: dict[int, float]  # by batch size: points of AP lost against b = 200

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        at = self.batch_size
        lost = self.lost_updates[at]
        updates = (
            f"they leave out {lost:.0%} of memory updates" if lost else "they leave out no memory update"
        )
        return (
            f"batches of {at:,} events: {updates}, and are predicted to cost {self.predicted[at]:.2f} points "
            f"of AP (tolerance {self.tolerance:g})."
        )


def find_batch_size(
    events: EventStream,
    model: str | Callable[[EventStream], MDGNN] = "tgn",
    *,
    tolerance: float = TOLERANCE,
    sizes: Sequence[int] = SIZES,
    on_probe: Callable[[int], None] = lambda size: None,
    **options: Any,
) -> FoundBatchSize:
    """Return how large a batch may be for a model on ``events``.

    The model is trained for two epochs on the beginning of the stream, with batches of 200, 800 and 3,200
    events (fewer where the stream is short), otherwise as it will be trained, and validated on what follows.
    The AP that a size loses there is held against what its batches lose: standard ones memory updates,
    those of a scan optimiser steps. By that the loss on the whole stream is interpolated. No size leaves an
    epoch of a scan fewer steps than `batch_size_for` does.

    Args:
        events: The whole stream; only its training part is looked at.
        model: A model's name, or what makes a new model of a stream.
        tolerance: The loss of AP that is accepted, in points.
        sizes: Sizes to choose from; 200 always is.
        on_probe: Called before the training with each size.
        **options: The fields of `FitConfig` that training is to have.
    """
    if isinstance(tolerance, bool) or not isinstance(tolerance, int | float) or not tolerance >= 0:
        raise OptionError(
            f"tolerance={tolerance!r}: the loss that is accepted, in points of AP, is a number of at least 0."
        )
    train = events.split().train
    probe = events[: min(len(train), PROBE_EVENTS)]
    room = len(probe.split().train) // FEWEST_BATCHES
    if room < 2 * USUAL_STEP:  # nothing to compare b = 200 with
        raise OptionError(
            f"the {len(train):,} training events are too few to probe batch sizes with: it takes about "
            f"{round(2 * USUAL_STEP * FEWEST_BATCHES / 0.7, -2):,.0f}. Take batches of {USUAL_STEP} or less."
        )
    make = partial(build_model, model) if isinstance(model, str) else model
    scans, epochs = make(probe).scans, FitConfig.of(_known(options)).epochs
    most = batch_size_for(len(train)) if scans else len(train) // FEWEST_BATCHES
    allowed = sorted({USUAL_STEP, *(size for size in sizes if size <= most)})
    asked = sorted({min(size, room) for size in PROBED})
    configs = {size: _config(options, size, scans) for size in sorted({*allowed, *asked})}
    lost = {size: 0.0 if scans else _lost_updates(train, config) for size, config in configs.items()}
    part = probe.split().train
    if scans:
        load = {size: size / (epochs * len(train)) for size in configs}
        load_in_probe = {size: size / (PROBE_EPOCHS * len(part)) for size in asked}
    else:
        load, load_in_probe = lost, {size: _lost_updates(part, configs[size]) for size in asked}
    probed = {}
    for size in asked:
        on_probe(size)
        probed[size] = _probe(make, probe, configs[size])
    predicted = _predicted(load, probed, load_in_probe)
    best = max(size for size in allowed if predicted[size] <= tolerance)
    return FoundBatchSize(best, tolerance, lost, probed, predicted)


def options_for(
    model: MDGNN,
    events: EventStream,
    tolerance: float | None,
    options: dict[str, Any],
    on_probe: Callable[[int], None] = lambda size: None,
) -> tuple[dict[str, Any], str]:
    """Return options of `fit` with the batch size that is found for ``model``, by probes of its like.

    Beside them are the words that say what was chosen.
    """
    kind, made_with = type(model), model.options
    if made_with is None:
        raise OptionError(
            "batch_size='auto' makes models like this one, but it is of your own. Say a number."
        )
    given = {name: value for name, value in options.items() if name != "batch_size"}
    tolerance = TOLERANCE if tolerance is None else tolerance
    known = torch.get_rng_state()  # that there were probes is not to change the training
    try:
        found = find_batch_size(
            events, lambda part: kind(part, **made_with), tolerance=tolerance, on_probe=on_probe, **given
        )
    finally:
        torch.set_rng_state(known)
    config = _config(given, found.batch_size, model.scans)
    chosen = given | {"batch_size": found.batch_size, "step_size": config.step_size}
    return chosen, f"{found} Weights move every {config.events_per_step:,} events."


def check_tolerance(tolerance: float | None, auto: bool) -> None:
    """Raise if a tolerance is given that nothing asks for."""
    if tolerance is not None and not auto:
        raise OptionError(
            f"tolerance={tolerance!r} is for batch_size='auto': give that too, or leave out tolerance."
        )


def _known(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options that say nothing of sizes, which are not known yet."""
    return {name: value for name, value in options.items() if name not in ("batch_size", "step_size")}


def _config(options: dict[str, Any], size: int, scans: bool) -> FitConfig:
    """Return the settings of a short training with batches of ``size``, validated after each epoch.

    Unless a step size is given, weights move every 200 events. Those of a scan move with every batch, or with
    every several if the step size is larger.
    """
    step = options.get("step_size")
    if scans:
        step = None if step is None or step <= size else step
    else:
        step = min(USUAL_STEP, size) if step is None else step
    own = {"batch_size": size, "step_size": step, "epochs": PROBE_EPOCHS, "validate_every": None}
    return FitConfig.of(_known(options) | own)


def _lost_updates(events: EventStream, config: FitConfig) -> float:
    """Return the share of memory updates that standard batches leave out."""
    bounds = TemporalBatches(events, config.batch_size).bounds
    return PendingProfile.of(events, torch.tensor(bounds)).load().lost_updates


def _probe(make: Callable[[EventStream], MDGNN], events: EventStream, config: FitConfig) -> float:
    """Return the best validation AP of a short training."""
    torch.manual_seed(config.seed)
    trainer = Trainer(make(events), events, config)
    return max(trainer.run_epoch().val.ap for _ in range(PROBE_EPOCHS))


def _predicted(
    load: dict[int, float], probed: dict[int, float], load_in_probe: dict[int, float]
) -> dict[int, float]:
    """Return the points of AP that each size loses, by its load: the share of updates or steps that it loses.

    Between the sizes that were probed the loss is interpolated, and it never falls as the load grows;
    beyond the largest it goes on as it did before.
    """
    more = np.array([load_in_probe[size] - load_in_probe[USUAL_STEP] for size in probed])
    dropped = np.maximum.accumulate([max(0.0, 100 * (probed[USUAL_STEP] - ap)) for ap in probed.values()])
    rate = (dropped[-1] - dropped[-2]) / (more[-1] - more[-2]) if more[-1] > more[-2] else 0.0
    found = {}
    for size in load:
        beyond = load[size] - load[USUAL_STEP]
        found[size] = float(np.interp(beyond, more, dropped) + rate * max(0.0, beyond - more[-1]))
    return found
