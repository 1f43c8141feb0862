"""The memory of some nodes around their pending mail, and what may correct it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Protocol

import torch
from torch import Tensor

from pres.errors import OptionError


@dataclass(frozen=True, eq=False)
class States:
    """The memory of nodes, before and after their pending mail.

    The nodes are distinct and increasing, unless they are asked for at several places inside a batch.
    """

    nodes: Tensor  # [u]
    previous: Tensor  # [u, d], as committed
    measured: Tensor  # [u, d], with the mail taken in; as committed for a node without mail
    corrected: Tensor  # [u, d], predicted and corrected; as measured without a correction
    kept: Tensor  # [u, d], what is committed next: as corrected, unless a correction keeps itself from it
    memory: Tensor  # [u, d], what embeddings see, likewise
    previous_update: Tensor  # [u], the time ``previous`` is of
    last_update: Tensor  # [u], the time ``memory`` is of
    pending: Tensor  # [u] bool, whether there was mail
    count: Tensor  # [u] events of the node in the batch that wrote the mail, c
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
    made: dict[tuple[int, ...], Tensor] = {}  # without a correction four fields are one tensor, and stay one
    for field in fields(States):
        pieces = [getattr(part, field.name) for part in parts]
        same = tuple(id(piece) for piece in pieces)
        if same not in made:
            made[same] = torch.cat(pieces)
        whole[field.name] = made[same]
    return States(**whole)


class Correction(Protocol):
    """Anything that corrects measured memories: see `pres.smoothing.Filter`, which is one."""

    embedded: bool  # whether embeddings see the corrected memory, or the measured one
    written: bool  # whether the corrected memory is written back, or the measured one

    def reset(self) -> None:
        """Forget what was learned from events."""
        ...

    def __call__(
        self,
        nodes: Tensor,
        previous: Tensor,
        measured: Tensor,
        elapsed: Tensor,
        count: Tensor,
        partner_count: Tensor,
    ) -> Tensor:
        """Return the corrected memory `[u, d]` of nodes that had mail; of others it is not used."""
        ...


def corrected(
    correction: Correction | None,
    *,
    nodes: Tensor,
    previous: Tensor,
    measured: Tensor,
    previous_update: Tensor,
    last_update: Tensor,
    pending: Tensor,
    count: Tensor,
    partner_count: Tensor | None,
    last_event: Tensor,
) -> States:
    """Return measured memories as states, corrected if there is a correction, which partners matter to."""
    found, embedded, written = measured, False, False
    if correction is not None:
        assert partner_count is not None
        elapsed = last_update - previous_update
        found = correction(nodes, previous, measured, elapsed, count, partner_count)
        found = torch.where(pending.unsqueeze(1), found, previous)
        embedded, written = correction.embedded, correction.written
    return States(
        nodes=nodes,
        previous=previous,
        measured=measured,
        corrected=found,
        kept=found if written else measured,
        memory=found if embedded else measured,
        previous_update=previous_update,
        last_update=last_update,
        pending=pending,
        count=count,
        last_event=last_event,
    )
