from typing import Any

import pytest
from torch import nn

import pres
from pres.training.trainer import smoothing_for


def size(module: nn.Module) -> int:
    """The bytes of a module's buffers, but for single numbers."""
    return sum(buffer.nbytes for buffer in module.buffers() if buffer.ndim)


@pytest.mark.parametrize(
    "smoothing", [None, pres.PRES(), pres.PRES(anchors=7, components=1), pres.PRES(filter=False)]
)
@pytest.mark.parametrize("features", [0, 3])
@pytest.mark.parametrize(
    ("kind", "options", "shape"),
    [
        (pres.TGN, {"memory_dim": 8, "node_encoding_dim": 4}, {"node_encoding_dim": 4}),
        (pres.TGN, {"memory_dim": 32, "node_encoding_dim": 0}, {}),
        (pres.JODIE, {"memory_dim": 12, "node_encoding_dim": 0}, {}),
        (pres.APAN, {"memory_dim": 8, "mailbox": 3, "node_encoding_dim": 0}, {"mails": 3}),
        (
            pres.APAN,
            {"memory_dim": 8, "mailbox": 3, "aggregate": "mean"},
            {"mails": 3, "node_encoding_dim": 32},
        ),
    ],
)
def test_the_formula_is_what_a_model_takes(
    kind: type, options: dict[str, Any], shape: dict[str, int], features: int, smoothing: pres.PRES | None
) -> None:
    events = pres.load("synthetic", num_events=300, features=features)
    model = kind(events, **options)
    made = smoothing_for(model, events, smoothing)
    real = size(model.memory) + size(model.node_encoding) + (0 if made is None else size(made))
    dim, mailed = options["memory_dim"], features if options.get("aggregate") == "mean" else 0
    found = pres.state_bytes(events.num_nodes, dim, **shape, features=mailed, smoothing=smoothing)
    assert found == real
