"""APAN: a memory that attends over a mailbox, filled also by the neighbours' events (Wang et al., 2021)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pres.data.stream import EventStream
from pres.errors import check_choice
from pres.models.base import MDGNN
from pres.models.options import given_options, mailboxes, time_units, with_features
from pres.nn import EdgeFeatures, NodeEncoding, TimeEncoding, TimeProjection
from pres.sampling.index import Visibility


class APAN(MDGNN):
    """``s_i ← GRU(attention(s_i, mailbox of i), s_i)``, ``h_i = (1 + log(1 + Δt) w) ∘ s_i``.

    Mail goes to neighbours too. TGL lets the attention see the query's time. Here a node's memory must not
    depend on who asks for it and when, so the time since its last own event enters the embedding instead.

    Args:
        events: The whole stream.
        memory_dim: Size of a memory and of an embedding.
        time_dim: Size of the time encoding.
        mailbox: Mails kept per node.
        neighbours: Recent neighbours of an endpoint that get its mail.
        heads: Attention heads.
        dropout: Inside the attention. What it drops goes into the memory that is kept, so none by default.
        gate: Whether a GRU cell moves the memory by what attention read (ours). Without it the update is
            TGL's, ``s_i ← relu(W norm(attention(…) + s_i))``, and the embedding reads ``norm(s_i)``.
        cell: A ``"gru"``, or ours for large batches: ``"scan"``, a `MailboxScan`. A mailbox then gets the
            mails of all events, where otherwise a batch sends a node one.
        passes: Of a scan, see `MailboxScan`.
        embed: Each root at its own ``"event"``, or each ``"node"`` once per batch.
        visibility: Which events make a neighbour, see `TemporalIndex.cutoffs`.
        aggregate: ``"last"`` or ``"mean"`` mail of a batch.
        node_encoding_dim: Size of the nodes' random features, see `NodeEncoding`; 0 for none.
        edge_features: Whether to use the events' features: True, False, or None for those there are.
        node_features: Whether to use the nodes' features, likewise.
    """

    tgl: ClassVar[dict[str, Any]] = {
        "gate": False,
        "dropout": 0.1,
        "node_encoding_dim": 0,
    }

    def __init__(
        self,
        events: EventStream,
        *,
        memory_dim: int = 100,
        time_dim: int = 100,
        mailbox: int = 10,
        neighbours: int = 10,
        heads: int = 2,
        dropout: float = 0.0,
        gate: bool = True,
        cell: Literal["gru", "scan"] = "gru",
        passes: Literal[1, 2] = 1,
        embed: Literal["event", "node"] = "event",
        visibility: Visibility = "fresh",
        aggregate: Literal["last", "mean"] = "last",
        node_encoding_dim: int = 32,
        edge_features: bool | None = None,
        node_features: bool | None = None,
    ) -> None:
        options = given_options(locals())
        check_choice("cell", cell, ("gru", "scan"))
        events = with_features(events, edge_features, node_features, type(self).__name__)
        scale, unit = time_units(events)
        features, time = EdgeFeatures(events), TimeEncoding(time_dim, scale)
        identity = NodeEncoding(events.num_nodes, node_encoding_dim)
        super().__init__(
            events,
            **mailboxes(
                events,
                cell,
                memory_dim,
                features,
                time,
                node_encoding_dim,
                slots=mailbox,
                heads=heads,
                passes=passes,
                dropout=dropout,
                gate=gate,
                visibility=visibility,
                aggregate=aggregate,
            ),
            embedding=TimeProjection(memory_dim, unit, norm=not gate),
            neighbours=neighbours,
            deliver_to="neighbours",
            embed=embed,
            visibility=visibility,
            aggregate=aggregate,
            node_encoding=identity,
            options=options,
        )
