"""The public layouts a dataset can have on disk, one module each.

A module tells from file names whether a place holds the dataset (`match`), and reads it (`read`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path

from pres.data.datasets.registry import Dataset
from pres.data.formats import dgb, jodie, parquet, renet, snap, tgb, tgl
from pres.data.formats.raw import RawEvents


@dataclass(frozen=True)
class Format:
    """One layout."""

    # Names of the files found, the dataset, whether the folder is the dataset's own → file by role.
    match: Callable[[AbstractSet[str], Dataset, bool], Mapping[str, str] | None]
    # Path of each role, the dataset → its events.
    read: Callable[[Mapping[str, Path], Dataset], RawEvents]
    needs_conversion: bool = True  # slow to read, so that a converted copy is kept
    beside: tuple[str, ...] = ()  # roles that have a file of their own: without it, the copy lacks them


FORMATS: Mapping[str, Format] = {
    "parquet": Format(parquet.match, parquet.read, needs_conversion=False, beside=parquet.BESIDE),
    "jodie": Format(jodie.match, jodie.read),
    "tgl": Format(tgl.match, tgl.read, beside=("labels", "features", "node_features")),
    "tgb": Format(tgb.match, tgb.read),
    "dgb": Format(dgb.match, dgb.read, beside=("features",)),
    "renet": Format(renet.match, renet.read),
    "snap": Format(snap.match, snap.read),
}

__all__ = ["FORMATS", "Format", "RawEvents"]
