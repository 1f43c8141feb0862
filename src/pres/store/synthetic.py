"""The synthetic stream at any size: made, sorted and written some events at a time."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any

import numpy as np

from pres.datasets.synthetic import SyntheticPlan, synthetic_stream
from pres.errors import OptionError, nearest
from pres.events import EventStream, Origin, unchecked
from pres.ids import IdMap
from pres.store.arrays import ArrayFile, ColumnFiles
from pres.store.folder import mapped
from pres.store.order import Show, permute, write_time_order

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
    fields: dict[str, Any] = {"row": None, "node_x": None, "x": None, "categories": None, "label": None}
    fields |= {path.stem: mapped(path) for path in place.glob("*.npy")}
    num_nodes = plan.num_users + plan.num_items
    fields |= {"num_nodes": num_nodes, "num_src": plan.num_users, "directed": False, "offset": 0}
    info = dataclasses.replace(plan.info, origin=Origin("synthetic", options))
    return unchecked(fields | {"info": info, "ids": IdMap.dense(num_nodes, plan.num_users), "index": None})
