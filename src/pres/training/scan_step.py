"""One temporal batch of training where a scan moves memory: one pass, one optimiser step."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from pres.data.stream import EventStream
from pres.models import MDGNN
from pres.models.scanned import Window
from pres.models.subgraph import Subgraph
from pres.smoothing import movement
from pres.training.step import arithmetic, link_loss, take_step


@dataclass(frozen=True, eq=False)
class PreparedScan:
    """A temporal batch with all that can be known of it before weights and memory have reached it."""

    window: Window
    subgraph: Subgraph

    @property
    def batch(self) -> EventStream:
        """The events to train on."""
        return self.window.batch

    def ready(self, model: MDGNN) -> PreparedScan:
        """Return it with what the embedding can make of the subgraph before it has the weights."""
        return replace(self, subgraph=model.with_prepared(self.subgraph))


def prepare_scan(
    model: MDGNN, batch: EventStream, negatives: Tensor, staleness: int, seed: int = 0
) -> PreparedScan:
    """Return a batch to train on against ``negatives`` `[b, count]`; see `MDGNN.sample_window`."""
    window = model.window(batch.offset, batch.offset + len(batch))
    return PreparedScan(window, model.sample_window(window, negatives, staleness, seed))


def train_on_scan(
    model: MDGNN,
    prepared: PreparedScan,
    optimiser: torch.optim.Optimizer,
    *,
    precision: str = "float32",
) -> dict[str, float]:
    """Take an optimiser step on a temporal batch, let memory take it in, and return means over its events.

    Memory takes in what the step has found, by the weights before it.

    Args:
        model: The model, its memory as before the batch.
        prepared: The next events.
        optimiser: What moves the weights.
        precision: See `arithmetic`.
    """
    subgraph, device = prepared.subgraph, prepared.subgraph.nodes.device
    assert subgraph.version is not None
    with arithmetic(device, precision):
        scanned = model.scanned(prepared.window)
        logits = model.logits(subgraph, scanned.updated_memory(subgraph.nodes, subgraph.version))
    loss = link_loss(logits)
    begin, end, moved = scanned.begin, scanned.end, torch.ones_like(prepared.window.node, dtype=torch.bool)
    found, objective = {"loss": loss, "movement": movement(begin, end.detach(), moved)}, loss
    if model.smoothing is not None:
        objective = loss + model.smoothing.loss(begin, end, moved, moved.nonzero().squeeze(1))
        found |= model.smoothing.stats()
    values = take_step(objective, found, optimiser, prepared.batch)
    with torch.no_grad():
        scanned.commit()
    return values
