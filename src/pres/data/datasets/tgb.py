"""TGB: one edge list per dataset, read by place because some headers do not fit their rows.

The pickles of negative samples that come with it are never opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import torch
from polars._typing import PolarsDataType
from torch import Tensor

from pres.data.datasets.raw import RawEvents, open_by_place, read_features
from pres.data.datasets.registry import Dataset
from pres.data.tabular.rows import Table
from pres.data.tabular.times import read_times
from pres.data.tabular.values import read_ids

_EVENT: Mapping[str, PolarsDataType] = {"t": pl.String, "src": pl.String, "dst": pl.String}
_BEYOND: Mapping[str, Mapping[str, PolarsDataType]] = {
    "tgbl-review": {"weight": pl.Float32},
    "tgbl-coin": {"weight": pl.Float32},
    "tgbl-comment": {"num_words": pl.Float32, "score": pl.Float32},
    "tgbl-flight": {"callsign": pl.String, "typecode": pl.String},
}
_MOST_WORDS = 5000  # TGB's scale of the length of a comment
_CODE_LENGTH = 8  # characters kept of a call sign or a type of aircraft


def read_tgb(files: Mapping[str, Path], dataset: Dataset) -> RawEvents:
    """Return the events with TGB's features and TGB's numbering of nodes, by first appearance."""
    table = open_by_place(files["events"], {**_EVENT, **_BEYOND[dataset.name]})
    table = replace(table, is_text=True)  # the ids are
    src, dst = _by_first_appearance(read_ids(table, "src"), read_ids(table, "dst"))
    features = _codes if dataset.name == "tgbl-flight" else _numbers
    return RawEvents(
        where=table.where,
        src=src,
        dst=dst,
        t=read_times(table, "t")[0],
        x=features(table, tuple(_BEYOND[dataset.name])),
    )


def _by_first_appearance(src: pl.Series, dst: pl.Series) -> tuple[Tensor, Tensor]:
    """Return both columns numbered from 0 in the order ids appear, source before destination."""
    src, dst = src.cast(pl.String), dst.cast(pl.String)
    row = pl.int_range(len(src), eager=True)
    seen = pl.DataFrame({"id": pl.concat([src, dst]), "place": pl.concat([2 * row, 2 * row + 1])})
    first = seen.group_by("id").agg(pl.col("place").min()).sort("place").with_row_index("node")
    both = seen.select("id").join(first, on="id", how="left", maintain_order="left").get_column("node")
    nodes = torch.from_numpy(both.cast(pl.Int64).to_numpy(writable=True))
    return nodes[: len(src)], nodes[len(src) :]


def _numbers(table: Table, columns: tuple[str, ...]) -> Tensor:
    values = read_features(table, columns)
    assert values is not None
    if columns == ("weight",):
        return torch.where(values == 0, torch.ones_like(values), values).log2()
    # TGB writes the scaled length into two equal columns; one says as much.
    return torch.stack([values[:, 0] / _MOST_WORDS, values[:, 1]], dim=1)


def _codes(table: Table, columns: tuple[str, ...]) -> Tensor:
    """Return the characters of the columns as numbers, 8 of each: digits as such, letters from 30."""
    parts = []
    for column in columns:
        text = table.frame.get_column(column).fill_null("")
        levels = text.unique().sort()
        codes = torch.tensor([_code(level) for level in levels.to_list()], dtype=torch.float32)
        place = levels.search_sorted(text).to_numpy().astype(np.int64)
        parts.append(codes[torch.from_numpy(place)])
    return torch.cat(parts, dim=1)


def _code(text: str) -> list[int]:
    if len(text) > _CODE_LENGTH:
        text = ""
    known = [int(char) if char.isdecimal() else ord(char.upper()[0]) - 35 for char in text]
    return known + [-1] * (_CODE_LENGTH - len(text))
