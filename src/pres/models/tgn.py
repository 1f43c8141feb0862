"""TGN: a GRU memory and attention over temporal neighbours (Rossi et al., 2020)."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from pres.data.stream import EventStream
from pres.errors import check_choice
from pres.models.base import MDGNN
from pres.models.options import given_options, recurrence, time_units, with_features
from pres.nn import EdgeFeatures, NodeEncoding, TemporalAttention, TimeEncoding
from pres.sampling.index import Strategy, Visibility


class TGN(MDGNN):
    """``m = [s_i, s_j, x, Φ(Δt)]``, ``s_i ← GRU(m, s_i)``, ``h_i = attention(s_i, neighbours of i)``.

    Args:
        events: The whole stream.
        memory_dim: Size of a memory.
        time_dim: Size of the time encoding.
        embedding_dim: Size of an embedding.
        neighbours: Neighbours per node and layer.
        layers: Layers of attention.
        heads: Attention heads.
        dropout: Inside the attention.
        embed: Each root at its own ``"event"`` (as TGN and TGL), or each ``"node"`` once per batch (as PyG).
        visibility: ``"fresh"`` or ``"batch"``, see `TemporalIndex.cutoffs`.
        strategy: ``"recent"`` or ``"uniform"`` neighbours.
        aggregate: ``"last"`` or ``"mean"`` message of a batch.
        node_encoding_dim: Size of the nodes' random features, see `NodeEncoding`; 0 for none.
        cell: A ``"gru"`` as published, or ours for large batches: ``"scan"``, a `ScanUpdater`.
        passes: Of a scan, see `ScanUpdater`.
        edge_features: Whether to use the events' features: True, False, or None for those there are.
        node_features: Whether to use the nodes' features, likewise.
    """

    tgl: ClassVar[dict[str, Any]] = {"dropout": 0.2, "node_encoding_dim": 0}

    def __init__(
        self,
        events: EventStream,
        *,
        memory_dim: int = 100,
        time_dim: int = 100,
        embedding_dim: int = 100,
        neighbours: int = 10,
        layers: int = 1,
        heads: int = 2,
        dropout: float = 0.1,
        embed: Literal["event", "node"] = "event",
        visibility: Visibility = "fresh",
        strategy: Strategy = "recent",
        aggregate: Literal["last", "mean"] = "last",
        node_encoding_dim: int = 32,
        cell: Literal["gru", "scan"] = "gru",
        passes: Literal[1, 2] = 1,
        edge_features: bool | None = None,
        node_features: bool | None = None,
    ) -> None:
        options = given_options(locals())
        check_choice("cell", cell, ("gru", "scan"))
        events = with_features(events, edge_features, node_features, type(self).__name__)
        features, time = EdgeFeatures(events), TimeEncoding(time_dim, time_units(events)[0])
        identity = NodeEncoding(events.num_nodes, node_encoding_dim)
        super().__init__(
            events,
            **recurrence(events, cell, memory_dim, features, time, node_encoding_dim, aggregate, passes),
            embedding=TemporalAttention(memory_dim, features, time, embedding_dim, layers, heads, dropout),
            neighbours=neighbours,
            embed=embed,
            visibility=visibility,
            strategy=strategy,
            aggregate=aggregate,
            node_encoding=identity,
            options=options,
        )
