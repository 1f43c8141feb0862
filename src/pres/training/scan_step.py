"""One temporal batch of training where a scan moves memory: one pass, one optimiser step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.models import MDGNN
from pres.models.sample import SubgraphInside
from pres.models.scanned import Scanned, Window
from pres.nn.ops import rows
from pres.smoothing import movement
from pres.training.step import WHOLE, Accumulation, arithmetic, link_loss, move_weights

PARTS, PARTS_WITH_NEIGHBOURS = 2, 4  # of a batch, see `train_on_scan`; more of them take more operations
LEAST = 200  # events of a part


@dataclass(frozen=True, eq=False)
class PreparedScan:
    """A temporal batch with all that can be known of it before weights and memory have reached it."""

    window: Window
    subgraphs: list[SubgraphInside]  # of the parts of the batch

    @property
    def batch(self) -> EventStream:
        """The events to train on."""
        return self.window.batch


def prepare_scan(
    model: MDGNN, batch: EventStream, negatives: Tensor, staleness: int, seed: int = 0
) -> PreparedScan:
    """Return a batch to train on against ``negatives`` `[b, count]`; see `MDGNN.sample_window`."""
    window, b = model.window(batch.offset, batch.offset + len(batch)), len(batch)
    most = PARTS_WITH_NEIGHBOURS if model.embedding.hops else PARTS
    size = max(1, b // max(1, min(most, b // LEAST)))
    parts = [slice(start, start + size) for start in range(0, max(1, b), size)]
    return PreparedScan(
        window, [model.sample_window(window, negatives, staleness, seed, part) for part in parts]
    )


def train_on_scan(
    model: MDGNN,
    prepared: PreparedScan,
    optimiser: torch.optim.Optimizer,
    *,
    precision: str = "float32",
    accumulation: Accumulation = WHOLE,
) -> dict[str, float]:
    """Take an optimiser step on a temporal batch, let memory take it in, and return means over its events.

    One scan finds the memory of the whole batch. Its parts are then embedded and scored one after another,
    each with its gradient, so that of all that this takes only one part's is held at a time. Their gradients
    add up, and go back through the scan together. Memory takes in what the step has found, by the weights
    before it.

    Args:
        model: The model, its memory as before the batch.
        prepared: The next events.
        optimiser: What moves the weights.
        precision: See `arithmetic`.
        accumulation: What the batch is of the optimiser step, if several batches make one.
    """
    device, b = prepared.batch.t.device, len(prepared.batch)
    with arithmetic(device, precision):
        scanned = model.scanned(prepared.window)
    if accumulation.first:
        optimiser.zero_grad()
    read, of_states = replace(scanned, states=scanned.states.detach()), torch.zeros_like(scanned.states)
    share = accumulation.share
    parts = [
        _train_on_part(model, subgraph, read, of_states, b, precision, share)
        for subgraph in prepared.subgraphs
    ]
    loss = objective = torch.stack(parts).sum()
    begin, end, moved = (
        scanned.begin,
        scanned.end,
        torch.ones_like(prepared.window.chains.node, dtype=torch.bool),
    )
    found = {"loss": loss, "movement": movement(begin, end.detach(), moved)}
    learned, gradients = [scanned.states], [of_states]
    if model.smoothing is not None:
        objective = loss + model.smoothing.loss(begin, end, moved, moved.nonzero().squeeze(1))
        found |= model.smoothing.stats()
        if objective.requires_grad:
            learned, gradients = [*learned, objective], [*gradients, objective.new_tensor(share)]
    torch.autograd.backward(learned, gradients)
    values = move_weights(objective, found, optimiser, prepared.batch, accumulation)
    with torch.no_grad():
        scanned.commit()
    return values


def _train_on_part(
    model: MDGNN,
    subgraph: SubgraphInside,
    scanned: Scanned,
    of_states: Tensor,
    b: int,
    precision: str,
    share: float,
) -> Tensor:
    """Return a part's share of the loss of ``b`` events.

    Its gradient adds to those of the weights, and by the states ``of_states`` `[h, d]`: the few that a part
    reads are a leaf, as a gradient of its own for all would take as much room as all.
    """
    states = scanned.updated_memory(subgraph.nodes, subgraph.version)
    states.memory.requires_grad_()
    with arithmetic(subgraph.nodes.device, precision):
        logits = model.logits(model.prepared(subgraph), states)
    loss = link_loss(logits) * (len(logits) / b)
    torch.autograd.backward(loss, loss.new_tensor(share))
    assert states.memory.grad is not None
    inside = (subgraph.version >= 0).nonzero().squeeze(1)
    of_states.index_add_(0, rows(subgraph.version, inside), rows(states.memory.grad, inside))
    return loss.detach()
