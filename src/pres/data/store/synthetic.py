"""The synthetic stream at any size: made, sorted and written some events at a time."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np

from pres.data.ids import IdMap
from pres.data.store.arrays import ArrayFile, ColumnFiles
from pres.data.store.folder import mapped, stream_in
from pres.data.store.order import Show, permute, write_time_order
from pres.data.stream import EventStream, Origin
from pres.data.synthetic import SyntheticPlan, synthetic_stream
from pres.errors import OptionError, nearest

_OPTIONS = {name: p.default for name, p in inspect.signature(synthetic_stream).parameters.items()}


def write_synthetic(place: Path, options: dict[str, Any], at_once: int, show: Show) -> EventStream:
    """Write the columns of `synthetic_stream` of these options into ``place``, and return them as a stream.

    Memory is needed for the bursts, of which there is one per 6 events, and for ``at_once`` events.
    """
    for name in options:
        if name not in _OPTIONS:
            raise OptionError(f"the synthetic stream has no option {name!r}.{nearest(name, _OPTIONS)}")
    given = _OPTIONS | options
    n = given["num_events"]
    sizes = {name: given[name] for name in ("num_users", "num_items", "num_topics", "features", "seed")}
    plan = SyntheticPlan(n, **sizes, at_once=at_once)
    with ColumnFiles(place, n) as columns:
        for part in plan.parts():
            drawn = {name: values.numpy() for name, values in part._asdict().items()}
            columns.append(**drawn | ({} if given["labels"] else {"label": None}))
            show(len(part.t))
    order = place / "order.npy"
    write_time_order(mapped(place / "t.npy").numpy(), order, at_once, show)
    for name in columns.names:
        permute(place / f"{name}.npy", mapped(order).numpy(), at_once)
    if plan.features:
        topic, places = mapped(place / "topic.npy"), plan.places()
        with ArrayFile(place / "x.npy", np.float32, (n, plan.features)) as file:
            for noise in plan.noise():
                file.append(noise.add_(places[topic[file.end : file.end + len(noise)]]).numpy())
    for scratch in (order, place / "topic.npy"):
        scratch.unlink()
    ids = IdMap.dense(plan.num_users + plan.num_items, plan.num_users)
    info = dataclasses.replace(plan.info, origin=Origin("synthetic", options))
    return stream_in(place, [path.stem for path in place.glob("*.npy")], ids, False, info)
