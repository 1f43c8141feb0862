"""Single jobs, done from any state that an interruption may leave."""

import dataclasses
from pathlib import Path

import pytest

from pres.paper.experiments import peak
from pres.paper.experiments.declaration import Request
from pres.paper.experiments.job import Job, JobFolder
from pres.paper.experiments.registry import EXPERIMENTS
from pres.paper.experiments.work import perform
from pres.training.folder import RunFolder
from tests.paper.experiments.small import LITTLE, TINY

REQUEST = Request(TINY, 1, {"synthetic": "embedded"}, ("synthetic",))


def job() -> Job:
    return LITTLE.points(REQUEST)[0].job


def scores(root: Path) -> list[float]:
    result = JobFolder(root, job()).result()
    return [result["test"]["ap"], *(epoch["val"]["ap"] for epoch in result["history"])]


def test_any_half_written_run_leads_to_the_same_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JobFolder, "forget_run", lambda folder: None)  # so that there is something to halve
    assert perform(job(), tmp_path / "whole") is None
    expected = scores(tmp_path / "whole")
    whole = JobFolder(tmp_path / "whole", job())

    without_result = tmp_path / "a"
    folder = JobFolder(without_result, job())
    folder.path.mkdir(parents=True)
    whole.run.rename(folder.run)  # killed between the run's result and the job's
    assert perform(job(), without_result) is None
    assert scores(without_result) == expected

    (folder.path / "result.json").unlink()
    (folder.run / "run.json").unlink()  # killed before the test part
    assert RunFolder(folder.run).begun and not RunFolder(folder.run).finished
    assert perform(job(), without_result) is None
    assert scores(without_result) == expected


def test_what_fails_is_said_and_kept(tmp_path: Path) -> None:
    impossible = Job("train", job().settings | {"batch_size": 1_000_000})
    assert "makes one batch of" in str(perform(impossible, tmp_path))
    unknown = Job("dataset", {"source": "nowhere", "copy": "embedded"})
    assert "there is no dataset 'nowhere'" in str(perform(unknown, tmp_path))
    broken = Job("dataset", {})
    assert str(perform(broken, tmp_path)).startswith("KeyError")
    assert len(list(tmp_path.glob("jobs/*/failed.json"))) == 3


def test_a_failure_that_cannot_be_kept_is_said_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / job().name).write_text("no folder")
    reason = perform(job(), tmp_path)
    assert reason is not None and reason.startswith("cannot write ") and job().name in reason


@pytest.mark.parametrize("name", ["fig-memory", "theory"])
def test_the_other_kinds_of_jobs_give_results(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(peak, "_STILL", 0)  # a peak as exact as that is not wanted here
    experiment = EXPERIMENTS[name]
    one_model = dataclasses.replace(experiment, vary=dict(experiment.vary) | {"model": ["jodie"]})
    for point in one_model.points(REQUEST)[:5]:
        assert perform(point.job, tmp_path) is None
        assert JobFolder(tmp_path, point.job).result()["seconds"] > 0
