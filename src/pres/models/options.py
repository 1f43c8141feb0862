"""What the models have in common before they are made: units of time, features, and their arguments."""

from __future__ import annotations

from typing import Any

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.nn import (
    EdgeFeatures,
    EventMessage,
    GRUUpdater,
    IdentityMessage,
    MailboxAttention,
    MailboxScan,
    Memory,
    RNNUpdater,
    ScanMemory,
    ScanUpdater,
    TimeEncoding,
)


def given_options(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the options among a constructor's ``locals()``, so that a saved run can make the model again."""
    return {name: value for name, value in arguments.items() if name not in ("self", "events", "__class__")}


def with_features(events: EventStream, edge: bool | None, node: bool | None, model: str) -> EventStream:
    """Return the stream with the features a model is to use; those asked for must be there."""
    there = events.x is not None or events.categories is not None
    for asked, found, kind, how in (
        (edge, there, "edge", "name their columns with x=… or categories=…"),
        (node, events.node_x is not None, "node", "give them to pres.read as node_features="),
    ):
        if asked and not found:
            raise OptionError(
                f"{model} was asked for {kind} features, but '{events.info.title}' has none. Leave "
                f"{kind}_features out, or {how}."
            )
    return events.without(edge=edge is False, node=node is False)


def time_units(events: EventStream) -> tuple[float, float]:
    """Return a millionth of the training span, and the mean gap between a node's training events.

    They make a model independent of the unit of time; both come from the first 70 % of the events.
    """
    train = events.split().train
    span = float(train.t[-1] - train.t[0])
    span = span or 1.0  # a training part at one time has no unit of its own
    return span / 1e6, train.mean_gap() or span


def recurrence(
    events: EventStream,
    cell: str,
    dim: int,
    features: EdgeFeatures,
    time: TimeEncoding,
    encoding_dim: int,
    aggregate: str,
    passes: int,
) -> dict[str, Any]:
    """Return memory, message and updater of a model that is sent a mail of each event; see `TGN`, `JODIE`."""
    if cell == "scan":
        if aggregate == "mean":
            raise OptionError("aggregate='mean' is of mail: cell='scan' takes in every event by itself.")
        about = EventMessage(features, time)
        scanned = ScanMemory(events.num_nodes, dim, events.t[0])
        return {
            "memory": scanned,
            "message": about,
            "updater": ScanUpdater(dim, encoding_dim, about.dim, passes),
        }
    mailed = aggregate == "mean"  # features of one event are looked up
    mailed_dim = 2 * encoding_dim + mailed * features.numeric_dim
    memory = Memory(events.num_nodes, dim, mailed_dim, slots=1, start=events.t[0])
    message = IdentityMessage(memory, features, time, mailed)
    gated = cell == "gru"
    updater = GRUUpdater(message.dim, dim, repeated=True) if gated else RNNUpdater(message.dim, dim)
    return {"memory": memory, "message": message, "updater": updater}


def mailboxes(
    events: EventStream,
    cell: str,
    dim: int,
    features: EdgeFeatures,
    time: TimeEncoding,
    encoding_dim: int,
    *,
    slots: int,
    heads: int,
    passes: int,
    dropout: float,
    gate: bool,
    visibility: str,
    aggregate: str,
) -> dict[str, Any]:
    """Return memory, message and updater of a model whose nodes read their mailbox; see `APAN`."""
    if cell == "scan":
        for name, given, usual in (
            ("aggregate", aggregate, "last"),
            ("visibility", visibility, "fresh"),
            ("gate", gate, True),
            ("dropout", dropout, 0.0),
        ):
            if given != usual:
                raise OptionError(f"{name}={given!r} is not for cell='scan': leave it at {usual!r}.")
        return {
            "memory": ScanMemory(events.num_nodes, dim, events.t[0], slots),
            "message": EventMessage(features, time),
            "updater": MailboxScan(dim, encoding_dim, features.dim, time.dim, heads, passes),
        }
    mailed = aggregate == "mean"  # features of one event are looked up
    mailed_dim = 2 * encoding_dim + mailed * features.numeric_dim
    memory = Memory(events.num_nodes, dim, mailed_dim, slots=slots, start=events.t[0])
    message = IdentityMessage(memory, features, time, mailed)
    updater = MailboxAttention(message.dim, dim, heads, dropout, gate)
    return {"memory": memory, "message": message, "updater": updater}
