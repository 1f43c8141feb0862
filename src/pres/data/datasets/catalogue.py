"""`pres.data.datasets.catalogue`: every dataset with its statistics, and where it is or how to get it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pres.data.datasets.formats import FORMATS
from pres.data.datasets.locate import Found, locate
from pres.data.datasets.registry import DATASETS, Counts, Dataset
from pres.errors import UnreadableSourceError

Status = Literal["found", "unreadable", "download", "embedded"]


@dataclass(frozen=True)
class Entry:
    """One dataset; counts are the published ones, None where there is none."""

    name: str
    title: str
    events: int | None
    nodes: int | None
    src_nodes: int | None  # bipartite sets only
    dst_nodes: int | None
    edge_features: int | None
    node_features: int | None
    relations: int | None
    positives: int | None  # events with a non-zero label
    time_unit: str | None
    status: Status
    where: str  # the path it was found at, what is wrong there, or where it downloads from
    format: str | None  # layout of the copy that was found
    variant: str | None  # what that copy lacks, as far as the files that are there tell
    note: str
    citation: str


def catalogue() -> list[Entry]:
    """Return one entry per dataset, in the order of the registry; nothing is read or downloaded."""
    return [_entry(dataset) for dataset in DATASETS.values()]


def _entry(dataset: Dataset) -> Entry:
    counts = dataset.counts or Counts(events=0, nodes=0)
    status, where, found = _whereabouts(dataset)
    return Entry(
        name=dataset.name,
        title=dataset.title,
        events=counts.events or None,
        nodes=counts.nodes or None,
        src_nodes=counts.src,
        dst_nodes=counts.dst,
        edge_features=counts.edge_features[0] or None,
        node_features=counts.node_features or None,
        relations=counts.relations or None,
        positives=counts.positives,
        time_unit=dataset.time_unit,
        status=status,
        where=where,
        format=None if found is None else found.format,
        variant=None if found is None else _variant(found, counts),
        note=dataset.by_hand,
        citation=dataset.citation,
    )


def _whereabouts(dataset: Dataset) -> tuple[Status, str, Found | None]:
    if dataset.embedded:
        return "embedded", "made by the library", None
    try:
        found = locate(dataset)
    except UnreadableSourceError as error:  # one damaged copy must not hide the other datasets
        return "unreadable", str(error), None
    if found is not None:
        return "found", str(found.where), found
    return "download", ", ".join(source.url for source in dataset.downloads), None


def _variant(found: Found, counts: Counts) -> str | None:
    """Return what the copy lacks because a file is not there; what a file holds is seen by loading it."""
    lacking = set(FORMATS[found.format].beside) - found.files.keys()
    names = counts.absences(
        edge_features="features" not in lacking,
        node_features="node_features" not in lacking,
        labels="labels" not in lacking,
        relations="relations" not in lacking,
    )
    return ", ".join(names) or None
