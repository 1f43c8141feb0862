"""Whether the parts of a model fit each other; what does not is an error, and not a wrong number."""

from __future__ import annotations

from torch import nn

from pres.errors import OptionError
from pres.nn.encoding import NodeEncoding
from pres.nn.mailbox_scan import MailboxScan
from pres.nn.memory import Memory, MemoryStore
from pres.nn.message import EventMessage, IdentityMessage
from pres.nn.scan_memory import ScanMemory
from pres.nn.scan_updater import ScanUpdater
from pres.nn.updater import GRUUpdater, RNNUpdater


def check_composition(
    num_nodes: int,
    memory: MemoryStore,
    message: IdentityMessage | EventMessage,
    updater: nn.Module,
    embedding: nn.Module,
    node_encoding: NodeEncoding,
    aggregate: str,
    deliver_to: str,
) -> None:
    """Raise unless the parts of a model on a stream of so many nodes fit each other."""
    check_kinds(memory, message, updater, deliver_to)
    for kind, nodes in ("memory", memory.num_nodes), ("node encoding", len(node_encoding.table)):
        if nodes != num_nodes:
            raise OptionError(f"the {kind} is of {nodes:,} nodes, but the stream has {num_nodes:,}.")
    if isinstance(memory, Memory) and isinstance(message, IdentityMessage):
        check_room(memory, message, node_encoding, aggregate)
        check_mail(memory, message, updater, deliver_to)
    check_widths(memory, message, node_encoding, (message, updater, embedding))


def check_widths(
    memory: MemoryStore,
    message: IdentityMessage | EventMessage,
    node_encoding: NodeEncoding,
    parts: tuple[nn.Module, ...],
) -> None:
    """Raise unless each part gets what it was made for: ``widths`` says of what, and how wide."""
    there = {
        "memory": memory.dim,
        "mail": getattr(memory, "mail_dim", 0),
        "message": message.dim,
        "features": message.features.dim,
        "time": message.time.dim,
        "node encoding": node_encoding.dim,
    }
    for part in parts:
        for name, width in getattr(part, "widths", {}).items():
            if width != there[name]:
                raise OptionError(
                    f"{type(part).__name__} was made for a width of {width} ({name}), but in this model it "
                    f"is {there[name]}."
                )


def check_mail(memory: Memory, message: IdentityMessage, updater: nn.Module, deliver_to: str) -> None:
    """Raise unless the updater finds in a mailbox and in a message what it takes to be there."""
    if isinstance(updater, GRUUpdater | RNNUpdater) and memory.slots > 1:
        raise OptionError(
            f"{type(updater).__name__} takes one message per node, but memory keeps {memory.slots} mails: "
            "use slots=1, or a MailboxAttention."
        )
    if isinstance(updater, GRUUpdater) and updater.repeated:
        if not message.begins_with_memory:
            raise OptionError(
                "GRUUpdater(repeated=True) takes messages that begin with the memory they move, and those of "
                f"{type(message).__name__} do not: use repeated=False."
            )
        if deliver_to == "neighbours":
            raise OptionError(
                "GRUUpdater(repeated=True) takes messages that begin with the memory they move, and those to "
                "neighbours begin with another node's: use repeated=False."
            )


def check_room(memory: Memory, message: IdentityMessage, node_encoding: NodeEncoding, aggregate: str) -> None:
    """Raise unless mail has the room for what a model sends, no more and no less."""
    numeric, mailed = message.features.numeric_dim, message.mailed
    if aggregate == "mean" and numeric and not mailed:
        raise OptionError(
            "aggregate='mean' keeps the mean of numeric features in mail: give mailed=True to the message, "
            f"and Memory(…, feature_dim={2 * node_encoding.dim + numeric})."
        )
    room, needed = memory.mail_dim - 2 * memory.dim, 2 * node_encoding.dim + (numeric if mailed else 0)
    if room != needed:
        otherwise = (
            f", or mailed={not mailed} to the message"
            if room == 2 * node_encoding.dim + (0 if mailed else numeric)
            else ""
        )
        raise OptionError(
            f"mail has room for {room} numbers beside two memories, but {needed} are sent: "
            f"2 x {node_encoding.dim} of node encodings, {needed - 2 * node_encoding.dim} features. "
            f"Give Memory(…, feature_dim={needed}){otherwise}."
        )


def check_kinds(memory: nn.Module, message: nn.Module, updater: nn.Module, deliver_to: str) -> None:
    """Raise unless memory, message and updater are all made for the same kind of scan, or none for any."""
    given = ", ".join(type(part).__name__ for part in (memory, message, updater))
    kinds = (memory, ScanMemory), (message, EventMessage), (updater, ScanUpdater | MailboxScan)
    scanning = [isinstance(part, kind) for part, kind in kinds]
    if any(scanning) != all(scanning):
        raise OptionError(
            "a scan needs all of ScanMemory, EventMessage, and ScanUpdater or MailboxScan. The model was "
            f"given {given}."
        )
    if not isinstance(memory, ScanMemory):
        return
    mailed = memory.slots > 0, isinstance(updater, MailboxScan), deliver_to == "neighbours"
    if any(mailed) != all(mailed):
        raise OptionError(
            "in a scan, mail needs all of ScanMemory(…, slots=…), MailboxScan and deliver_to='neighbours'; "
            f"the model was given {given}, slots={memory.slots} and deliver_to={deliver_to!r}."
        )
