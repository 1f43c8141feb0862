"""Whether a model that stands where it stands can be asked what it is asked."""

from __future__ import annotations

from torch import Tensor

from pres.data.stream import EventStream
from pres.errors import OptionError
from pres.nn.memory import MemoryStore
from pres.sampling.index import check_slice


def check_whole(events: EventStream, times: Tensor, nodes: int) -> None:
    """Raise unless ``events`` is a whole stream with these times and so many nodes."""
    check_slice(events, times, "the model")
    if events.offset or len(events) != len(times) or events.num_nodes != nodes:
        raise OptionError(
            f"the model was made from a stream of {len(times):,} events and {nodes:,} nodes, not from "
            f"these {len(events):,} and {events.num_nodes:,}. Give the whole stream."
        )


def check_longer(events: EventStream, times: Tensor, nodes: int) -> None:
    """Raise unless ``events`` is a whole stream that goes on from these times and so many nodes."""
    if events.offset or len(events) < len(times) or events.num_nodes < nodes:
        raise OptionError(
            f"the model follows a stream of {len(times):,} events and {nodes:,} nodes as it grows, not one "
            f"of {len(events):,} and {events.num_nodes:,}. Give the whole stream."
        )
    check_slice(events[: len(times)][-1:], times, "the model")


def check_next(batch: EventStream, start: int, times: Tensor, memory: MemoryStore) -> None:
    """Raise unless ``batch`` is of the stream with these times, and not in the memory yet."""
    check_slice(batch, times, "the model")
    known = memory.position
    if start < known:
        raise _known_already(known, start)


def _known_already(known: int, start: int) -> OptionError:
    return OptionError(
        f"the memory has taken in {known:,} events and knows event {start:,} "
        "already. Use model.reset(), or restore a state from before them."
    )


def check_stands(memory: MemoryStore, start: int) -> None:
    """Raise unless memory has taken in all events up to a batch that is to be scanned, and none of it."""
    known = memory.position
    if start < known:
        raise _known_already(known, start)
    if start > known:
        raise OptionError(
            f"the memory has taken in {known:,} events, and a scan cannot begin at event {start:,}. "
            "Give it what lies between with update_state()."
        )


def check_pairs(
    src: Tensor, dst: Tensor, t: Tensor, position: int, times: Tensor, memory: MemoryStore
) -> None:
    """Raise unless these are pairs, and of a time that neither the memory nor ``position`` is beyond."""
    if src.ndim != 1 or not src.shape == dst.shape == t.shape:
        shapes = ", ".join(str(list(given.shape)) for given in (src, dst, t))
        raise OptionError(f"src, dst and t have the shapes {shapes}: give one of each per pair.")
    known = memory.position
    if not known <= position <= len(times):
        raise OptionError(
            f"position={position:,} is not between the {known:,} events that the memory has taken in and "
            f"the {len(times):,} of the stream."
        )
    if position and bool((t < times[position - 1]).any()):
        raise OptionError(
            f"a pair is asked for at time {t.min().item()}, but events up to time "
            f"{times[position - 1].item()} count as known. pres.predict goes back for it."
        )
