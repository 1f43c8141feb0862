"""RE-Net: ``train.txt``, ``valid.txt``, ``test.txt`` with ``subject, relation, object, time`` and a 0."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from pathlib import Path

import torch

from pres.data.datasets.registry import Dataset
from pres.data.formats.raw import RawEvents, read_integers
from pres.data.formats.text import rename, strip
from pres.data.tabular.rows import open_table
from pres.data.tabular.values import read_times
from pres.errors import UnreadableSourceError

_PARTS = ("train", "valid", "test")  # in order of time


def match(names: AbstractSet[str], dataset: Dataset, own: bool) -> Mapping[str, str] | None:
    """Return the three files, or None: the names say nothing outside the dataset's own folder."""
    files = {part: f"{part}.txt" for part in _PARTS}
    return files if own and all(file in names for file in files.values()) else None


def read(files: Mapping[str, Path], dataset: Dataset) -> RawEvents:
    """Return the events of the three parts, one after the other."""
    parts = [_read_part(files[part]) for part in _PARTS]
    src, relation, dst, t = (torch.cat(column) for column in zip(*parts, strict=True))
    return RawEvents(where=str(files["train"].parent), src=src, dst=dst, t=t, relation=relation)


def _read_part(path: Path) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    table = open_table(path, header=False, separator="\t")
    if table.frame.width < 4:
        raise UnreadableSourceError(f"{path}: {table.frame.width} columns between tabs, expected at least 4.")
    names = ("subject", "relation", "object", "time")
    table = strip(rename(table, names))
    subject, relation, entity = (read_integers(table, column) for column in names[:3])
    return subject, relation, entity, read_times(table, "time")[0]
