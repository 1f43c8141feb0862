"""A short name for exactly these events."""

from __future__ import annotations

import hashlib

from pres.data.stream import EventStream


def fingerprint(events: EventStream) -> str:
    """Return 16 hexadecimal digits that differ between streams of different events or features."""
    digest = hashlib.blake2b(f"{len(events)} {events.num_nodes} {events.num_src}".encode(), digest_size=8)
    for name in ("src", "dst", "t", "x", "categories", "node_x"):
        values = getattr(events, name)
        if values is not None:
            digest.update(name.encode())
            digest.update(values.cpu().contiguous().numpy().data)
    return digest.hexdigest()
