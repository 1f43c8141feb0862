"""From raw events to a checked `EventStream`: dense ids, time order, published counts, variant."""

from __future__ import annotations

import dataclasses
import os

import polars as pl
import torch
from torch import Tensor

from pres.data.datasets.raw import RawEvents
from pres.data.datasets.registry import Counts, Dataset
from pres.data.ids import IdMap
from pres.data.info import StreamInfo
from pres.data.stream import EventStream
from pres.errors import DatasetCountError, OptionError, RowCountError, UnreadableSourceError, notify


def cleaned(raw: RawEvents, counts: Counts) -> RawEvents:
    """Return the events without columns that only stand in for something that does not exist."""
    return dataclasses.replace(
        raw,
        x=None if raw.x is None or _all_zero(raw.x) else raw.x,
        label=None if counts.positives is None else raw.label,
        relation=raw.relation if counts.relations else None,
    )


def assemble(
    raw: RawEvents, dataset: Dataset, counts: Counts, variants: list[str], features: bool
) -> EventStream:
    """Return the stream of cleaned events; wrong counts are an error that shows both.

    Args:
        raw: What the files hold.
        dataset: What they should be.
        counts: The published counts to hold them against.
        variants: How the events are known to differ from the whole dataset.
        features: Whether to keep features and relations; they are checked in any case.
    """
    for name, part in raw.per_event().items():
        if len(part) != len(raw):
            raise RowCountError(f"{raw.where}: {name} has {len(part):,} rows for {len(raw):,} events.")
    src, dst, ids = _dense(raw, bipartite=counts.src is not None)
    _check_counts(raw, dataset, counts, ids)
    kept = _ids_kept(ids)
    if raw.node_x is not None and int(kept.max()) >= len(raw.node_x):
        raise RowCountError(
            f"{raw.where}: the node features have {len(raw.node_x):,} rows, but there is a node "
            f"{int(kept.max()):,}; row k must belong to node k."
        )
    raw = dataclasses.replace(raw, src=src, dst=dst)
    if not features:
        raw = dataclasses.replace(raw, x=None, node_x=None, relation=None)
    _check_memory(raw, dataset)
    raw = _in_time_order(raw)
    lacks = counts.absences(
        edge_features=raw.x is not None,
        node_features=raw.node_x is not None,
        labels=raw.label is not None,
        relations=raw.relation is not None,
    )
    levels = None if raw.relation is None else torch.unique(raw.relation, return_inverse=True)
    try:
        return EventStream(
            src=raw.src,
            dst=raw.dst,
            t=raw.t.double(),
            x=raw.x,
            categories=None if levels is None else levels[1].unsqueeze(1),
            label=raw.label,
            node_x=None if raw.node_x is None else raw.node_x[kept],
            num_nodes=ids.num_nodes,
            num_src=ids.num_src,
            ids=ids,
            info=StreamInfo(
                name=dataset.name,
                variant=", ".join([*variants, *lacks]) or None,
                time_unit=dataset.time_unit,
                feature_names=() if raw.x is None else tuple(f"f{i}" for i in range(raw.x.shape[1])),
                category_names=() if levels is None else ("relation",),
                category_levels=() if levels is None else (tuple(levels[0].tolist()),),
            ),
        )
    except OptionError as error:  # a value in the file that no stream can hold
        raise UnreadableSourceError(f"{raw.where}: {error}") from None


def _all_zero(values: Tensor) -> bool:
    # The first rows decide almost always, and spare reading a large tensor from disk.
    return not bool(values[:1000].any()) and not bool(values.any())


def _in_time_order(raw: RawEvents) -> RawEvents:
    backwards = int((raw.t[1:] < raw.t[:-1]).sum())
    if not backwards:
        return raw
    notify(f"{raw.where}: times go back {backwards:,} times; the events were sorted (ties keep their order).")
    return raw.take(torch.argsort(raw.t, stable=True))


def _dense(raw: RawEvents, bipartite: bool) -> tuple[Tensor, Tensor, IdMap]:
    """Return both ends numbered from 0 in order of id, and the ids that the file gave them.

    Public copies count from 0 or from 1, items on their own or after the users: all become one.
    """
    if not bipartite:
        both = torch.cat([raw.src, raw.dst])
        kept, nodes = torch.unique(both, return_inverse=True)
        return nodes[: len(raw)], nodes[len(raw) :], IdMap(_series(kept))
    sources, src = torch.unique(raw.src, return_inverse=True)
    destinations, dst = torch.unique(raw.dst, return_inverse=True)
    return src, dst + len(sources), IdMap(_series(sources), _series(destinations))


def _series(ids: Tensor) -> pl.Series:
    return pl.Series("id", ids.numpy())


def _ids_kept(ids: IdMap) -> Tensor:
    """Return the file's id of every node, sources before destinations."""
    sides = [ids.src_values] if ids.dst_values is None else [ids.src_values, ids.dst_values]
    return torch.cat([torch.from_numpy(side.to_numpy(writable=True)) for side in sides])


def _check_counts(raw: RawEvents, dataset: Dataset, counts: Counts, ids: IdMap) -> None:
    """Raise unless the events have the published counts."""
    nodes = ids.num_nodes
    if raw.node_x is not None and len(raw.node_x) == counts.nodes:
        nodes = counts.nodes  # published is the size of the table, though not every node has an event
    rows: list[tuple[str, int, tuple[int, ...]]] = [
        ("events", len(raw), (counts.events,)),
        ("nodes", nodes, (counts.nodes,)),
    ]
    if counts.src is not None and counts.dst is not None and ids.num_src is not None:
        rows += [
            ("source nodes", ids.num_src, (counts.src,)),
            ("destination nodes", ids.num_nodes - ids.num_src, (counts.dst,)),
        ]
    if raw.label is not None and counts.positives is not None:
        rows.append(("positives", int((raw.label != 0).sum()), (counts.positives,)))
    if raw.x is not None:
        rows.append(("edge features", raw.x.shape[1], counts.edge_features))
    if raw.node_x is not None:
        rows.append(("node features", raw.node_x.shape[1], (counts.node_features,)))
    if raw.relation is not None:
        rows.append(("relations", len(torch.unique(raw.relation)), (counts.relations,)))
    wrong = [
        f"{what}: {' or '.join(f'{number:,}' for number in published)} published, {found:,} found"
        for what, found, published in rows
        if found not in published
    ]
    if wrong:
        raise DatasetCountError(
            f"{raw.where} is not '{dataset.name}' as published ({'; '.join(wrong)}). "
            "Get a fresh copy, or read it as your own data with pres.read."
        )


def _check_memory(raw: RawEvents, dataset: Dataset) -> None:
    """Raise if the features, four bytes each, cannot fit this machine."""
    if raw.x is None or not hasattr(os, "sysconf"):
        return
    needed = 4 * raw.x.numel()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > memory:
        instead = " or ".join(["features=False", *(f"part={part!r}" for part in dataset.parts)])
        raise OptionError(
            f"the edge features of '{dataset.name}' take {needed / 2**30:,.0f} GiB of memory, this machine "
            f"has {memory / 2**30:,.0f} GiB. Load it with {instead}."
        )
