"""Small random streams and small models of each kind, in float64."""

from collections.abc import Callable
from typing import Any

import torch

from pres.data.stream import EventStream
from pres.models import APAN, JODIE, MDGNN, TGN
from pres.nn import TimeProjection
from tests.oracles.sampling import Event

KINDS = ("tgn", "jodie", "apan")
DIM, TIME, UNIT = 6, 4, 2.0


def random_events(seed: int, n: int = 60, nodes: int = 9) -> list[Event]:
    """Events with ties, repeats and self-loops."""
    generator = torch.Generator().manual_seed(seed)
    src = torch.randint(0, nodes, (n,), generator=generator).tolist()
    dst = torch.randint(0, nodes, (n,), generator=generator).tolist()
    gaps = torch.randint(0, 3, (n,), generator=generator).cumsum(0).tolist()
    return [(s, d, float(t)) for s, d, t in zip(src, dst, gaps, strict=True)]


def stream_of(
    events: list[Event], x: torch.Tensor | None = None, nodes: int = 12, directed: bool = False
) -> EventStream:
    """The tuples as a stream with some nodes that never act."""
    src, dst, t = (torch.tensor(column) for column in zip(*events, strict=True))
    return EventStream(src, dst, t.double(), x=x, num_nodes=nodes, directed=directed)


def make(kind: str, stream: EventStream, seed: int = 0, **options: Any) -> MDGNN:
    """A small model of that kind, in float64 and without dropout, its weights large enough to matter."""
    torch.manual_seed(seed)
    sizes: dict[str, object] = {"memory_dim": DIM, "time_dim": TIME, "node_encoding_dim": 0}
    builders: dict[str, Callable[..., MDGNN]] = {"tgn": TGN, "jodie": JODIE, "apan": APAN}
    if kind != "jodie":
        sizes |= {"neighbours": 3, "dropout": 0.0}
    if kind == "tgn":
        sizes |= {"embedding_dim": DIM}
    if kind == "apan":
        sizes |= {"mailbox": 3}
    model = builders[kind](stream, **sizes | options).double()
    if isinstance(model.embedding, TimeProjection):
        model.embedding.unit = UNIT  # else it follows the stream, whose events some tests change
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.requires_grad:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval()
