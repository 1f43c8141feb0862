"""A file of finished jobs, from which an experiment goes on wherever it was begun."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from pathlib import Path

import polars as pl
from filelock import FileLock

from pres.errors import UnreadableSourceError, one_line
from pres.paper.experiments.job import Job, JobFolder, write_json
from pres.storage import storage_errors, write_bytes

COLUMNS = ("name", "job", "result")  # the folder's name, and its two files as JSON


class KeptResults:
    """Finished jobs in one Parquet file, a row each, in the order in which they ended.

    Args:
        path: The file; it appears with the first job.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows = _read(path) if path.exists() else pl.DataFrame(schema=dict.fromkeys(COLUMNS, pl.String))

    def __len__(self) -> int:
        return len(self._rows)

    def restore(self, jobs: Iterable[Job], root: Path) -> None:
        """Write the results of those of the jobs that are in the file into their folders under ``root``."""
        known = dict(zip(self._rows["name"], self._rows["result"], strict=True))
        for job in jobs:
            folder = JobFolder(root, job)
            if job.name in known and not folder.finished:
                folder.begin()
                write_json(folder.path / "result.json", json.loads(known[job.name]))

    def add_missing(self, folders: Iterable[JobFolder]) -> None:
        """Add those of the jobs that are finished but not in the file: their end was not heard of."""
        for folder in folders:
            if folder.job.name not in self._rows["name"] and folder.finished:
                self.add(folder)

    def add(self, folder: JobFolder) -> None:
        """Add a finished job to the file."""
        job, result = (json.dumps(value) for value in (folder.job.to_dict(), folder.result()))
        row = pl.DataFrame([(folder.job.name, job, result)], schema=self._rows.schema, orient="row")
        with storage_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
        with storage_errors(self.path), FileLock(self.path.with_suffix(".lock")):  # others may add, too
            known = _read(self.path) if self.path.exists() else self._rows
            self._rows = pl.concat([known.filter(pl.col("name") != folder.job.name), row])
            table = io.BytesIO()  # polars would report a full disk in a way of its own
            self._rows.write_parquet(table, compression="zstd", compression_level=19)
            write_bytes(self.path, table.getvalue())


def _read(path: Path) -> pl.DataFrame:
    try:
        found = pl.read_parquet(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise UnreadableSourceError(f"{path} is damaged: {one_line(error)}.") from None
    if tuple(found.columns) != COLUMNS:
        raise UnreadableSourceError(f"{path} holds no finished jobs: its columns are {found.columns}.")
    return found
