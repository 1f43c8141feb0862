"""Jobs are done once, whatever happens in between."""

import dataclasses
import json
from pathlib import Path

import polars as pl
import pytest

from pres.errors import OptionError, StorageError, UnreadableSourceError
from pres.paper.experiments.declaration import Experiment
from pres.paper.experiments.evidence import EvidenceFolder
from pres.paper.experiments.kept import KeptResults
from pres.paper.experiments.registry import EXPERIMENTS
from pres.paper.experiments.runner import reproduce
from tests.paper.experiments.small import LITTLE, TINY, Here, reproduced

OFF = dataclasses.replace(LITTLE, name="off", vary=dict(LITTLE.vary) | {"smoothing": ["off", "ours"]})
LABELLED = dataclasses.replace(TINY, events=4_000, epochs=1)


def of_jodie(name: str) -> Experiment:
    table = EXPERIMENTS[name]
    return dataclasses.replace(table, vary=dict(table.vary) | {"model": ["jodie"]})


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a call that was never interrupted leaves."""
    root = tmp_path_factory.mktemp("whole")
    found = reproduced([LITTLE], root)
    assert not found.failures and found.jobs == 4 and found.repeated == 0
    return root


def test_nothing_is_done_twice_and_shared_jobs_are_one(whole: Path) -> None:
    again = Here()
    found = reproduced([LITTLE, OFF], whole, again)
    assert again.done == [] and (found.jobs, found.repeated) == (4, 4)
    assert len(found.evidence[1].table.rows) == 2
    more = Here()
    reproduced([OFF], whole, more, seeds=2)
    assert len(more.done) == 2  # of the second seed alone


def test_interrupted_anywhere_it_ends_with_the_same_tables(whole: Path, tmp_path: Path) -> None:
    for stop in range(4):
        with pytest.raises(KeyboardInterrupt):
            reproduced([LITTLE], tmp_path, Here(stop_after=min(stop, 1)))
    last = Here()
    reproduced([LITTLE], tmp_path, last)
    assert len(last.done) == 1  # three of the four were finished before
    ours, theirs = (EvidenceFolder(root).read("little") for root in (tmp_path, whole))
    assert ours.table.repeatable() == theirs.table.repeatable()
    assert len(ours.table.rows) == 4


def test_a_job_that_fails_is_listed_the_others_stand_and_it_is_tried_again(tmp_path: Path) -> None:
    too_large = dataclasses.replace(LITTLE, vary=dict(LITTLE.vary) | {"batch_size": [100, 100_000]})
    found = reproduced([too_large], tmp_path)
    (evidence,) = found.evidence
    assert len(evidence.table.rows) == 4 and len(found.failures) == 4
    assert all("makes one batch of" in reason for reason in found.failures.values())
    assert all("b 100,000" in title for title in evidence.failed)
    failed = list(tmp_path.glob("jobs/*/failed.json"))
    assert len(failed) == 4 and "Traceback" in json.loads(failed[0].read_text())["traceback"]
    again = Here()
    reproduced([too_large], tmp_path, again)
    assert sorted(again.done) == sorted(found.failures)


def test_the_encoders_of_table_1_are_classified_in_its_jobs_and_states_are_not_kept(tmp_path: Path) -> None:
    found = reproduced([of_jodie("table1")], tmp_path, budget=LABELLED)
    assert found.jobs == 6 and not found.failures  # five arms, and the seconds of all
    assert list(tmp_path.glob("jobs/*/run")) == []
    table = found.evidence[0].table
    names = [heading.name for heading in table.headings]
    assert len(table.rows) == 5 and all(row[names.index("seconds")] is not None for row in table.rows)
    later = Here()
    found = reproduced([of_jodie("table2"), of_jodie("speed")], tmp_path, later, budget=LABELLED)
    assert later.done == [] and not found.failures
    labels = found.evidence[0].table
    names = [heading.name for heading in labels.headings]
    assert all(0 < row[names.index("label_auc")].mean < 100 for row in labels.rows)  # type: ignore[union-attr]
    assert len(found.evidence[1].table.rows) == 5


def test_a_file_of_results_is_gone_on_from_elsewhere(whole: Path, tmp_path: Path) -> None:
    file = tmp_path / "jobs.parquet"
    with pytest.raises(KeyboardInterrupt):
        reproduced([LITTLE], tmp_path / "here", Here(stop_after=2), results=KeptResults(file))
    assert len(KeptResults(file)) == 2
    there = Here()
    found = reproduced([LITTLE], tmp_path / "there", there, results=KeptResults(file))
    assert len(there.done) == 2 and found.repeated == 2 and not found.failures
    assert len(KeptResults(file)) == 4
    assert found.evidence[0].table.repeatable() == EvidenceFolder(whole).read("little").table.repeatable()
    heard = KeptResults(tmp_path / "late.parquet")  # of a folder whose jobs ended before there was a file
    reproduced([LITTLE], tmp_path / "there", Here(), results=heard)
    assert len(heard) == 4
    file.write_text("no table")
    with pytest.raises(UnreadableSourceError, match=r"jobs\.parquet is damaged"):
        KeptResults(file)
    pl.DataFrame({"a": [1]}).write_parquet(file)
    with pytest.raises(UnreadableSourceError, match="holds no finished jobs"):
        KeptResults(file)


def test_what_measures_time_runs_by_itself(tmp_path: Path) -> None:
    at_once: list[list[str]] = []

    class Noting(Here):
        def run(self, jobs, root):  # type: ignore[no-untyped-def]
            at_once.append([job.kind for job in jobs])
            return super().run(jobs, root)

    reproduced([of_jodie("table1")], tmp_path, Noting(), budget=LABELLED)
    assert at_once == [["train"] * 5, ["speed"]]


def test_what_an_earlier_request_found_is_not_kept_beside_a_later_one(tmp_path: Path) -> None:
    reproduced([OFF], tmp_path)
    assert (tmp_path / "evidence" / "off.parquet").exists()
    reproduced([OFF], tmp_path, datasets=["tgbl-flight"])
    assert EvidenceFolder(tmp_path).read("off").table.rows == ()
    assert not (tmp_path / "evidence" / "off.parquet").exists()


def test_points_are_kept_as_a_table_and_pictures_as_files(whole: Path) -> None:
    points = pl.read_parquet(whole / "evidence" / "little.parquet")
    assert len(points) == 4
    assert {"dataset", "model", "smoothing", "batch_size", "lr", "seed", "ap", "seconds"} <= set(
        points.columns
    )
    assert points["val_ap_of_epoch"].list.len().to_list() == [2] * 4
    evidence = EvidenceFolder(whole).read("little")
    assert evidence.figures == ("little.svg", "little.png")
    assert (whole / "figures" / "little.svg").read_text().startswith("<?xml")
    assert EvidenceFolder(whole).names()[0] == "little"


def test_two_at_once_in_one_folder_are_told_apart(tmp_path: Path) -> None:
    class Nested(Here):
        def run(self, jobs, root):  # type: ignore[no-untyped-def]
            with pytest.raises(StorageError, match="is being written by"):
                reproduced([OFF], tmp_path)
            return super().run(jobs, root)

    assert not reproduced([OFF], tmp_path, Nested()).failures


def test_what_cannot_be_is_said_in_one_line(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(StorageError, match=r"cannot write .*file.*Choose another folder"):
        reproduced([OFF], blocked / "inside")
    with pytest.raises(OptionError, match="at least once"):
        reproduced([OFF], tmp_path / "a", seeds=0)
    root = tmp_path / "b"
    (root / "evidence").mkdir(parents=True)
    (root / "evidence" / "little.json").write_text('{"name": "little"}')
    with pytest.raises(UnreadableSourceError, match="damaged"):
        EvidenceFolder(root).read("little")


def test_a_dataset_that_is_missing_is_skipped_and_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PRES_DATA", str(tmp_path))
    monkeypatch.setenv("PRES_CACHE", str(tmp_path))
    found = reproduce([OFF], TINY, tmp_path / "out", Here(), datasets=["synthetic", "Reddit"])
    (evidence,) = found.evidence
    assert set(evidence.skipped) == {"reddit"} and "PRES_DATA" in evidence.skipped["reddit"]
    assert len(evidence.table.rows) == 2 and not found.failures
