"""The events that a job is about."""

from __future__ import annotations

from typing import Any

from pres.data.datasets.load import load
from pres.data.stream import EventStream
from pres.paper.experiments.available import READING


def stream(settings: dict[str, Any]) -> EventStream:
    """Return the events of a job: all of the dataset, or the first of them."""
    options = {} if settings["copy"] == "embedded" else {"download": False}
    return load(settings["source"], **options | READING.get(settings["source"], {}))[: settings["events"]]
