"""How a copy of a dataset differs from the published one by what it lacks."""

from __future__ import annotations

from pres.data.datasets.registry import Counts


def absences(
    counts: Counts, *, edge_features: bool, node_features: bool, labels: bool, relations: bool
) -> list[str]:
    """Return what is published with the dataset but absent from a copy that has only the named parts."""
    no_edge_features = not edge_features and 0 not in counts.edge_features
    no_node_features = not node_features and counts.node_features > 0
    bare = no_edge_features and (no_node_features or not counts.node_features)
    return [
        name
        for name, absent in (
            ("featureless", bare),
            ("no edge features", no_edge_features and not bare),
            ("no node features", no_node_features and not bare),
            ("no labels", not labels and counts.positives is not None),
            ("no relations", not relations and counts.relations > 0),
        )
        if absent
    ]
