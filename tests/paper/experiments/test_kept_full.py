"""The runs kept at full length are those that the declarations ask for, with the settings of today."""

import inspect
import json
from pathlib import Path
from typing import Any

import polars as pl

from pres.models.registry import MODELS
from pres.paper.experiments.budget import BUDGETS
from pres.paper.experiments.declaration import RATE, Request, config_of
from pres.paper.experiments.job import Job
from pres.paper.experiments.registry import EXPERIMENTS

KEPT = Path(__file__).parents[3] / "docs/results/full/jobs.parquet"


def rows() -> list[tuple[str, Job, dict[str, Any]]]:
    found = pl.read_parquet(KEPT).iter_rows()
    return [(name, Job.of(json.loads(job)), json.loads(result)) for name, job, result in found]


def test_a_row_has_the_name_of_its_job_and_one_of_the_experiments_asks_for_it() -> None:
    copies = {job.settings["source"]: job.settings["copy"] for _, job, _ in rows()}
    assert set(copies) == {dataset for _, dataset in RATE}
    request = Request(BUDGETS["full"], None, copies)
    asked = {point.job.name for one in EXPERIMENTS.values() for point in one.points(request)}
    assert len(rows()) > 80
    for name, job, _ in rows():
        assert name == job.name and name in asked


def test_what_a_run_was_trained_with_is_what_its_job_says_now() -> None:
    compared = 0
    for name, job, result in rows():
        if job.kind != "train":
            continue
        now = config_of(job.settings)
        usual = {
            option: parameter.default
            for option, parameter in inspect.signature(MODELS[now.model]).parameters.items()
        }
        options, then = usual | now.model_options, result["model_options"]
        if options["edge_features"] is None:  # found at the stream, and told by the run
            then = then | {"edge_features": None}
        pairs = [(then, options), (result["config"], now.model_dump())]
        if now.smoothing is not None:
            pairs.append((result["config"]["smoothing"], now.smoothing.model_dump()))
        for before, after in pairs:
            both = (before.keys() & after.keys()) - {"smoothing"}
            assert both and {one: before[one] for one in both} == {one: after[one] for one in both}, name
            compared += len(both)
    assert compared > 2000
