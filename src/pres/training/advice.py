"""How large a temporal batch may be: by a stream's pending load, and by a short training on its beginning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
import torch

from pres.errors import OptionError
from pres.events import EventStream
from pres.models import MDGNN
from pres.models.build import build_model
from pres.sampling import PendingProfile, TemporalBatches
from pres.training.config import FitConfig
from pres.training.trainer import USUAL_STEP, Trainer

SIZES = (200, 400, 800, 1600, 3200, 6400)
PROBED = (200, 800, 3200)  # as far as the probe has events for them
PROBE_EVENTS = 30_000
PROBE_EPOCHS = 2
FEWEST_BATCHES = 4  # that the probe needs of a size to tell anything about it


@dataclass(frozen=True)
class Advice:
    """The largest batch whose predicted loss of AP is within a tolerance, and what that rests on."""

    batch_size: int
    tolerance: float  # in points of AP
    lost_updates: dict[int, float]  # by batch size: the share of memory updates that a batch leaves out
    probed: dict[int, float]  # by batch size: validation AP of the short training
    predicted: dict[int, float]  # by batch size: points of AP lost against b = 200, weights moving as often

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return asdict(self)

    def __str__(self) -> str:
        at = self.batch_size
        return (
            f"batches of {at:,} events: they leave out {self.lost_updates[at]:.0%} of memory updates, which "
            f"is predicted to cost {self.predicted[at]:.2f} points of AP (tolerance {self.tolerance:g})."
        )


def advise(
    events: EventStream,
    model: str | Callable[[EventStream], MDGNN] = "tgn",
    *,
    tolerance: float = 0.5,
    sizes: Sequence[int] = SIZES,
    on_probe: Callable[[int], None] = lambda size: None,
    **options: Any,
) -> Advice:
    """Return how large a batch may be for a model on ``events``.

    The model is trained for two epochs on the beginning of the stream, with batches of 200, 800 and 3,200
    events (fewer where the stream is short) but equally many optimiser steps, and validated on what follows.
    The AP that this loses is held against the updates that such batches leave out, and the loss at any size
    is interpolated by those.

    Args:
        events: The whole stream; only its training part is looked at.
        model: A model's name, or what makes a new model of a stream.
        tolerance: The loss of AP that is accepted, in points.
        sizes: Sizes to choose from; 200 always is.
        on_probe: Called before the training with each size.
        **options: The fields of `FitConfig` that training is to have.
    """
    if not tolerance >= 0:
        raise OptionError(
            f"tolerance={tolerance}: the loss that is accepted, in points of AP, is at least 0."
        )
    train = events.split().train
    probe = events[: min(len(train), PROBE_EVENTS)]
    room = len(probe.split().train) // FEWEST_BATCHES
    if room < 2 * USUAL_STEP:  # nothing to compare b = 200 with
        raise OptionError(
            f"the {len(train):,} training events are too few to probe batch sizes with. Give a batch_size."
        )
    allowed = sorted({USUAL_STEP, *(size for size in sizes if size <= len(train) // FEWEST_BATCHES)})
    asked = sorted({min(size, room) for size in PROBED})
    most_lost = options.get("most_lost")
    lost = {size: _lost_updates(train, size, most_lost) for size in sorted({*allowed, *asked})}
    lost_in_probe = {size: _lost_updates(probe.split().train, size, most_lost) for size in asked}
    probed = {}
    for size in asked:
        on_probe(size)
        make = partial(build_model, model) if isinstance(model, str) else model
        probed[size] = _probe(make, probe, size, options)
    predicted = _predicted(lost, probed, lost_in_probe)
    within = [size for size in allowed if predicted[size] <= tolerance]
    return Advice(max(within), tolerance, lost, probed, predicted)


def options_for(
    model: MDGNN,
    events: EventStream,
    tolerance: float,
    options: dict[str, Any],
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Return options of `fit` with the batch size that is advised for ``model``, by probes of its like."""
    kind, made_with = type(model), model.options
    if made_with is None:
        raise OptionError(
            "batch_size='auto' makes models like this one, but it is of your own. Say a number."
        )
    given = {name: value for name, value in options.items() if name != "batch_size"}
    step = FitConfig.of(given | {"batch_size": max(SIZES)}).step_size or USUAL_STEP
    known = torch.get_rng_state()  # that there were probes is not to change the training
    try:
        probing = given | {"on_probe": lambda b: say(f"probing batches of {b:,} events …")}
        advice = advise(events, lambda part: kind(part, **made_with), tolerance=tolerance, **probing)
    finally:
        torch.set_rng_state(known)
    say(str(advice))
    return given | {"batch_size": advice.batch_size, "step_size": min(step, advice.batch_size)}


def _lost_updates(events: EventStream, size: int, most_lost: int | None) -> float:
    edges = TemporalBatches(events, size, most_lost=most_lost).edges
    return PendingProfile.of(events, edges).load().lost_updates


def _probe(
    make: Callable[[EventStream], MDGNN], events: EventStream, size: int, options: dict[str, Any]
) -> float:
    """Return the best validation AP of a short training with batches of ``size``, 200 events per step."""
    given = options | {"batch_size": size, "step_size": USUAL_STEP, "epochs": PROBE_EPOCHS}
    config = FitConfig.of(given)
    torch.manual_seed(config.seed)
    trainer = Trainer(make(events), events, config)
    return max(trainer.run_epoch().val.ap for _ in range(PROBE_EPOCHS))


def _predicted(
    lost: dict[int, float], probed: dict[int, float], lost_in_probe: dict[int, float]
) -> dict[int, float]:
    """Return the points of AP that each size loses, by the updates it leaves out.

    Between the sizes that were probed the loss is interpolated, and it never falls as more is left out;
    beyond the largest it goes on as it did before.
    """
    more = np.array([lost_in_probe[size] - lost_in_probe[USUAL_STEP] for size in probed])
    dropped = np.maximum.accumulate([max(0.0, 100 * (probed[USUAL_STEP] - ap)) for ap in probed.values()])
    rate = (dropped[-1] - dropped[-2]) / (more[-1] - more[-2]) if more[-1] > more[-2] else 0.0
    found = {}
    for size in lost:
        beyond = lost[size] - lost[USUAL_STEP]
        found[size] = float(np.interp(beyond, more, dropped) + rate * max(0.0, beyond - more[-1]))
    return found
