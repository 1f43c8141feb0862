"""TGL: a folder with ``edges.csv``, perhaps ``labels.csv``, and feature tensors, loaded as data only."""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import polars as pl
import torch
from torch import Tensor

from pres.data.datasets.raw import RawEvents, events_of, open_by_name, read_integers
from pres.data.datasets.registry import Dataset
from pres.data.tabular.times import read_times
from pres.data.tabular.values import read_labels
from pres.errors import UnreadableSourceError, one_line

_EDGE = {"src": pl.Int64, "dst": pl.Int64, "time": pl.Float64}
_LABEL = {"node": pl.Int64, "time": pl.Float64, "label": pl.Float64}


def read_tgl(files: Mapping[str, Path], dataset: Dataset) -> RawEvents:
    """Return the events of one id space; row k of the edge features belongs to edge k."""
    table = open_by_name(files["events"], _EDGE)
    events = events_of(table, "src", "dst", "time")
    # GDELT's labels give the country of either end, not the state of the source: they are left alone.
    labelled = "labels" in files and dataset.counts is not None and dataset.counts.positives is not None
    return replace(
        events,
        x=_tensor(files["features"]) if "features" in files else None,
        label=_labels_of_sources(files["labels"], events.src, events.t) if labelled else None,
        node_x=_tensor(files["node_features"]) if "node_features" in files else None,
    )


def _labels_of_sources(path: Path, src: Tensor, t: Tensor) -> Tensor:
    """Return one label per event: the k-th label of (node, time) goes to its k-th event, others get 0."""
    table = open_by_name(path, _LABEL)
    labels = pl.DataFrame(
        {
            "node": read_integers(table, "node").numpy(),
            "time": read_times(table, "time")[0].double().numpy(),
            "label": read_labels(table, "label").numpy(),
        }
    )
    events = pl.DataFrame({"node": src.numpy(), "time": t.double().numpy()})
    nth = pl.int_range(pl.len()).over("node", "time").alias("nth")
    joined = events.with_columns(nth).join(
        labels.with_columns(nth), on=["node", "time", "nth"], how="left", maintain_order="left"
    )
    return torch.from_numpy(joined.get_column("label").fill_null(0).to_numpy(writable=True))


def _tensor(path: Path) -> Tensor:
    """Return the one tensor of a file, left on disk until its values are asked for."""
    try:
        with warnings.catch_warnings(action="ignore"):  # torch's advice to the authors of odd files
            try:
                loaded = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
            except RuntimeError:  # a file in the format of torch before 1.6 cannot stay on disk
                loaded = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        raise UnreadableSourceError(
            f"{path} is not a plain tensor: loading it could execute code, so it was not loaded."
        ) from None
    except Exception as error:  # a damaged file makes the reader fail in many ways
        raise UnreadableSourceError(f"{path} is cut short or not a tensor file: {one_line(error)}.") from None
    if not isinstance(loaded, Tensor) or loaded.ndim != 2 or loaded.is_complex():
        shape = tuple(loaded.shape) if isinstance(loaded, Tensor) else type(loaded).__name__
        raise UnreadableSourceError(f"{path} should hold one tensor [rows, features], but holds {shape}.")
    return loaded
