"""The memory of some nodes around their pending mail, corrected by a smoothing method."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields

import torch
from torch import Tensor

from pres.errors import OptionError
from pres.smoothing import Smoothing


@dataclass(frozen=True, eq=False)
class States:
    """The memory of nodes, before and after their pending mail.

    The nodes are distinct and increasing, unless they are asked for at several places inside a batch.
    """

    nodes: Tensor  # [u]
    previous: Tensor  # [u, d], as committed
    measured: Tensor  # [u, d], with the mail taken in; as committed for a node without mail
    corrected: Tensor  # [u, d], predicted and corrected; as measured without smoothing
    kept: Tensor  # [u, d], what is committed next: as corrected, or as measured if smoothing says so
    memory: Tensor  # [u, d], what embeddings see, likewise
    previous_update: Tensor  # [u], the time ``previous`` is of
    last_update: Tensor  # [u], the time ``memory`` is of
    pending: Tensor  # [u] bool, whether there was mail
    last_event: Tensor  # [u], the time of the node's last event

    def places_of(self, nodes: Tensor) -> Tensor:
        """Return where distinct nodes are among those at hand, or raise if one is not."""
        place = torch.searchsorted(self.nodes, nodes).clamp_(max=len(self.nodes) - 1)
        if not torch.equal(self.nodes[place], nodes):
            raise OptionError(
                "the states do not hold every node of the batch; leave them out to have them measured."
            )
        return place


def joined(found: Iterable[States]) -> States:
    """Return the states of several parts, one after the other."""
    parts = list(found)
    if len(parts) == 1:
        return parts[0]
    whole: dict[str, Tensor] = {}
    made: dict[tuple[int, ...], Tensor] = {}  # without smoothing four fields are one tensor, and stay one
    for field in fields(States):
        pieces = [getattr(part, field.name) for part in parts]
        same = tuple(id(piece) for piece in pieces)
        if same not in made:
            made[same] = torch.cat(pieces)
        whole[field.name] = made[same]
    return States(**whole)


def corrected(
    smoothing: Smoothing | None,
    *,
    nodes: Tensor,
    previous: Tensor,
    measured: Tensor,
    previous_update: Tensor,
    last_update: Tensor,
    pending: Tensor,
    last_event: Tensor,
) -> States:
    """Return measured memories as states, corrected if they are smoothed."""
    found = kept = memory = measured
    if smoothing is not None:
        found = smoothing.correct(nodes, previous, measured, last_update - previous_update)
    if smoothing is not None and found is not measured:
        found = torch.where(pending.unsqueeze(1), found, previous)
        kept = found if smoothing.written else measured
        memory = found if smoothing.embedded else measured
    return States(
        nodes=nodes,
        previous=previous,
        measured=measured,
        corrected=found,
        kept=kept,
        memory=memory,
        previous_update=previous_update,
        last_update=last_update,
        pending=pending,
        last_event=last_event,
    )
