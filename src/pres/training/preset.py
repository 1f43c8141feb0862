"""How large the batches of ``preset="large"`` are: as large as leaves an epoch enough optimiser steps."""

from __future__ import annotations

from typing import Any

from pres.data.stream import EventStream

STEPS = 30  # that an epoch has at least
SMALLEST, LARGEST = 200, 3_200


def batch_size_for(train_events: int) -> int:
    """Return the batch size, in whole hundreds, for so many training events."""
    return max(SMALLEST, min(LARGEST, train_events // STEPS // 100 * 100))


def sized(options: dict[str, Any], events: EventStream) -> tuple[dict[str, Any], str | None]:
    """Return options of `fit` with a batch size, and the words that say why; None if one was given.

    Args:
        options: Fields of `FitConfig`.
        events: The whole stream.
    """
    if options.get("preset") != "large" or options.get("batch_size") is not None:
        return options, None
    train = len(events.split().train)
    b = batch_size_for(train)
    steps = -(-train // b)
    why = "the largest that it uses" if b == LARGEST else f"which leaves an epoch {steps} optimiser steps"
    line = f"preset='large': batches of {b:,} events for {train:,} of training, {why}."
    return options | {"batch_size": b}, line
