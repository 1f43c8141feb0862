"""The slow model with the weights and settings of a fast one."""

import torch

from pres.models import MDGNN, time_units
from pres.nn import ScanUpdater
from tests.models.conftest import DIM, UNIT, stream_of
from tests.oracles.models import SlowModel
from tests.oracles.scan_memory import SlowScan


def slow_twin(kind: str, model: MDGNN, events: list[tuple[int, int, float]], x: torch.Tensor) -> SlowModel:
    """The twin of ``model`` on the same events, with their features as the model sees them.

    That of a model whose memory is scanned only embeds and scores: see `scan_twin` for its memory.
    """
    scale, _ = time_units(stream_of(events))
    return SlowModel(
        kind=kind,
        weights={name: value.detach().numpy() for name, value in model.named_parameters()},
        events=events,
        x=x.double().numpy(),
        time_scale=scale,
        unit=UNIT,
        dim=DIM,
        slots=1 if model.scans else model.mailboxes.slots,
        neighbours=model.neighbours,
        heads=2,
        codes=model.node_encoding.table.numpy(),
        cell="gru" if model.scans or _gated(model) else "published",
    )


def scan_twin(
    model: MDGNN, events: list[tuple[int, int, float]], x: torch.Tensor, again: int = 200
) -> SlowScan:
    """The memory of ``model`` by the slow way; its weights are the model's own, so gradients reach them."""
    cell, time = model.updater, model.message.time
    assert isinstance(cell, ScanUpdater)
    return SlowScan(
        events=events,
        x=x.double(),
        codes=model.node_encoding.table,
        update=(cell.update.weight, cell.update.bias),
        new=(cell.new.weight, cell.new.bias),
        frequency=time.frequency,
        phase=time.phase,
        scale=time_units(stream_of(events))[0],
        passes=cell.passes,
        again=again,
    )


def _gated(model: MDGNN) -> bool:
    return isinstance(getattr(model.updater, "cell", None), torch.nn.GRUCell)
