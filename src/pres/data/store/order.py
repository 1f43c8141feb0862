"""Orders of more than memory holds: entries go to buckets on disk, and each bucket is then sorted in memory.

Two passes over the data, in the order in which it lies, whatever its size. Both orders are stable, so a
bucket of one node or one time is in order already and may be of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from pres.data.incidence import BLOCK, NO_KEY, IndexArrays, check_key_range, first_of_equal, whole_blocks
from pres.data.store.arrays import Array, ArrayFile, spans
from pres.data.stream import EventStream

AT_ONCE = 1 << 21  # events in memory at a time: their entries, with room to sort them, take about 200 MB
_MOST_NODES = 1 << 16  # in a bucket: a 16-bit sort takes two passes, whatever the length
_SAMPLE = 1 << 20
Show = Callable[[int], None]  # told how many further events are done


def write_index(
    events: EventStream, place: Path, at_once: int = AT_ONCE, show: Show = lambda _: None
) -> None:
    """Write the arrays of the stream's `TemporalIndex` into ``place``; memory grows with the nodes alone."""
    n = len(events)
    check_key_range(events.num_nodes, n)
    counts = np.zeros(events.num_nodes, np.int64)
    for start, stop in spans(n, at_once):
        for nodes in _ends(events, start, stop):
            counts += np.bincount(nodes, minlength=events.num_nodes)
    begin = np.concatenate([[0], np.cumsum(counts)])
    del counts
    entries, of_time = int(begin[-1]), events.t[:0].cpu().numpy().dtype
    with ExitStack() as stack:

        def made(name: str, size: int, dtype: Any = np.int64) -> ArrayFile:
            return stack.enter_context(ArrayFile(_file(place, name), dtype, (size,)))

        files = [
            made("keys", whole_blocks(entries + 1)),
            made("neighbour", entries + 1),
            made("time", entries + 1, of_time),
        ]
        limits = _node_limits(begin, 2 * at_once)
        regions = begin[limits]
        _distribute(_entries(events, limits, at_once, show), files, regions)
        for bucket, (at, stop) in enumerate(pairwise(regions.tolist())):
            if limits[bucket + 1] - limits[bucket] > 1:
                keys, neighbour, time = (file.read(at, stop) for file in files)
                node = (keys // n - limits[bucket]).astype(np.uint16)
                by_node = np.argsort(node, kind="stable")
                for file, values in zip(files, (keys, neighbour, time), strict=True):
                    file.write(values[by_node], at)
            show((stop - at) * n // max(entries, 1))
        of_keys, of_neighbours, of_times = files
        length = of_keys.shape[0]
        of_keys.write(np.full(length - entries, NO_KEY), entries)
        of_neighbours.write(np.zeros(1), entries)
        of_times.write(np.zeros(1), entries)
        landmarks = made("landmarks", whole_blocks(length // BLOCK))
        for at, stop in spans(length, whole_blocks(at_once)):
            landmarks.append(of_keys.read(at, stop)[::BLOCK])
        landmarks.append(np.full(landmarks.shape[0] - landmarks.end, NO_KEY))
        made("start", len(begin)).append(begin)
        first = made("first_of_equal", n)
        for values in _first_of_equal(events.t, at_once):
            first.append(values)


def _file(place: Path, name: str) -> Path:
    assert name in IndexArrays._fields
    return place / f"index-{name}.npy"


def _ends(events: EventStream, start: int, stop: int) -> list[Array]:
    """Return the nodes that get entries of some events: the sources', and the destinations' but for loops."""
    src, dst = events.src[start:stop].cpu().numpy(), events.dst[start:stop].cpu().numpy()
    return [src] if events.directed else [src, dst[src != dst]]


def _entries(
    events: EventStream, limits: Array, at_once: int, show: Show
) -> Iterator[tuple[Array, Sequence[Array]]]:
    """Yield the entries of some events at a time: their buckets, and their keys, neighbours and times."""
    n = len(events)
    for start, stop in spans(n, at_once):
        src, dst, t = (column[start:stop].cpu().numpy() for column in (events.src, events.dst, events.t))
        event = np.arange(start, stop)
        nodes, others = src, dst
        if not events.directed:
            kept = np.stack([np.ones_like(src, dtype=bool), src != dst], axis=1).ravel()
            nodes, others = (np.stack(pair, axis=1).ravel()[kept] for pair in ((src, dst), (dst, src)))
            event, t = (np.repeat(values, 2)[kept] for values in (event, t))
        bucket = np.searchsorted(limits, nodes, side="right") - 1
        yield bucket, (nodes * n + event, others, t)
        show(stop - start)


def _node_limits(begin: Array, most: int) -> Array:
    """Return where buckets of nodes begin and end: of at most ``most`` entries, or of one node."""
    limits, num_nodes = [0], len(begin) - 1
    while limits[-1] < num_nodes:
        lowest = limits[-1]
        fits = int(np.searchsorted(begin, begin[lowest] + most, side="right")) - 1
        limits.append(min(max(fits, lowest + 1), lowest + _MOST_NODES, num_nodes))
    return np.array(limits)


def _distribute(
    pieces: Iterator[tuple[Array, Sequence[Array]]], files: Sequence[ArrayFile], regions: Array
) -> None:
    """Write each entry into the region of its bucket, in the order in which entries come."""
    ends = regions[:-1].copy()
    for bucket, columns in pieces:
        order = np.argsort(bucket.astype(np.uint16) if len(ends) < 1 << 16 else bucket, kind="stable")
        counts = np.bincount(bucket, minlength=len(ends))
        stops = np.cumsum(counts)
        sorted_columns = [values[order] for values in columns]
        for which in counts.nonzero()[0]:
            piece = slice(stops[which] - counts[which], stops[which])
            for file, values in zip(files, sorted_columns, strict=True):
                file.write(values[piece], int(ends[which]))
        ends += counts


def _first_of_equal(t: torch.Tensor, at_once: int) -> Iterator[Array]:
    """Yield, some events at a time, the position of the first event at the time of each."""
    latest, begun = None, 0  # the time of the event before, and where it began
    for start, stop in spans(len(t), at_once):
        some = t[start:stop].cpu()
        found = first_of_equal(some).add_(start)
        if latest is not None and bool(some[0] == latest):
            found[found == start] = begun
        latest, begun = some[-1].clone(), int(found[-1])
        yield found.numpy()


def write_time_order(t: Array, path: Path, at_once: int = AT_ONCE, show: Show = lambda _: None) -> None:
    """Write the rows of ``t`` `[n]` into an array file in the order of time; ties keep their order."""
    bounds = _time_bounds(t, at_once)
    counts = np.zeros(len(bounds) + 1, np.int64)
    for start, stop in spans(len(t), at_once):
        counts += np.bincount(_time_bucket(bounds, t[start:stop]), minlength=len(counts))
    regions = np.concatenate([[0], np.cumsum(counts)])

    def pieces() -> Iterator[tuple[Array, Sequence[Array]]]:
        for start, stop in spans(len(t), at_once):
            yield _time_bucket(bounds, t[start:stop]), (np.arange(start, stop),)
            show(stop - start)

    with ArrayFile(path, np.int64, t.shape) as file:
        _distribute(pieces(), [file], regions)
        for bucket, (at, stop) in enumerate(pairwise(regions.tolist())):
            one_time = 0 < bucket < len(bounds) and bounds[bucket] == _next(bounds[bucket - 1])
            if not one_time:
                rows = file.read(at, stop)
                file.write(rows[np.argsort(t[rows], kind="stable")], at)
            show(stop - at)


def _time_bounds(t: Array, at_once: int) -> Array:
    """Return times that cut all into parts of about ``at_once``; a very frequent one gets its own part."""
    parts = -(-len(t) // at_once)
    sample = np.sort(t[:: max(1, len(t) // _SAMPLE)])
    cuts = sample[np.arange(1, parts) * len(sample) // parts]
    again = cuts[1:][cuts[1:] == cuts[:-1]]
    return np.unique(np.concatenate([cuts, _next(again)]))


def _next(time: Any) -> Any:
    """Return the time that follows."""
    return np.nextafter(time, np.inf) if np.asarray(time).dtype.kind == "f" else time + 1


def _time_bucket(bounds: Array, t: Array) -> Array:
    return np.searchsorted(bounds, t, side="right")
