"""Which datasets are at hand, and their events; nothing is downloaded, and none stands in for another."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from pres.data.datasets.load import load
from pres.data.datasets.locate import locate
from pres.data.datasets.registry import Dataset, find_dataset
from pres.data.stream import EventStream
from pres.errors import UnreadableSourceError

READING = {"gdelt": {"part": "1% sample"}}  # the paper's 1,912,909 events are that part of TGL's


def copies_at_hand(names: Sequence[str]) -> tuple[dict[str, str], dict[str, str]]:
    """Return a short name of the copy of each dataset that is at hand, and for the others how to get them."""
    copies: dict[str, str] = {}
    missing: dict[str, str] = {}
    for name in dict.fromkeys(names):
        dataset = find_dataset(name)
        try:
            copy = _copy(dataset)
        except UnreadableSourceError as error:
            missing[dataset.name] = str(error)
            continue
        if copy is None:
            missing[dataset.name] = how_to_get(dataset)
        else:
            copies[dataset.name] = copy
    return copies, missing


def how_to_get(dataset: Dataset) -> str:
    """Return one line on where a dataset comes from."""
    urls = ", ".join(source.url for source in dataset.downloads)
    line = (
        f"pres.load('{dataset.name}') downloads it from {urls}; or get it by other means and name its folder "
        f"in PRES_DATA. {dataset.by_hand}"
    )
    return line.rstrip()


def has_labels(name: str) -> bool:
    """Return whether labels are published with the dataset."""
    counts = find_dataset(name).counts
    return counts is None or counts.positives is not None  # the embedded stream has them


def stream(settings: dict[str, Any]) -> EventStream:
    """Return the events of a job: all of the dataset, or the first of them."""
    options = {} if settings["copy"] == "embedded" else {"download": False}
    return load(settings["source"], **options | READING.get(settings["source"], {}))[: settings["events"]]


def _copy(dataset: Dataset) -> str | None:
    """Return what tells this copy from another (with features, say), without reading it."""
    if dataset.embedded:
        return "embedded"
    found = locate(dataset)
    if found is None:
        return None
    files = sorted((path.name, path.stat().st_size) for path in found.sources)
    return hashlib.blake2b(repr((found.format, files)).encode(), digest_size=4).hexdigest()
