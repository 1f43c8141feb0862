"""JODIE: a recurrent memory, projected to the time of the query (Kumar et al., 2019)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pres.data.stream import EventStream
from pres.errors import check_choice
from pres.models.base import MDGNN
from pres.models.options import given_options, recurrence, time_units, with_features
from pres.nn import EdgeFeatures, NodeEncoding, TimeEncoding, TimeProjection


class JODIE(MDGNN):
    """``s_i ← GRU([s_i, s_j, c_i, c_j, x, Φ(Δt)], s_i)``, ``h_i = (1 + log(1 + Δt) w) ∘ (s_i + W c_i)``.

    ``c_i`` is a fixed code that says which node it is. The published cell is ``cell="rnn"``, as TGL has it:
    ``s_i ← RNN([…], s_i)``, and the embedding reads ``norm(s_i)``.

    Args:
        events: The whole stream.
        memory_dim: Size of a memory and of an embedding.
        time_dim: Size of the time encoding.
        cell: A gated (``"gru"``) recurrent cell, or the published plain one (``"rnn"``). A plain one rewrites
            all of a memory at every event; where nodes are few and busy, what it knew is gone within a batch.
            ``"scan"`` is ours: a `ScanUpdater`, for large batches.
        passes: Of a scan, see `ScanUpdater`.
        embed: Each root at its own ``"event"``, or each ``"node"`` once per batch.
        aggregate: ``"last"`` or ``"mean"`` message of a batch.
        node_encoding_dim: Size of the nodes' random features, see `NodeEncoding`; 0 for none.
        edge_features: Whether to use the events' features: True, False, or None for those there are.
        node_features: Whether to use the nodes' features, likewise.
    """

    tgl: ClassVar[dict[str, Any]] = {"cell": "rnn", "node_encoding_dim": 0}

    def __init__(
        self,
        events: EventStream,
        *,
        memory_dim: int = 100,
        time_dim: int = 100,
        cell: Literal["gru", "rnn", "scan"] = "gru",
        passes: Literal[1, 2] = 1,
        embed: Literal["event", "node"] = "event",
        aggregate: Literal["last", "mean"] = "last",
        node_encoding_dim: int = 32,
        edge_features: bool | None = None,
        node_features: bool | None = None,
    ) -> None:
        options = given_options(locals())
        check_choice("cell", cell, ("gru", "rnn", "scan"))
        events = with_features(events, edge_features, node_features, type(self).__name__)
        scale, unit = time_units(events)
        features, time = EdgeFeatures(events), TimeEncoding(time_dim, scale)
        identity = NodeEncoding(events.num_nodes, node_encoding_dim)
        super().__init__(
            events,
            **recurrence(events, cell, memory_dim, features, time, node_encoding_dim, aggregate, passes),
            embedding=TimeProjection(memory_dim, unit, norm=cell == "rnn"),
            embed=embed,
            aggregate=aggregate,
            node_encoding=identity,
            options=options,
        )
