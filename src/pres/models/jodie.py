"""JODIE: an RNN memory, projected to the time of the query (Kumar et al., 2019)."""

from __future__ import annotations

from typing import Literal

from pres.events import EventStream
from pres.models.mdgnn import MDGNN
from pres.models.options import given_options, time_units, with_features
from pres.nn import EdgeFeatures, IdentityMessage, Memory, RNNUpdater, TimeEncoding, TimeProjection


class JODIE(MDGNN):
    """``m = [s_i, s_j, x, Φ(Δt)]``, ``s_i ← RNN(m, s_i)``, ``h_i = (1 + log(1 + Δt) w) ∘ s_i``.

    Args:
        events: The whole stream.
        memory_dim: Size of a memory and of an embedding.
        time_dim: Size of the time encoding.
        embed: Each root at its own ``"event"``, or each ``"node"`` once per batch.
        aggregate: ``"last"`` or ``"mean"`` message of a batch.
        edge_features: Whether to use the events' features: True, False, or None for those there are.
        node_features: Whether to use the nodes' features, likewise.
    """

    def __init__(
        self,
        events: EventStream,
        *,
        memory_dim: int = 100,
        time_dim: int = 100,
        embed: Literal["event", "node"] = "event",
        aggregate: Literal["last", "mean"] = "last",
        edge_features: bool | None = None,
        node_features: bool | None = None,
    ) -> None:
        options = given_options(locals())
        events = with_features(events, edge_features, node_features, type(self).__name__)
        scale, unit = time_units(events)
        features, time = EdgeFeatures(events), TimeEncoding(time_dim, scale)
        memory = Memory(events.num_nodes, memory_dim, features.numeric_dim, slots=1, start=events.t[0])
        message = IdentityMessage(memory, features, time)
        super().__init__(
            events,
            memory=memory,
            message=message,
            updater=RNNUpdater(message.dim, memory_dim),
            embedding=TimeProjection(memory_dim, unit),
            embed=embed,
            aggregate=aggregate,
            options=options,
        )
