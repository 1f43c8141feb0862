"""What an experiment found: its table beside the paper's, its pictures, and how to get it again."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import polars as pl

from pres.errors import UnreadableSourceError, one_line
from pres.paper.experiments.available import has_labels
from pres.paper.experiments.budget import PAPER_EPOCHS, PAPER_SEEDS
from pres.paper.experiments.declaration import Experiment, Request
from pres.paper.experiments.figures import rendered
from pres.paper.experiments.job import PICTURE, JobFolder, Point, read_json, write_json
from pres.paper.experiments.results import Results, gathered
from pres.paper.experiments.table import Table
from pres.storage import write_bytes

_THEIRS = f"whole streams, {PAPER_EPOCHS} epochs, 500 for fig-extended, {PAPER_SEEDS} seeds, V100"


@dataclass(frozen=True)
class Evidence:
    """One table or figure of the paper, as far as it could be had here."""

    name: str
    title: str
    where: str  # in the paper
    says: str  # what the paper says
    budget: str
    seeds: int
    protocol: str  # how this was done, and how that differs from the paper
    command: str  # to get it again
    table: Table
    findings: tuple[str, ...]
    figures: tuple[str, ...]  # names of files in the folder ``figures``
    skipped: dict[str, str]  # datasets that are not at hand, and how to get them
    failed: dict[str, str]  # jobs without a result, and why
    jobs: tuple[str, ...]  # names of the folders that it rests on

    @property
    def drawn(self) -> list[str]:
        """The figures, each in one form: as vectors where there are."""
        vector = {Path(name).stem for name in self.figures if name.endswith(".svg")}
        return [name for name in self.figures if name.endswith(".svg") or Path(name).stem not in vector]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return dataclasses.asdict(self)

    @classmethod
    def of(cls, saved: dict[str, Any]) -> Evidence:
        """Return the evidence of which `to_dict` made ``saved``."""
        lists = {name: tuple(saved[name]) for name in ("findings", "figures", "jobs")}
        return cls(**saved | lists | {"table": Table.of(saved["table"])})


@dataclass(frozen=True)
class EvidenceFolder:
    """Where evidence is kept under a root: ``evidence`` and ``figures``, beside the ``jobs``."""

    root: Path

    def write(self, found: Evidence, rows: Sequence[dict[str, Any]], pictures: Mapping[str, bytes]) -> None:
        """Keep evidence, what was measured at every point, and its pictures."""
        for name, content in pictures.items():
            write_bytes(self.root / "figures" / name, content)
        points = self.root / "evidence" / f"{found.name}.parquet"
        if rows:
            table = io.BytesIO()  # polars would report a full disk in a way of its own
            pl.DataFrame([_flat(row) for row in rows], infer_schema_length=None).write_parquet(table)
            write_bytes(points, table.getvalue())
        else:
            points.unlink(missing_ok=True)  # what an earlier request left is not what this one found
        write_json(self.root / "evidence" / f"{found.name}.json", found.to_dict())

    def names(self) -> list[str]:
        """Return the experiments that there is evidence of."""
        return sorted(path.stem for path in (self.root / "evidence").glob("*.json"))

    def read(self, name: str) -> Evidence:
        """Return the evidence of one experiment."""
        path = self.root / "evidence" / f"{name}.json"
        try:
            return Evidence.of(read_json(path))
        except (KeyError, TypeError) as error:
            raise UnreadableSourceError(f"{path} is damaged: {one_line(error)}. Make it again.") from None


def collect(
    experiment: Experiment,
    request: Request,
    root: Path,
    missing: Mapping[str, str],
    failures: Mapping[str, str],
    command: str,
) -> Evidence:
    """Write and return what an experiment found, from the results in the job folders under ``root``."""
    folders = [(point, JobFolder(root, point.job)) for point in experiment.points(request)]
    finished = [(point, folder) for point, folder in folders if folder.finished]
    results = gathered(request.budget, [(point, folder.result()) for point, folder in finished])
    pictures = _pictures(experiment, results, finished)
    asked = experiment.asked(request)
    skipped = {name: missing[name] for name in asked if name in missing}
    if experiment.labelled:
        skipped |= {name: "no labels are published with it." for name in asked if not has_labels(name)}
    found = Evidence(
        name=experiment.name,
        title=experiment.title,
        where=experiment.where,
        says=experiment.says,
        budget=request.budget.name,
        seeds=max(map(request.seeds_of, asked), default=1) if experiment.seeded else 1,
        protocol=_protocol(experiment, request, results),
        command=command,
        table=experiment.table(results),
        findings=tuple(experiment.findings(results)) if results.rows else (),
        figures=tuple(pictures),
        skipped=skipped,
        failed={f.job.title: failures[f.job.name] for _, f in folders if f.job.name in failures},
        jobs=tuple(dict.fromkeys(folder.job.name for _, folder in finished)),
    )
    EvidenceFolder(root).write(found, results.rows, pictures)
    return found


def _protocol(experiment: Experiment, request: Request, results: Results) -> str:
    """Return one line on how this was done."""
    budget = request.budget
    how = [f"Budget {budget.name}"]
    if experiment.kind == "train":
        epochs = ", ".join(str(count) for count in results.distinct("epochs"))
        seeds = max((place["seeds"] for place in results.places), default=0)  # so far
        how += [
            f"TGL's protocol, {budget.streams}, {epochs} epochs, {seeds} seed{'s' if seeds > 1 else ''}, CPU "
            f"with one thread a job (the paper: {_THEIRS})"
        ]
    elif experiment.kind != "dataset":
        how += [f"{budget.streams}, CPU with one thread a job"]
    lacking = {
        f"{place['dataset']} is the variant “{place['variant']}” here"
        for place in results.places
        if place["dataset"] is not None and place["variant"] is not None
    }
    line = "; ".join([*how, *sorted(lacking)]) + "."
    return f"{line} {experiment.note}".strip()


def _pictures(
    experiment: Experiment, results: Results, finished: Sequence[tuple[Point, JobFolder]]
) -> dict[str, bytes]:
    """Return the pictures of an experiment by file name: as declared, or those that its jobs drew."""
    figure = experiment.draw(results) if experiment.draw is not None and results.rows else None
    if figure is not None:
        return {f"{experiment.name}.{kind}": rendered(figure, kind) for kind in ("svg", "png")}
    found = {}
    for point, folder in finished:
        if (folder.path / PICTURE).exists():
            words = [experiment.name, folder.job.kind]
            words += [point.factors[name] for name in ("model", "dataset") if name in point.factors]
            words += [f"beta-{folder.job.settings['beta']:g}"] if "beta" in folder.job.settings else []
            found["-".join(words) + ".png"] = (folder.path / PICTURE).read_bytes()
    return found


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Return one row of the table of points; what is nested is kept as JSON."""
    measures: dict[str, Any] = {
        name: json.dumps(v) if _nested(v) else v for name, v in row["measures"].items()
    }
    measures.update(row["factors"])
    return measures


def _nested(value: Any) -> bool:
    inside = value if isinstance(value, list) else []
    return isinstance(value, dict) or any(isinstance(item, dict | list) for item in inside)
