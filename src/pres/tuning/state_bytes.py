"""How much memory the state of a model takes, before it is made."""

from __future__ import annotations

from pres.smoothing import PRES

_TIMES_AND_COUNTS = 3 * 8  # last update, last event and mails received: 64 bits each
_EVENT_AND_TIME = 2 * 8  # of a mail


def state_bytes(
    num_nodes: int,
    memory_dim: int,
    *,
    mails: int = 1,
    node_encoding_dim: int = 0,
    features: int = 0,
    smoothing: PRES | None = None,
) -> int:
    """Return the bytes of the state of all nodes: memory, mail, node encodings and, with PRES, trackers.

    Per node ``4 d + 24 + m (16 + 4 (2 d + 2 c + f)) + 4 c``; with PRES 8 more, and ``k (4 + 8 d)`` per node
    with trackers of its own, with 8 more for an anchor. While `pres.fit` runs there are up to three such
    states: the model's, the best, and the last.

    Args:
        num_nodes: Number of nodes.
        memory_dim: Size of a memory, ``d``.
        mails: Mails kept per node, ``m``: 1 for TGN and JODIE, the size of the mailbox for APAN.
        node_encoding_dim: Size of the nodes' random features, ``c``; the models have 32 unless told
            otherwise.
        features: Numeric edge features, ``f``, of models with ``aggregate="mean"``; others keep none.
        smoothing: PRES, which has ``k`` components per tracker; None for none.
    """
    mail = 4 * (2 * memory_dim + 2 * node_encoding_dim + features)
    total = num_nodes * (
        4 * memory_dim + _TIMES_AND_COUNTS + mails * (_EVENT_AND_TIME + mail) + 4 * node_encoding_dim
    )
    if smoothing is not None and smoothing.filter:
        anchors = min(smoothing.anchors or num_nodes, num_nodes)
        total += (anchors + 1) * smoothing.components * (4 + 8 * memory_dim)
        total += 0 if smoothing.anchors is None else 8 * anchors
        total += 8 * (num_nodes + 1)  # which mail of each was recorded
    return total
