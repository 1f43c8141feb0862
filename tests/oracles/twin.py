"""The slow model with the weights and settings of a fast one."""

import torch

from pres.models import MDGNN, time_units
from tests.models.conftest import DIM, UNIT, stream_of
from tests.oracles.models import SlowModel


def slow_twin(kind: str, model: MDGNN, events: list[tuple[int, int, float]], x: torch.Tensor) -> SlowModel:
    """The twin of ``model`` on the same events, with their features as the model sees them."""
    scale, _ = time_units(stream_of(events))
    return SlowModel(
        kind=kind,
        weights={name: value.detach().numpy() for name, value in model.named_parameters()},
        events=events,
        x=x.double().numpy(),
        time_scale=scale,
        unit=UNIT,
        dim=DIM,
        slots=model.mailboxes.slots,
        neighbours=model.neighbours,
        heads=2,
        codes=model.codes.table.numpy(),
        cell="gru" if isinstance(getattr(model.updater, "cell", None), torch.nn.GRUCell) else "published",
    )
