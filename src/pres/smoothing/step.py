"""PRES in training: the filter of a model, the transitions that it observes, and the objective."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.models import MDGNN, States, time_units
from pres.nn.gather import rows
from pres.smoothing import PRES, Filter, batch_coherence_loss, coherence_loss


def new_filter(model: MDGNN, smoothing: PRES | None, events: EventStream) -> Filter | None:
    """Return the filter that ``smoothing`` asks for on a whole stream; None if it asks for none."""
    if smoothing is None or not smoothing.filter:
        return None
    train, anchors = events.split().train, None
    if smoothing.anchors is not None:
        of_src, of_dst = (torch.bincount(side, minlength=events.num_nodes) for side in (train.src, train.dst))
        activity = of_src + of_dst
        anchors = torch.argsort(activity, descending=True, stable=True)[: smoothing.anchors]
    made = Filter(smoothing, events.num_nodes, model.memory.dim, time_units(events)[1], anchors)
    return made.to(model.memory.memory.device, model.memory.memory.dtype)


def saved_filter(model: MDGNN, smoothing: dict[str, Any] | None, state: dict[str, Tensor]) -> Filter | None:
    """Return a filter that can take up what a saved state holds of one; None if that had none."""
    if smoothing is None or not smoothing["filter"]:
        return None
    anchors = state.get("correction.trackers.anchors")
    made = Filter(PRES(**smoothing), len(model.memory.memory), model.memory.dim, anchors=anchors)
    return made.to(model.memory.memory.device, model.memory.memory.dtype)


def incoherence(smoothing: PRES, states: States, updated: Tensor, roots: Tensor) -> Tensor:
    """Return one minus the coherence of a step's memories: the objective without its weight β (Eq. 10).

    Args:
        smoothing: Which coherence it is.
        states: The memories `[u, d]` of the step's nodes.
        updated: Which of them took in mail `[u]`.
        roots: Where the batch's vertices are among them `[r]`.
    """
    if smoothing.coherence == "node":
        return coherence_loss(states.previous, states.corrected, updated)
    if smoothing.coherence == "batch":
        updated = torch.zeros_like(updated).index_fill_(0, roots, True)
    return batch_coherence_loss(states.previous, states.corrected, updated)


def recordable(model: MDGNN, states: States, roles: dict[int, Tensor]) -> dict[int, Tensor]:
    """Return which transitions are to be recorded, by component: places among ``states``.

    ``roles`` are the distinct nodes of each component. A transition is recorded once: the first time that its
    node is in the batch, as an endpoint or as a negative, after the mail came. Call this before the batch is
    taken in, `observe` after it.
    """
    assert isinstance(model.correction, Filter)
    found = {}
    for component, nodes in roles.items():
        place = states.places_of(nodes)
        place = place[states.pending[place]]
        nodes = states.nodes[place]
        found[component] = place[model.correction.first_sight(nodes, model.mailboxes.mails_received[nodes])]
    return found


@torch.no_grad()
def observe(correction: Filter, states: States, places: dict[int, Tensor]) -> None:
    """Let a filter's trackers take in transitions, by component; see `recordable`."""
    elapsed = states.last_update - states.previous_update
    found = []
    for component, place in places.items():
        transitions = correction.transitions(
            states.nodes[place],
            rows(states.previous, place),
            rows(states.measured, place),
            rows(states.corrected, place),
            elapsed[place],
            states.count[place],
        )
        found.append((*transitions, component))
    for nodes, delta, component in found:  # an innovation is told by what the correction knew
        correction.record(nodes, delta, component)
